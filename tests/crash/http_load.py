"""Producers on the HTTP door that may retry: by id, or by producer id and sequence.

Each has one request in flight. When the broker dies under it the outcome is unknown, and the same
request is sent again to its next life until it is answered: then it is in the log once, whatever
had happened before. The last answered request is sent again too, and must get the same answer.
"""

import abc
import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import aiohttp
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from tests.crash.ledger import Ledger, LogName, value_of


class Receipt(NamedTuple):
    """Where one message is, and whether it was there before this request."""

    partition: int
    offset: int
    is_duplicate: bool


class UnexpectedAnswer(Exception):
    """The broker refused what it has to accept; the run is of no use."""


@dataclass(frozen=True, slots=True)
class Request:
    path: str
    body: bytes
    sequences: list[int]
    headers: dict[str, str] = field(default_factory=dict)


class HttpProducer(abc.ABC):
    def __init__(self, ledger: Ledger, topic: str) -> None:
        self.ledger = ledger
        self.topic = topic
        self.name = ledger.new_producer()
        self._unanswered: Request | None = None
        self._answered: Request | None = None

    @abc.abstractmethod
    def build(self) -> Request:
        """The next request; its messages count as sent from here on."""

    @abc.abstractmethod
    def receipts(self, answer: Any) -> list[Receipt]:
        """Where each message of the request is, in its order."""

    async def prepare(self, session: aiohttp.ClientSession) -> None:
        """What a producer needs once, before its first request: most need nothing."""
        return

    async def run(self, session: aiohttp.ClientSession, on_progress: Callable[[], None]) -> None:
        """Publish until the broker is gone."""
        try:
            while True:
                await self._send_next(session)
                on_progress()
        except (aiohttp.ClientError, OSError):
            return

    async def settle(self, session: aiohttp.ClientSession) -> None:
        """In the broker's next life: repeat the last answered request and the unanswered one."""
        if self._answered is not None:
            await self._send(session, self._answered)
        if self._unanswered is not None:
            receipts = await self._send(session, self._unanswered)
            self.ledger.note_retry(sum(each.is_duplicate for each in receipts), len(receipts))
            self._answered, self._unanswered = self._unanswered, None

    async def _send_next(self, session: aiohttp.ClientSession) -> None:
        self._unanswered = self.build()
        await self._send(session, self._unanswered)
        self._answered, self._unanswered = self._unanswered, None

    async def _send(self, session: aiohttp.ClientSession, request: Request) -> list[Receipt]:
        while True:
            async with session.post(
                request.path, data=request.body, headers=request.headers
            ) as answer:
                text = await answer.text()
            if answer.status in (429, 503):
                self.ledger.refusals[json.loads(text)["code"]] += 1
                await asyncio.sleep(0.05)
                continue
            if answer.status not in (200, 201):
                raise UnexpectedAnswer(f"{request.path}: {answer.status} {text}")
            break
        receipts = self.receipts(json.loads(text))
        for sequence, receipt in zip(request.sequences, receipts, strict=True):
            log_number = self.ledger.log_number(LogName(self.topic, receipt.partition))
            self.ledger.acknowledge(self.name, sequence, log_number, receipt.offset)
        return receipts

    def _next(self) -> tuple[int, bytes]:
        sequence = self.ledger.send(self.name)
        return sequence, value_of(self.name, sequence)


class SingleProducer(HttpProducer):
    """One message a request, its id in `Idempotency-Key`, its partition left to the topic."""

    def build(self) -> Request:
        sequence, value = self._next()
        return Request(
            f"/v1/topics/{self.topic}/messages",
            value,
            [sequence],
            {"Idempotency-Key": f"{self.name}-{sequence}"},
        )

    def receipts(self, answer: Any) -> list[Receipt]:
        return [_receipt(answer)]


class BatchProducer(HttpProducer):
    """JSON batches over all partitions, an id on every message; as NDJSON every other time."""

    def __init__(self, ledger: Ledger, topic: str, partitions: int, size: int) -> None:
        super().__init__(ledger, topic)
        self._partitions = partitions
        self._size = size
        self._batches = 0

    def build(self) -> Request:
        self._batches += 1
        messages, sequences = [], []
        for _ in range(self._size):
            sequence, value = self._next()
            sequences.append(sequence)
            messages.append(
                {
                    "id": f"{self.name}-{sequence}",
                    "partition": sequence % self._partitions,
                    "value_base64": base64.b64encode(value).decode(),
                }
            )
        path = f"/v1/topics/{self.topic}/batch"
        if self._batches % 2:
            body = json.dumps({"messages": messages}).encode()
            return Request(path, body, sequences, {"Content-Type": "application/json"})
        body = b"\n".join(json.dumps(message).encode() for message in messages)
        return Request(path, body, sequences, {"Content-Type": "application/x-ndjson"})

    def receipts(self, answer: Any) -> list[Receipt]:
        return [_receipt(each) for each in answer["messages"]]


class SequencedProducer(HttpProducer):
    """Raw record batches of a producer id with sequences, two frames a request, one partition."""

    def __init__(self, ledger: Ledger, log: LogName, size: int) -> None:
        super().__init__(ledger, log.topic)
        self._partition = log.partition
        self._size = size
        self._producer_id = -1
        self._producer_epoch = -1

    async def prepare(self, session: aiohttp.ClientSession) -> None:
        async with session.post("/v1/producers") as answer:
            if answer.status not in (200, 201):
                raise UnexpectedAnswer(f"/v1/producers: {answer.status} {await answer.text()}")
            given = await answer.json()
        self._producer_id, self._producer_epoch = given["id"], given["epoch"]

    def build(self) -> Request:
        body = bytearray()
        sequences = []
        # Two requests are four batches: a broker remembers the last five of a producer.
        for _ in range(2):
            first, value = self._next()
            builder = DefaultRecordBatchBuilder(
                2, 0, 0, self._producer_id, self._producer_epoch, first, 1 << 20
            )
            builder.append(0, 0, None, value, [])
            sequences.append(first)
            for index in range(1, self._size):
                sequence, value = self._next()
                builder.append(index, 0, None, value, [])
                sequences.append(sequence)
            body += builder.build()
        return Request(
            f"/v1/topics/{self.topic}/batch",
            bytes(body),
            sequences,
            {
                "Content-Type": "application/vnd.ibrik.batch",
                "Ibrik-Partition": str(self._partition),
            },
        )

    def receipts(self, answer: Any) -> list[Receipt]:
        return [
            _receipt(batch, index) for batch in answer["batches"] for index in range(self._size)
        ]


def _receipt(answer: Any, index: int = 0) -> Receipt:
    """Of one message, or of the message with `index` in a batch."""
    is_duplicate = answer.get("duplicate", False)
    return Receipt(answer["partition"], answer["offset"] + index, is_duplicate)
