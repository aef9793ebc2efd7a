"""Publishing: validate all, find repeats, hand each partition its share, gather the receipts.

One future per request, none per record. What must happen when records become durable (the window
learns their ids) happens in the callback, so a producer that left early changes nothing.
"""

import asyncio
from collections.abc import Callable, Sequence

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.deduplication import (
    Known,
    Pending,
    identity_digest,
    payload_digest,
)
from ibrik_broker.partitions.messages import Acks, Append, Message, Outcome, Receipt
from ibrik_broker.partitions.topic import Topic

RECORD_OVERHEAD_BYTES = 32
"""What a record costs in a batch besides key, value and headers, at most (varints and deltas)."""


def record_bytes(message: Message) -> int:
    """The size that counts against the limits: key, value and headers."""
    key, value, headers = message.record
    size = len(value or b"") + len(key or b"")
    for name, content in headers:
        size += len(name) + len(content or b"")
    return size


class PublishRequest:
    """One publish on its way: which messages went where, and the future its producer waits for."""

    def __init__(self, topic: Topic, messages: Sequence[Message], acks: Acks) -> None:
        self.topic = topic
        self.messages = messages
        # A message with an id is waited for in any case: its offset is what a repeat is told.
        self.waits = acks is Acks.DURABLE or any(m.id is not None for m in messages)
        self.receipts: list[Receipt | None] = [None] * len(messages)
        self.refusal: Refusal | None = None
        self.answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._missing_count = (
            1  # the submission itself: no answer before all shares are on their way
        )
        self._identities: dict[int, tuple[bytes, bytes]] = {}  # index → (identity, payload digest)
        self._own_twins: list[tuple[int, int]] = []  # index → index of the first with this id
        self._followers: list[Callable[[], None]] = []  # of other requests with twins of ours

    def run(self, now_ms: int) -> None:
        """Validate, then submit; nothing is submitted when anything is wrong."""
        places = self._validate()
        followed = self._find_repeats(now_ms)
        twins = {index for index, _ in self._own_twins} | {index for index, _ in followed}
        shares: dict[int, list[int]] = {}
        for index, partition in enumerate(places):
            if self.receipts[index] is None and index not in twins:
                shares.setdefault(partition, []).append(index)
        for index, (identity, payload) in self._identities.items():
            self.topic.window.begin(identity, Pending(self, index, payload))
        for index, pending in followed:
            self._follow(index, pending)
        self._missing_count += len(shares)
        for partition, indexes in shares.items():
            self._submit(partition, indexes)
        self._one_less()

    # --- before anything is written ---------------------------------------------------------

    def _validate(self) -> list[int]:
        """The partition of every message; raises before the first one is submitted."""
        topic, limit = self.topic, self.topic.settings.max_message_bytes
        places = []
        for index, message in enumerate(self.messages):
            size = record_bytes(message)
            if size > limit:
                raise Refusal(
                    "message-too-large",
                    f"The message has {size:,} bytes with key and headers; '{topic.name}' takes"
                    f" {limit:,}. Send it in parts, or raise spec.maxMessageBytes.",
                    errors=[{"pointer": f"/messages/{index}", "detail": f"{size} bytes"}],
                )
            if message.partition is None:
                places.append(topic.choose_partition(message.record.key))
            else:
                places.append(topic.partition(message.partition).index)
        return places

    def _find_repeats(self, now_ms: int) -> list[tuple[int, Pending]]:
        """Answer repeats from the window; return those whose twin is still on its way."""
        own: dict[bytes, int] = {}
        followed: list[tuple[int, Pending]] = []
        for index, message in enumerate(self.messages):
            if message.id is None:
                continue
            identity = identity_digest(message.id, message.source)
            payload = payload_digest(message.record)
            if identity in own:
                self._own_twins.append((index, own[identity]))
                known_payload = self._identities[own[identity]][1]
            elif (found := self.topic.window.find(identity, now_ms)) is not None:
                known_payload = found.payload
                if isinstance(found, Pending):
                    followed.append((index, found))
                else:
                    self.receipts[index] = self._repeat(found)
            else:
                own[identity] = index
                self._identities[index] = (identity, payload)
                continue
            if known_payload != payload:
                raise _mismatch(message.id, index)
            self.topic.duplicate_count += 1
        return followed

    def _repeat(self, known: Known) -> Receipt:
        durability = self.topic.settings.durability
        return Receipt(known.partition, known.offset, known.timestamp_ms, durability, True)

    # --- on the way ---------------------------------------------------------------------------

    def _submit(self, partition: int, indexes: list[int]) -> None:
        records = [self.messages[index].record for index in indexes]
        size_bytes = sum(record_bytes(self.messages[i]) + RECORD_OVERHEAD_BYTES for i in indexes)
        append = Append(size_bytes, self._on_share(partition, indexes), records, waits=self.waits)
        self.topic.partitions[partition].submit(append)

    def _on_share(self, partition: int, indexes: list[int]) -> Callable[[Outcome], None]:
        def on_outcome(outcome: Outcome) -> None:
            base_offset, timestamp_ms, durability, is_duplicate, refusal = outcome
            for position, index in enumerate(indexes):
                offset = base_offset if base_offset < 0 else base_offset + position
                if refusal is None:
                    self.receipts[index] = Receipt(
                        partition, offset, timestamp_ms, durability, is_duplicate
                    )
                if index in self._identities:
                    self._settle(index, partition, offset, timestamp_ms)
            self.refusal = self.refusal or refusal
            self._one_less()

        return on_outcome

    def _settle(self, index: int, partition: int, offset: int, timestamp_ms: int) -> None:
        identity, payload = self._identities[index]
        is_known = offset >= 0
        self.topic.window.settle(
            identity, Known(partition, offset, timestamp_ms, payload) if is_known else None
        )

    def _follow(self, index: int, pending: Pending) -> None:
        """A twin in flight waits for the first one's result and shares it."""
        first, first_index = pending.request, pending.position
        assert isinstance(first, PublishRequest)
        self._missing_count += 1

        def on_first_settled() -> None:
            self._share(index, first.receipts[first_index], first.refusal)
            self._one_less()

        first._followers.append(on_first_settled)

    def _share(self, index: int, receipt: Receipt | None, refusal: Refusal | None) -> None:
        if receipt is None:
            self.refusal = self.refusal or refusal
        else:
            self.receipts[index] = receipt._replace(is_duplicate=True)

    def _one_less(self) -> None:
        self._missing_count -= 1
        if self._missing_count:
            return
        for index, first_index in self._own_twins:
            self._share(index, self.receipts[first_index], self.refusal)
        if not self.answered.done():
            self.answered.set_result(None)
        for on_settled in self._followers:
            on_settled()


def _mismatch(message_id: bytes, index: int) -> Refusal:
    return Refusal(
        "idempotency-mismatch",
        f"The id {message_id.decode(errors='replace')!r} was used with another key or value within"
        " the deduplication window. Give a new message a new id.",
        errors=[{"pointer": f"/messages/{index}", "detail": "same id, other payload"}],
    )
