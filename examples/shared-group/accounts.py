"""The ending: every flight is accounted for, from the workers' ledgers and the source. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ledger import Done, Ledger, Place


class Expected(NamedTuple):
    """What has to be at a place of the topic."""

    checksum: int
    carrier: str
    distance: int


@dataclass
class Accounts:
    """What the ledgers come to."""

    in_hand: int = 0
    """Leased by a killed worker that did not hear of an acknowledgement."""
    untouched: int = 0
    """Those of them that it had not done."""
    again: int = 0
    """Handed out a second time."""
    twice: int = 0
    """Places that were done twice."""
    carriers: Counter[str] = field(default_factory=Counter)
    distance: int = 0
    """As the carriers: once for each place."""
    faults: list[str] = field(default_factory=list)


def settle(
    expected: Mapping[Place, Expected], ledgers: Mapping[str, Ledger], killed: Iterable[str]
) -> Accounts:
    """Account for every place; `killed` names the workers that may leave something open."""
    accounts = Accounts()
    killed = set(killed)
    done = [d for ledger in ledgers.values() for d in (*ledger.acked, *ledger.open)]
    unheard = {d.place for name in killed for d in ledgers[name].open}
    accounts.in_hand = sum(ledgers[name].in_hand for name in killed)
    accounts.untouched = sum(ledgers[name].untouched for name in killed)
    accounts.again = sum(d.attempt > 1 for d in done)
    counts = Counter(d.place for d in done)
    twice = {place for place, count in counts.items() if count > 1}
    accounts.twice = len(twice)
    _sum_up(accounts, done)
    accounts.faults = [
        fault
        for is_fault, fault in (
            (
                any(ledger.in_hand for name, ledger in ledgers.items() if name not in killed),
                "a worker that was not killed left flights without an acknowledgement",
            ),
            (
                not accounts.untouched <= accounts.again <= accounts.in_hand,
                f"{accounts.again:,} flights were handed out again; the killed workers had taken "
                f"{accounts.in_hand:,} and not touched {accounts.untouched:,} of them",
            ),
            (counts.keys() != expected.keys(), _differing(counts.keys() ^ expected.keys())),
            (
                not twice <= unheard,
                f"{len(twice - unheard):,} places were done twice by workers that lived",
            ),
            (
                any(count > 2 for count in counts.values()),
                "a place was done more than twice",
            ),
            (
                any(expected.get(d.place) != (d.checksum, d.carrier, d.distance) for d in done),
                "a worker saw another flight than was published there",
            ),
        )
        if is_fault
    ]
    return accounts


def _sum_up(accounts: Accounts, done: Iterable[Done]) -> None:
    for each in {d.place: d for d in done}.values():
        accounts.carriers[each.carrier] += 1
        accounts.distance += each.distance


def _differing(places: Iterable[Place]) -> str:
    shown = sorted(places)
    return f"{len(shown):,} places are missing or were never published, such as {shown[:3]}"
