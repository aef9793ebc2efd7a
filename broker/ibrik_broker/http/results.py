"""The answers to batches, put together as text: one short object a message, no value per record.

Shapes: `BatchResult` and `RawBatchResult` of `ibrik_api.http`.
"""

from collections.abc import Iterable, Sequence
from typing import Self

import msgspec
from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.http.operations import JSON
from ibrik_broker.partitions.messages import Acks, Message, Receipt
from ibrik_broker.partitions.topic import Topic

MAX_NAMED = 1000
"""Faults listed in one answer; `invalid_count` has them all."""

Decoded = list[Message | Refusal]
"""Messages in the order of a batch; a refusal stands where a message is not valid."""


class BatchResults:
    """One result a message, in the order of the request."""

    def __init__(self, topic: Topic, acks: Acks) -> None:
        self._topic = topic
        self._durability = "none" if acks is Acks.NONE else topic.settings.durability.value
        self._results: list[str] = []
        self._duplicate_count = 0
        self._failed_count = 0
        self._stopped_by: Refusal | None = None

    @property
    def count(self) -> int:
        return len(self._results)

    def add_all(self, outcomes: Iterable[Receipt | Refusal]) -> Self:
        add = self._results.append
        known_ms, time = -1, ""
        for index, outcome in enumerate(outcomes, len(self._results)):
            if isinstance(outcome, Refusal):
                self._failed_count += 1
                fault = msgspec.json.encode({"index": index} | fault_of(outcome)).decode()
                add(fault)
                continue
            partition, offset, timestamp_ms, _, is_duplicate = outcome
            if offset < 0:
                add(f'{{"index":{index},"partition":{partition},"offset":-1}}')
                continue
            if timestamp_ms != known_ms:
                known_ms, time = timestamp_ms, format_timestamp(timestamp_ms)
            end = "}"
            if is_duplicate:
                self._duplicate_count += 1
                end = ',"duplicate":true}'
            add(
                f'{{"index":{index},"partition":{partition},"offset":{offset},'
                f'"timestamp":"{time}"{end}'
            )
        return self

    def stop(self, refusal: Refusal) -> None:
        """What follows the last result was not published, for this reason."""
        self._stopped_by = refusal

    def answer(self, *, is_partial: bool) -> web.Response:
        more = f',"failed":{self._failed_count}' if self._failed_count else ""
        if self._stopped_by is not None:
            more += f',"stopped":{msgspec.json.encode(self._stopped_by.problem()).decode()}'
        body = (
            f'{{"topic":"{self._topic.name}","durability":"{self._durability}",'
            f'"count":{self.count},"messages":[{",".join(self._results)}]{more}}}'
        )
        is_repeat = 0 < self._duplicate_count == len(self._results)
        status = 200 if is_partial or is_repeat else 201
        if self._durability == "none":
            status = 202
        return _json(status, body, is_repeat=is_repeat)


def raw_answer(
    topic: Topic, receipts: Sequence[Receipt], record_counts: Iterable[int]
) -> web.Response:
    """One result a record batch: the offset of its first record, and how many it holds."""
    batches = [
        f'{{"partition":{receipt.partition},"offset":{receipt.offset},'
        f'"timestamp":"{format_timestamp(receipt.timestamp_ms)}","count":{count},'
        f'"duplicate":{"true" if receipt.is_duplicate else "false"}}}'
        for receipt, count in zip(receipts, record_counts, strict=True)
    ]
    is_repeat = all(receipt.is_duplicate for receipt in receipts)
    body = (
        f'{{"topic":"{topic.name}","durability":"{topic.settings.durability.value}",'
        f'"batches":[{",".join(batches)}]}}'
    )
    return _json(200 if is_repeat else 201, body, is_repeat=is_repeat)


def _json(status: int, body: str, *, is_repeat: bool) -> web.Response:
    headers = {"Content-Type": JSON}
    if is_repeat:
        headers["Ibrik-Duplicate"] = "true"
    return web.Response(status=status, body=body.encode(), headers=headers)


def refuse_invalid(decoded: Decoded) -> list[Message]:
    """The messages of an atomic batch, or a refusal that names every wrong one."""
    messages = [found for found in decoded if isinstance(found, Message)]
    if len(messages) == len(decoded):
        return messages
    wrong = [
        {"index": index, "pointer": f"/messages/{index}"} | fault_of(found)
        for index, found in enumerate(decoded)
        if isinstance(found, Refusal)
    ]
    raise Refusal(
        "invalid-messages",
        f"{len(wrong)} of {len(decoded)} messages are not valid, so none was published."
        " Mend them, or send ?partial=true to publish the others.",
        errors=wrong[:MAX_NAMED],
        invalid_count=len(wrong),
    )


def fault_of(refusal: Refusal) -> dict[str, str | int]:
    return {"code": refusal.code, "detail": refusal.detail}
