"""Publishing in batches, without a timer: what is pending when a request ends is the next request.

One request is in flight at a time, so messages keep their order. Pending bytes are bounded: `send`
waits when the bound is reached. Every message carries an id made here, so a repeated request
doubles nothing; with `acks="none"` there is neither id nor repetition. A batch is sent with
`partial=true`: a message that is refused fails alone.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

from ibrik_client.errors import IbrikError, ServerFailed, Unavailable, error_of
from ibrik_client.messages import Ack, Headers, RawAck, encode_envelope
from ibrik_client.retry import NO_RETRY, RetryPolicy, with_retries
from ibrik_client.transport import Transport

BATCH_RECORDS = 1_000
BATCH_BYTES = 1024 * 1024
PENDING_BYTES = 8 * 1024 * 1024
NDJSON = "application/x-ndjson"
RAW_BATCH = "application/vnd.ibrik.batch"


class Identities:
    """Ids for messages: 80 random bits for this source, and a count."""

    def __init__(self) -> None:
        self._prefix = secrets.token_hex(10)
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return f"{self._prefix}-{self._count:x}"


class Waiting(NamedTuple):
    envelope: bytes
    identity: str | None
    done: "asyncio.Future[Ack]"


class Publisher:
    """Publishes to one topic. Use it as `async with ibrik.publisher("orders") as publisher:`.

    Leaving the block waits for every acknowledgement, and raises the first failure if there was
    one; leaving it by an exception gives up what is not acknowledged yet.
    """

    def __init__(
        self,
        transport: Transport,
        topic: str,
        *,
        path: str,
        policy: RetryPolicy,
        acks: str = "durable",
        batch_records: int = BATCH_RECORDS,
        batch_bytes: int = BATCH_BYTES,
        pending_bytes: int = PENDING_BYTES,
    ) -> None:
        self.topic = topic
        self.pending_records = 0
        """Messages that are neither acknowledged nor refused yet."""
        self._transport = transport
        self._path = path
        self._policy = policy if acks == "durable" else NO_RETRY
        self._acks = acks
        self._batch_records = batch_records
        self._batch_bytes = batch_bytes
        self._limit_bytes = pending_bytes
        self._pending_bytes = 0
        self._pending: deque[Waiting] = deque()
        self._identities = Identities()
        self._failure: IbrikError | None = None
        self._is_open = False
        self._changed = asyncio.Condition()
        self._tasks = asyncio.TaskGroup()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._is_open = True
        self._sender = self._tasks.create_task(self._send_batches())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                await self.flush()
        finally:
            self._is_open = False
            self._sender.cancel()
            for waiting in self._pending:
                waiting.done.cancel()
            self._pending.clear()
            # The group has to see a cancellation, which may be its own; other errors stay plain.
            is_cancelled = isinstance(error, asyncio.CancelledError)
            await self._tasks.__aexit__(*((kind, error, trace) if is_cancelled else (None,) * 3))

    async def publish(self, value: Any, **options: Any) -> Ack:
        """Send one message and wait for its acknowledgement; `options` are those of `send`."""
        return await (await self.send(value, **options))

    async def send(
        self,
        value: Any,
        *,
        key: Any = None,
        headers: Headers | None = None,
        id: str | None = None,  # noqa: A002 - the field's word
        partition: int | None = None,
    ) -> "asyncio.Future[Ack]":
        """Hand one message over; the future is its acknowledgement. Waits only for room."""
        assert self._is_open, "a publisher is used inside its `async with` block"
        identity = id if id or self._acks == "none" else self._identities.next()
        envelope = encode_envelope(
            value, key=key, headers=headers, identity=identity, partition=partition
        )
        if self._pending_bytes >= self._limit_bytes:
            async with self._changed:
                await self._changed.wait_for(lambda: self._pending_bytes < self._limit_bytes)
        waiting = Waiting(envelope, identity, asyncio.get_running_loop().create_future())
        self._pending.append(waiting)
        self._pending_bytes += len(envelope)
        self.pending_records += 1
        if len(self._pending) == 1:
            await self._notify()
        return waiting.done

    async def flush(self) -> None:
        """Wait until nothing is pending. Raises the first failure since the last flush."""
        async with self._changed:
            await self._changed.wait_for(lambda: self.pending_records == 0)
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    async def _send_batches(self) -> None:
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._pending))
            batch = self._take_batch()
            results: list[Ack | IbrikError]
            try:
                results = await self._post(batch)
            except Unavailable as error:
                # The broker is away for longer than the deadline: each further batch would wait
                # as long again, so everything that waits is told now.
                batch += self._pending
                self._pending.clear()
                results = [error] * len(batch)
            except IbrikError as error:
                results = [error] * len(batch)
            except asyncio.CancelledError:
                for waiting in batch:
                    waiting.done.cancel()
                raise
            for waiting, result in zip(batch, results, strict=True):
                self._settle(waiting, result)
            await self._notify()

    def _take_batch(self) -> list[Waiting]:
        batch, size_bytes = [self._pending.popleft()], 0
        size_bytes = len(batch[0].envelope)
        while self._pending and len(batch) < self._batch_records:
            size_bytes += len(self._pending[0].envelope)
            if size_bytes > self._batch_bytes:
                break
            batch.append(self._pending.popleft())
        return batch

    async def _post(self, batch: list[Waiting]) -> list[Ack | IbrikError]:
        """The results in the order of the batch; what may succeed later is sent again."""
        results: dict[int, Ack | IbrikError] = {}

        async def attempt() -> None:
            open_indexes = [i for i in range(len(batch)) if i not in results]
            answers = await self._post_once([batch[i].envelope for i in open_indexes])
            later: Unavailable | None = None
            for index, answer in zip(open_indexes, answers, strict=True):
                if isinstance(answer, Unavailable):
                    later = later or answer
                else:
                    results[index] = answer
            if later is not None:
                raise later

        try:
            await with_retries(self._policy, attempt)
        except Unavailable as error:
            if not results:
                raise
            return [results.get(i, error) for i in range(len(batch))]
        return [results[i] for i in range(len(batch))]

    async def _post_once(self, envelopes: list[bytes]) -> list[Ack | IbrikError]:
        answer = await self._transport.request(
            "POST",
            self._path,
            params={"acks": self._acks, "partial": "true"},
            headers={"Content-Type": NDJSON},
            body=b"\n".join(envelopes),
        )
        return batch_results(answer.json(), len(envelopes))

    def _settle(self, waiting: Waiting, result: Ack | IbrikError) -> None:
        self.pending_records -= 1
        self._pending_bytes -= len(waiting.envelope)
        if isinstance(result, IbrikError):
            self._failure = self._failure or result
        if waiting.done.done():
            return  # The caller gave up waiting for this one.
        if isinstance(result, IbrikError):
            waiting.done.set_exception(result)
            # `flush` raises it as well, so nobody has to look at every future.
            waiting.done.exception()
        else:
            waiting.done.set_result(result._replace(id=waiting.identity or ""))

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()


def batch_results(document: Any, count: int) -> list[Ack | IbrikError]:
    """The answer to a batch, message by message: an acknowledgement or what was wrong with it."""
    try:
        durability = document["durability"]
        results = [_result(item, durability) for item in document["messages"]]
        if "stopped" in document:
            # NDJSON is published as it comes; this is why the rest of it was not.
            results += [error_of(document["stopped"])] * (count - len(results))
    except (KeyError, TypeError, ValueError) as error:
        raise ServerFailed("the broker's answer to a batch is not understood") from error
    if len(results) != count:
        raise ServerFailed(f"{len(results)} results came back for {count} messages")
    return results


def _result(item: Mapping[str, Any], durability: str) -> Ack | IbrikError:
    if "code" in item:
        return error_of(item)
    return Ack(
        partition=item["partition"],
        offset=item.get("offset", -1),
        durability=durability,
        is_duplicate=item.get("duplicate", False),
        timestamp=item.get("timestamp", ""),
    )


def raw_results(document: Any) -> list[RawAck]:
    """The answer to raw batches, batch by batch."""
    try:
        return [
            RawAck(item["partition"], item["offset"], item["count"], item["duplicate"])
            for item in document["batches"]
        ]
    except (KeyError, TypeError) as error:
        raise ServerFailed("the broker's answer to raw batches is not understood") from error
