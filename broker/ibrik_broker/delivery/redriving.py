"""Redriving, dead letter by dead letter: what is decided without waiting in between.

So two requests at once never take the same one. `redrive.py` reads what is decided about here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from ibrik_api.timestamps import format_timestamp
from ibrik_broker.delivery.flow import Flow
from ibrik_broker.delivery.ledger import Ledger
from ibrik_broker.delivery.letters import Choice, Letter, LetterState, Origin, read_letter
from ibrik_broker.delivery.redriven import Redriven
from ibrik_broker.delivery.wishes import SubscriptionWish
from ibrik_log.record import StoredRecord

REDRIVE_MAX = 100_000
"""Dead letters that one request redrives: each is a row, and a reference in memory."""
EXPIRED_SHOWN = 100


class Place(NamedTuple):
    """Of a dead letter in its topic."""

    partition: int
    offset: int


@dataclass(slots=True)
class RedriveResult:
    """What became of the dead letters that were meant; those redriven before are not among them."""

    topic: str
    matched: int = 0
    redriven: int = 0
    waiting: int = 0
    """The message is on its way to the subscription anyway."""
    expired: int = 0
    """The original is not in its topic any more: the dead letter stays."""
    expired_first: list[tuple[Place, Origin]] = field(default_factory=list)
    is_complete: bool = True
    """Whether all that were meant were looked at; else ask again."""


class Fate(Enum):
    REDRIVEN = "redriven"
    WAITING = "waiting"
    EXPIRED = "expired"


@dataclass(slots=True, kw_only=True)
class Redriving:
    """One request to redrive."""

    ledger: Ledger
    flow: Flow
    wish: SubscriptionWish
    choice: Choice
    redriven: Redriven
    result: RedriveResult
    rate: int | None
    is_dry: bool
    _seen: set[tuple[int, int]] = field(default_factory=set)
    """Messages of a dry run: two dead letters may be of one."""

    def take(self, partition: int, records: Sequence[StoredRecord], now_ticks: int) -> bool:
        """Redrive what is meant of these; True: this request may not do more."""
        result = self.result
        for record in records:
            if self.redriven.is_redriven(partition, record.offset):
                continue
            if result.redriven >= REDRIVE_MAX or self.redriven.parts[partition].is_full:
                return True
            letter = read_letter(partition, record, self.wish)
            if letter is None:
                self._settle(partition, record.offset)  # nobody's, so no hole in what is kept
                continue
            if not self.choice.fits(letter, LetterState.DEAD):
                continue
            result.matched += 1
            match self._redrive(letter, now_ticks):
                case Fate.REDRIVEN:
                    result.redriven += 1
                case Fate.WAITING:
                    result.waiting += 1
                case Fate.EXPIRED:
                    result.expired += 1
                    if len(result.expired_first) < EXPIRED_SHOWN:
                        place = Place(partition, letter.offset)
                        result.expired_first.append((place, letter.origin))
        return False

    def _redrive(self, letter: Letter, now_ticks: int) -> Fate:
        flow, origin = self.flow, letter.origin
        if not _is_there(flow, origin):
            return Fate.EXPIRED
        place = (origin.partition, origin.offset)
        first_ms = _on_its_way(flow, *place)
        if first_ms is not None or place in self._seen:
            # Its very dead letter may just be written: then it stays dead, or it would be lost.
            if first_ms is None or format_timestamp(first_ms) != letter.first_attempt:
                self._settle(letter.partition, letter.offset)
            return Fate.WAITING
        if self.is_dry:
            self._seen.add(place)
            return Fate.REDRIVEN
        after_ms = 0 if self.rate is None else self.result.redriven * 1_000 // self.rate
        flow.redrive(*place, now_ticks + after_ms)
        self._settle(letter.partition, letter.offset)
        return Fate.REDRIVEN

    def _settle(self, partition: int, offset: int) -> None:
        if not self.is_dry:
            self.redriven.settle(self.ledger, partition, offset)


def _is_there(flow: Flow, origin: Origin) -> bool:
    """Whether the original can be read in the topic that the subscription is about."""
    topic = flow.topic
    if topic is None or origin.topic_id != topic.id:
        return False
    if origin.partition >= min(len(topic.partitions), len(flow.parts)):
        return False
    source = topic.partitions[origin.partition]
    return source.earliest <= origin.offset < source.latest


def _on_its_way(flow: Flow, partition: int, offset: int) -> int | None:
    """When the first attempt was or will be, of a message that will be delivered anyway.

    None: nobody delivers it. 0: it waits in the log, behind a cursor that was moved back.
    """
    part = flow.parts[partition]
    if offset in part.in_hand:
        return part.in_hand[offset].first_ms
    parked = flow.parked.get(partition, offset)
    if parked is not None:
        return parked.first_ms
    return None if part.progress.is_settled(offset) else 0
