"""Dead letters of a subscription: browse them, deliver their messages again, purge them.

Redriving is by reference: the original message is parked again in its own subscription with all its
attempts, and the same transaction notes that the dead letter is done with. So it goes there only,
by push, lease or stream alike, and neither a repeat nor a crash delivers it twice.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from weakref import WeakKeyDictionary

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.deadletters import dead_letters_of, redriven_id
from ibrik_broker.delivery.dispatcher import Dispatcher
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.letters import Choice, Letter, LetterState, read_letter
from ibrik_broker.delivery.redriven import Redriven
from ibrik_broker.delivery.redriving import Place, RedriveResult, Redriving
from ibrik_broker.delivery.seek import check_offset
from ibrik_broker.delivery.wishes import SubscriptionWish
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic
from ibrik_log.record import StoredRecord

READ_BYTES = 256 * 1024
SCAN_COUNT = 20_000
"""Dead letters that are looked at for one page."""
BATCH_COUNT = 1_000
"""Dead letters named one by one that are noted in one transaction."""
PAGE_BYTES = 4 * 2**20
"""Of the messages of one page; one always fits."""
START = Place(0, 0)


@dataclass(slots=True)
class Page:
    topic: Topic | None
    """None: there never was a dead letter."""
    letters: list[tuple[Letter, LetterState]] = field(default_factory=list)
    next: Place | None = None
    """Where to look on; None: there is nothing more."""
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PurgeResult:
    topic: str
    purged: int


class Redrive:
    def __init__(
        self,
        dispatcher: Dispatcher,
        engine: Engine,
        *,
        purge_topic: Callable[[str], Awaitable[object]],
        ticks_ms: Callable[[], int],
    ) -> None:
        """`purge_topic` empties a topic by name."""
        self._dispatcher = dispatcher
        self._engine = engine
        self._purge_topic = purge_topic
        self._ticks_ms = ticks_ms
        # With the flow that a subscription is served by, what is known of it goes as well.
        self._known: WeakKeyDictionary[Flow, Redriven] = WeakKeyDictionary()
        self._one_loads = asyncio.Lock()

    # --- browse -----------------------------------------------------------------------------------

    async def browse(
        self, subscription_id: str, choice: Choice, *, most: int, start: Place = START
    ) -> Page:
        """Up to `most` dead letters from a place on. Raises Refusal `unknown-subscription`."""
        flow, wish, topic = self._find(subscription_id)
        page = Page(topic)
        if topic is None:
            return page
        redriven = await self._redriven(flow, topic)
        look = _Look(wish=wish, choice=choice, redriven=redriven, most=most)
        looked_at = 0
        async for partition, records in self._scan(topic, start):
            if looked_at >= SCAN_COUNT:
                page.next = Place(partition, records[0].offset)
                return page
            looked_at += len(records)
            if look.fill(page, partition, records):
                return page
        return page

    # --- redrive ----------------------------------------------------------------------------------

    async def redrive(
        self,
        subscription_id: str,
        choice: Choice,
        *,
        places: Sequence[Place] | None = None,
        rate: int | None = None,
        dry_run: bool = False,
    ) -> RedriveResult:
        """Deliver the messages of dead letters again: those that `choice` fits, or those named.

        Durable when it returns. Raises Refusal: unknown-subscription, unknown-topic,
        offset-below-start, offset-above-end, metadata-unavailable …
        """
        flow, wish, topic = self._find(subscription_id)
        result = RedriveResult(dead_letters_of(wish))
        if topic is None:
            return result
        if flow.topic is None:
            raise Refusal(
                "unknown-topic",
                f"The topic '{wish.topic}' is not served, so its messages cannot be delivered.",
            )
        redriven = await self._redriven(flow, topic)
        redriving = Redriving(
            ledger=self._dispatcher.ledger,
            flow=flow,
            wish=wish,
            choice=choice,
            redriven=redriven,
            result=result,
            rate=rate,
            is_dry=dry_run,
        )
        if places is None:
            batches = self._scan(topic, START, redriven)
        else:
            batches = self._named(topic, places)
        async for partition, records in batches:
            self._check_served(flow)
            is_full = redriving.take(partition, records, self._ticks_ms())
            if not dry_run:
                await self._dispatcher.ledger.commit()
            if is_full:
                result.is_complete = False
                break
        return result

    # --- purge ------------------------------------------------------------------------------------

    async def purge(self, subscription_id: str, *, dry_run: bool = False) -> PurgeResult:
        """Delete the dead letters, redriven or not; their messages stay where they are.

        Raises Refusal `resource-conflict` when other subscriptions have theirs in the same topic.
        """
        flow, wish, topic = self._find(subscription_id)
        name = dead_letters_of(wish)
        if topic is None:
            return PurgeResult(name, 0)
        self._refuse_shared(flow, name)
        count = sum(partition.latest - partition.earliest for partition in topic.partitions)
        if not dry_run:
            await self._purge_topic(name)
            redriven = await self._redriven(flow, topic)
            for part in redriven.parts:
                self._dispatcher.ledger.touch(part)
            await self._dispatcher.ledger.commit()
        return PurgeResult(name, count)

    def _refuse_shared(self, flow: Flow, name: str) -> None:
        for other in self._dispatcher.flows():
            if other is flow or other.carrier is None or other.carrier.wish.name == "":
                continue
            if dead_letters_of(other.carrier.wish) == name:
                raise Refusal(
                    "resource-conflict",
                    f"The dead letters of '{other.plan.name}' are in '{name}' as well. To delete "
                    f"those of both, purge the topic: POST /v1/topics/{name}:purge.",
                )

    # --- parts ------------------------------------------------------------------------------------

    def _find(self, subscription_id: str) -> tuple[Flow, SubscriptionWish, Topic | None]:
        """The subscription, and the topic of its dead letters unless there never was one."""
        flow = self._dispatcher.flow(subscription_id)
        assert flow.carrier is not None, "a flow that is served has someone who carries"
        wish = flow.carrier.wish
        try:
            return flow, wish, self._engine.topic(dead_letters_of(wish))
        except Refusal as refusal:
            if refusal.code != "unknown-topic":
                raise
            return flow, wish, None

    def _check_served(self, flow: Flow) -> None:
        """While something was read, the subscription may have ended or changed."""
        if self._dispatcher.flow(flow.id) is not flow:
            raise Refusal(
                "precondition-failed",
                f"The subscription '{flow.plan.name}' was changed meanwhile. Redrive again: what "
                "is redriven already stays so.",
            )

    async def _redriven(self, flow: Flow, topic: Topic) -> Redriven:
        async with self._one_loads:
            known = self._known.get(flow)
            if known is None or known.topic_id != topic.id or known.is_fenced:
                await self._dispatcher.ledger.commit()
                state = await self._dispatcher.store.load(redriven_id(flow.id))
                known = self._known[flow] = Redriven(flow.id, topic, state.cursors)
        known.keep_up(topic)
        return known

    async def _scan(
        self, topic: Topic, start: Place, redriven: Redriven | None = None
    ) -> AsyncIterator[tuple[int, list[StoredRecord]]]:
        """All that is there from a place on; with `redriven` from the first that is not."""
        for partition in topic.partitions[start.partition :]:
            offset = start.offset if partition.index == start.partition else 0
            if redriven is not None:
                offset = redriven.parts[partition.index].progress.next_offset
            end = partition.latest
            while (offset := max(offset, partition.earliest)) < end:
                records, offset = await self._read(partition, offset)
                if records:
                    yield partition.index, records
                await asyncio.sleep(0)  # a filter may take its time, and others want to go on

    async def _read(self, partition: Partition, offset: int) -> tuple[list[StoredRecord], int]:
        """Records from an offset on, and where to go on."""
        try:
            records = await self._dispatcher.reader.read(partition, offset, READ_BYTES)
        except Refusal as refusal:
            if refusal.code == "corrupt-range":
                return [], refusal.facts["to_offset"]
            if refusal.code == "offset-below-start":  # purged while it was looked at
                return [], refusal.facts["earliest"]
            raise
        return records, records[-1].offset + 1 if records else partition.latest

    async def _named(
        self, topic: Topic, places: Iterable[Place]
    ) -> AsyncIterator[tuple[int, list[StoredRecord]]]:
        """The dead letters at these places, one by one. Nothing is done before all are there."""
        chosen = sorted(set(places))
        for place in chosen:
            partition = topic.partition(place.partition)
            check_offset(topic, partition, place.offset)
            check_offset(topic, partition, place.offset + 1)
        for partition, offsets in groupby(chosen, attrgetter("partition")):
            batch, size_bytes = [], 0
            for place in offsets:
                records, _ = await self._read(topic.partition(partition), place.offset)
                batch += [record for record in records[:1] if record.offset == place.offset]
                size_bytes += sum(len(record.value or b"") for record in records[:1])
                if size_bytes >= READ_BYTES or len(batch) >= BATCH_COUNT:
                    yield partition, batch
                    batch, size_bytes = [], 0
            if batch:
                yield partition, batch


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What one page is to hold."""

    wish: SubscriptionWish
    choice: Choice
    redriven: Redriven
    most: int

    def fill(self, page: Page, partition: int, records: Sequence[StoredRecord]) -> bool:
        """Add what fits; True when the page is full."""
        for record in records:
            if len(page.letters) >= self.most or page.size_bytes >= PAGE_BYTES:
                page.next = Place(partition, record.offset)
                return True
            letter = read_letter(partition, record, self.wish)
            if letter is None:
                continue
            is_redriven = self.redriven.is_redriven(partition, record.offset)
            state = LetterState.REDRIVEN if is_redriven else LetterState.DEAD
            if self.choice.fits(letter, state):
                page.letters.append((letter, state))
                page.size_bytes += len(record.value or b"") + len(record.key or b"")
        return False
