"""The client: one `async with` block, one connection pool, all that a program does to a broker."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import quote

from ibrik_client.admin import Admin
from ibrik_client.background import Background
from ibrik_client.calls import Resource
from ibrik_client.errors import IbrikError, InvalidRequest
from ibrik_client.leasing import Lease
from ibrik_client.messages import Ack, Headers, RawAck, encode_envelope, key_bytes, payload_of
from ibrik_client.publisher import (
    NDJSON,
    RAW_BATCH,
    Identities,
    Publisher,
    batch_results,
    raw_results,
)
from ibrik_client.reading import Reader, topic_path
from ibrik_client.retry import RetryPolicy, with_retries
from ibrik_client.subscribing import MAX_IN_FLIGHT, WAIT_S, Subscription
from ibrik_client.transport import REQUEST_TIMEOUT_S, Answer, Transport


class Client(Reader):
    """Publish, read, follow, subscribe; `admin` manages topics. Made by `connect`."""

    def __init__(
        self,
        transport: Transport,
        policy: RetryPolicy,
        *,
        admin: Admin,
        background: Background,
    ) -> None:
        super().__init__(transport, policy)
        self.admin = admin
        self._background = background
        self._identities = Identities()

    async def publish(
        self,
        topic: str,
        value: Any,
        *,
        key: Any = None,
        headers: Headers | None = None,
        id: str | None = None,  # noqa: A002 - the field's word
        partition: int | None = None,
        acks: str = "durable",
        deadline_s: float | None = None,
    ) -> Ack:
        """Publish one message: bytes as they are, text as UTF-8, anything else as JSON.

        Without an `id` one is made, so that a retry never doubles the message. Raises Unavailable
        when the deadline passes: the message may or may not be there, and the same id is safe.
        With acks="none" nothing is promised: no id is made and nothing is repeated.
        """
        if acks == "none":
            # Nobody waits for such a message, so nobody knows whether to send it again.
            identity, deadline_s = id, 0
        else:
            identity = id or self._identities.next()
        if value is None:
            envelope = encode_envelope(
                None, key=key, headers=headers, identity=identity, partition=partition
            )
            return await self._publish_envelope(topic, envelope, identity, acks, deadline_s)
        content, content_type = payload_of(value)
        sent = _message_headers(key, headers, identity, partition)
        sent.setdefault("Content-Type", content_type or "application/octet-stream")

        async def attempt() -> Answer:
            return await self._transport.request(
                "POST",
                f"{topic_path(topic)}/messages",
                params={"acks": acks},
                headers=sent,
                body=content,
            )

        answer = await with_retries(self._policy, attempt, deadline_s=deadline_s)
        document = answer.json()
        return Ack(
            partition=document["partition"],
            offset=document.get("offset", -1),
            durability=document["durability"],
            is_duplicate=answer.headers.get("Ibrik-Duplicate") == "true",
            timestamp=document.get("timestamp", ""),
            id=identity or "",
        )

    async def publish_many(self, topic: str, values: Iterable[Any], **options: Any) -> list[Ack]:
        """Publish values in batches and in order; `options` are those of `Publisher.send`.

        Raises the first failure. For keys per message or a stream of messages use `publisher`.
        """
        async with self.publisher(topic) as publisher:
            futures = [await publisher.send(value, **options) for value in values]
        return [future.result() for future in futures]

    async def publish_raw(self, topic: str, batches: bytes, *, partition: int) -> list[RawAck]:
        """Publish record batches (Kafka's format v2) as they are, into one partition.

        A batch with a producer's id and sequence is repeated safely, however much later; one
        without may be doubled by a retry. A hole in the sequence is refused with
        `out-of-order-sequence`, whose `expected_sequence` is in the problem document.
        """

        async def attempt() -> Answer:
            return await self._transport.request(
                "POST",
                f"{topic_path(topic)}/batch",
                headers={"Content-Type": RAW_BATCH, "Ibrik-Partition": str(partition)},
                body=batches,
            )

        return raw_results((await with_retries(self._policy, attempt)).json())

    def publisher(
        self, topic: str, *, acks: str = "durable", deadline_s: float | None = None, **limits: int
    ) -> Publisher:
        """A batching publisher; `limits` are batch_records, batch_bytes and pending_bytes."""
        policy = self._policy
        if deadline_s is not None:
            policy = RetryPolicy(deadline_s, policy.first_wait_s, policy.longest_wait_s)
        return Publisher(
            self._transport,
            topic,
            path=f"{topic_path(topic)}/batch",
            policy=policy,
            acks=acks,
            **limits,
        )

    def subscribe(
        self,
        subscription: str,
        *,
        max_in_flight: int = MAX_IN_FLIGHT,
        consumer: str | None = None,
        extend: bool = True,
    ) -> Subscription:
        """The messages of a subscription, for one `async for`; each is settled by its own block.

        At most `max_in_flight` messages are leased and not settled. `consumer` names this consumer
        (an exclusive subscription serves one at a time). With `extend` leases last until settled.
        """
        # A wait takes from the time that a request may take with all its repetitions.
        deadline_s = self._policy.deadline_s
        return Subscription(
            subscription,
            self.admin,
            self._background,
            max_in_flight=max_in_flight,
            consumer=consumer,
            extend=extend,
            wait_s=min(WAIT_S, deadline_s / 2) if deadline_s > 0 else WAIT_S,
        )

    async def lease(
        self, subscription: str, *, max_messages: int = 100, wait_s: float = 0, consumer: str = ""
    ) -> list[Lease]:
        """Messages to settle by yourself, with `ack` and `admin.nack`; see `subscribe` for more."""
        return await self.admin.lease(
            subscription, max_messages=max_messages, wait_s=wait_s, consumer=consumer
        )

    async def ack(self, subscription: str, leases: Sequence[Lease]) -> list[Resource]:
        """Done with these; the leases that did not count any more, and why."""
        return await self.admin.ack(subscription, [lease.token for lease in leases])

    async def _publish_envelope(
        self, topic: str, envelope: bytes, identity: str | None, acks: str, deadline_s: float | None
    ) -> Ack:
        async def attempt() -> Answer:
            return await self._transport.request(
                "POST",
                f"{topic_path(topic)}/batch",
                params={"acks": acks},
                headers={"Content-Type": NDJSON},
                body=envelope,
            )

        answer = await with_retries(self._policy, attempt, deadline_s=deadline_s)
        result = batch_results(answer.json(), 1)[0]
        if isinstance(result, IbrikError):
            raise result
        return result._replace(id=identity or "")


def _message_headers(
    key: Any, headers: Headers | None, identity: str | None, partition: int | None
) -> dict[str, str]:
    sent = {} if identity is None else {"Idempotency-Key": identity}
    raw_key = key_bytes(key)
    if raw_key is not None:
        sent["Ibrik-Key"] = quote(raw_key, safe="")
    if partition is not None:
        sent["Ibrik-Partition"] = str(partition)
    for name, text in (headers or {}).items():
        if text is None:
            raise InvalidRequest(f"header {name!r} has no value, which HTTP cannot say")
        is_own = name.lower() in ("content-type", "traceparent") or name.lower().startswith("ce-")
        sent[name if is_own else f"Ibrik-Meta-{name}"] = text if is_own else quote(text, safe=" ")
    return sent


@asynccontextmanager
async def connect(
    url: str = "http://127.0.0.1:8080",
    *,
    admin_url: str | None = None,
    token: str | None = None,
    admin_token: str | None = None,
    namespace: str = "default",
    timeout_s: float = REQUEST_TIMEOUT_S,
    retry: RetryPolicy | None = None,
) -> AsyncIterator[Client]:
    """A client for the broker at `url`. Nothing is sent before the first call.

    `timeout_s` bounds one attempt, `retry.deadline_s` all attempts of one call.
    """
    async with AsyncExitStack() as stack:
        data = await stack.enter_async_context(Transport(url, token=token, timeout_s=timeout_s))
        admin = None
        if admin_url is not None:
            admin = await stack.enter_async_context(
                Transport(admin_url, token=admin_token, timeout_s=timeout_s)
            )
        policy = retry or RetryPolicy()
        background = await stack.enter_async_context(Background())
        yield Client(
            data,
            policy,
            admin=Admin(data, admin, policy, namespace),
            background=background,
        )
