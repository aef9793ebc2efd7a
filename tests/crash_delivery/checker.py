"""Compares what receivers saw with what the logs hold. Pure: fed with events in their order.

The rules, for each subscription: a message that it wants arrives at least once or is a dead letter;
fire and forget at most once; a message of a lane begins only when all before it are done, and never
after a later one; attempts of a message rise and stay within the limit; what was settled is not
leased again; cursors stand still or rise; a dead letter is written once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.crash_delivery.diary import Begun, Ended, Event, Place, Settled
from tests.crash_delivery.stage import Part

MAX_SENTENCES = 40
DEAD_STATUSES = frozenset({400})

KINDS = {
    "below_once": "below once",
    "above_once": "fireAndForget above once",
    "disordered": "out of order",
    "beyond_limit": "attempts beyond the limit",
    "miscounted": "attempts forgotten or doubled",
    "backwards": "cursors backwards",
    "dead_lost": "dead letters lost",
    "dead_twice": "dead letters twice",
    "misfiltered": "filtered wrongly",
    "leased_again": "leases acknowledged and delivered again",
}


@dataclass(slots=True)
class Findings:
    below_once: int = 0
    above_once: int = 0
    disordered: int = 0
    beyond_limit: int = 0
    miscounted: int = 0
    backwards: int = 0
    dead_lost: int = 0
    dead_twice: int = 0
    misfiltered: int = 0
    leased_again: int = 0
    sentences: list[str] = field(default_factory=list)

    def note(self, kind: str, sentence: str) -> None:
        setattr(self, kind, getattr(self, kind) + 1)
        if len(self.sentences) < MAX_SENTENCES:
            self.sentences.append(f"{KINDS[kind]}: {sentence}")

    @property
    def are_none(self) -> bool:
        return not any(getattr(self, kind) for kind in KINDS)

    def __str__(self) -> str:
        return ", ".join(f"{words} {getattr(self, kind):,}" for kind, words in KINDS.items())


class Stored(NamedTuple):
    """A message as the log holds it."""

    name: str
    key: str
    colour: str


class DeadLetter(NamedTuple):
    """A dead letter; `message` is what its bytes, key and headers are."""

    message: Stored
    at_ms: int


Log = Mapping[Place, Stored]


@dataclass(slots=True)
class Attempt:
    place: Place
    attempt: int


@dataclass(slots=True)
class Lane:
    """Messages that may not overtake each other, in the order of the log."""

    places: list[Place] = field(default_factory=list)
    done: int = 0
    """All before this index are done."""
    furthest: int = -1
    """Index of the last one that began."""


class PartChecker:
    """One subscription."""

    def __init__(
        self,
        part: Part,
        log: Log,
        dead_letters: Mapping[Place, DeadLetter],
        findings: Findings,
    ) -> None:
        self.delivered = 0
        self._part = part
        self._log = log
        self._dead = dead_letters
        self._findings = findings
        self._open: dict[int, Attempt] = {}
        self._last_attempts: dict[Place, int] = {}
        self._done: set[Place] = set()
        self._settled: set[Place] = set()
        self._doomed: set[Place] = set()
        """Those whose last attempt failed, or that were refused for good."""
        self._lanes: dict[str, Lane] = {}
        self._index: dict[Place, tuple[Lane, int]] = {}
        self._make_lanes()

    def take(self, event: Event) -> None:
        match event:
            case Begun():
                self._begin(event)
            case Ended(number, status):
                self._end(self._open[number], status)
            case Settled(number):
                self._settled.add(self._open[number].place)

    def judge(self) -> None:
        """When everything has been taken: what is missing?"""
        if self._part.is_once:
            return
        for place, message in self._log.items():
            dead = self._dead.get(place)
            if dead is not None and dead.message != message:
                self._note("dead_lost", place, f"its dead letter is {dead.message}")
            if dead is None and place not in self._done and self._part.wants(message.colour):
                kind = "dead_lost" if place in self._doomed else "below_once"
                last = self._last_attempts.get(place, 0)
                self._note(kind, place, f"{message.name} never arrived; {last} attempts were seen")

    def _make_lanes(self) -> None:
        if self._part.ordering == "none":
            return
        for place in sorted(self._log):
            message = self._log[place]
            if self._part.wants(message.colour):
                within = message.key if self._part.ordering == "key" else ""
                lane = self._lanes.setdefault(f"{place.partition} {within}", Lane())
                self._index[place] = lane, len(lane.places)
                lane.places.append(place)

    def _begin(self, begun: Begun) -> None:
        place = begun.place
        self._open[begun.number] = Attempt(place, begun.attempt)
        stored = self._log.get(place)
        if stored is None or stored.name != begun.message or not self._part.wants(stored.colour):
            self._note("misfiltered", place, f"holds {stored}, {begun.message!r} was delivered")
            return
        self._count(place, begun.attempt)
        if place in self._settled:
            self._note("leased_again", place, f"attempt {begun.attempt} after it was settled")
        if place in self._index:
            self._order(begun)

    def _count(self, place: Place, attempt: int) -> None:
        last = self._last_attempts.get(place)
        if last is not None and self._part.is_once:
            self._note("above_once", place, "arrived again")
        elif last is not None and attempt <= last:
            self._note("miscounted", place, f"attempt {attempt} after attempt {last}")
        if attempt > self._part.max_attempts:
            self._note("beyond_limit", place, f"attempt {attempt} of {self._part.max_attempts}")
        self._last_attempts[place] = max(attempt, last or 0)

    def _order(self, begun: Begun) -> None:
        lane, index = self._index[begun.place]
        while lane.done < index and self._is_done(lane.places[lane.done], begun.at_ms):
            lane.done += 1
        if lane.done < index:
            earlier = lane.places[lane.done]
            self._note("disordered", begun.place, f"began before {earlier} was done")
        if index < lane.furthest:
            later = lane.places[lane.furthest]
            self._note("disordered", begun.place, f"attempt {begun.attempt} after {later} began")
        lane.furthest = max(index, lane.furthest)

    def _is_done(self, place: Place, at_ms: int) -> bool:
        """Whether it was taken, or stood in the dead letters by that time."""
        dead = self._dead.get(place)
        return place in self._done or (dead is not None and dead.at_ms <= at_ms)

    def _end(self, attempt: Attempt, status: int | None) -> None:
        if status is not None and 200 <= status <= 299:
            self._done.add(attempt.place)
            self.delivered += 1
        elif status is not None and (
            status in DEAD_STATUSES or attempt.attempt >= self._part.max_attempts
        ):
            self._doomed.add(attempt.place)

    def _note(self, kind: str, place: Place, sentence: str) -> None:
        self._findings.note(kind, f"{self._part.name} {self._part.topic}/{place}: {sentence}")


def check_parts(
    parts: Iterable[Part],
    logs: Mapping[str, Log],
    dead_letters: Mapping[str, Mapping[Place, DeadLetter]],
    events: Iterable[Event],
    findings: Findings,
) -> int:
    """Judge everything that receivers saw; the number of deliveries."""
    checkers = {
        part.name: PartChecker(part, logs[part.topic], dead_letters[part.name], findings)
        for part in parts
    }
    owners: dict[int, PartChecker] = {}
    for event in events:
        if isinstance(event, Begun):
            owners[event.number] = checkers[event.subscription]
        owners[event.number].take(event)
    for checker in checkers.values():
        checker.judge()
    return sum(checker.delivered for checker in checkers.values())


def check_published(
    acknowledged: Mapping[tuple[str, str], Place], logs: Mapping[str, Log], findings: Findings
) -> None:
    """What was acknowledged has to be in the log: no subscription could deliver it else."""
    for (topic, name), place in acknowledged.items():
        stored = logs[topic].get(place)
        if stored is None or stored.name != name:
            findings.note("below_once", f"{topic}/{place} holds {stored}, not {name}")


def by_place(
    part: Part, letters: Iterable[tuple[Place, DeadLetter]], findings: Findings
) -> dict[Place, DeadLetter]:
    """The dead letters of a subscription, read in their order; each message has one."""
    found: dict[Place, DeadLetter] = {}
    for place, letter in letters:
        if place in found:
            findings.note("dead_twice", f"{part.name} {part.topic}/{place}: another {letter}")
        found.setdefault(place, letter)
    return found


class Cursors:
    """The cursors as they were read, in all lives."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._highest: dict[tuple[str, int], int] = {}

    def take(self, subscription: str, partition: int, offset: int, life: int) -> None:
        highest = self._highest.get((subscription, partition), 0)
        if offset < highest:
            self._findings.note(
                "backwards", f"{subscription}/{partition}: {offset} after {highest}, life {life}"
            )
        self._highest[subscription, partition] = max(offset, highest)
