"""What the demo checks: the log against the source, and the log against the acknowledgements."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from flights import Flight

import ibrik_client

# Known of the source, so that a mistake in reading it cannot agree with itself.
FLIGHTS, CARRIERS, DISTANCE = 336_776, 16, 350_217_607
KNOWN_COUNTS = {"UA": 58_665, "AA": 32_729}
Place = tuple[int, int]
"""Partition and offset."""


class CheckFailed(Exception):
    """The demo found something that must not be; the text says what."""


@dataclass
class ReadBack:
    """What was found in the log."""

    values: dict[Place, bytes] = field(default_factory=dict)
    carriers: Counter[str] = field(default_factory=Counter)
    distance: int = 0
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    """First and next offset of each partition."""


class _Event(msgspec.Struct):
    carrier: str
    distance: int


async def read_back(
    ibrik: ibrik_client.Client, topic: str, starts: Mapping[int, int] | None = None
) -> ReadBack:
    """Read every partition from its start, or from `starts`, to its end."""
    found = ReadBack()
    decoder = msgspec.json.Decoder(_Event)
    for part in await ibrik.ranges(topic):
        start = starts[part.partition] if starts else part.earliest
        found.ranges[part.partition] = (start, part.latest)
        async for message in ibrik.scan(topic, part.partition, start, end=part.latest):
            event = decoder.decode(message.value or b"")
            found.values[message.partition, message.offset] = message.value or b""
            found.carriers[event.carrier] += 1
            found.distance += event.distance
    return found


def check_source(flights: Sequence[Flight]) -> Counter[str]:
    """Flights per carrier, after checking the source against what is known of it."""
    carriers = Counter(flight.carrier for flight in flights)
    check(len(flights) == FLIGHTS, f"the source has {len(flights):,} flights, not {FLIGHTS:,}")
    check(len(carriers) == CARRIERS, f"the source has {len(carriers)} carriers, not {CARRIERS}")
    for carrier, count in KNOWN_COUNTS.items():
        check(carriers[carrier] == count, f"{carrier} has {carriers[carrier]:,}, not {count:,}")
    distance = sum(flight.distance for flight in flights)
    check(distance == DISTANCE, f"the distances add up to {distance:,}, not {DISTANCE:,}")
    return carriers


def check_acknowledged(
    found: ReadBack, flights: Sequence[Flight], acks: Sequence[ibrik_client.Ack]
) -> None:
    """Every acknowledged place holds exactly the event that was acknowledged there."""
    places = {(ack.partition, ack.offset) for ack in acks}
    check(len(places) == len(acks), f"{len(acks) - len(places)} acknowledgements share a place")
    missing = sum(place not in found.values for place in places)
    check(missing == 0, f"{missing:,} acknowledged events are missing")
    wrong = sum(
        found.values[ack.partition, ack.offset] != flight.event
        for flight, ack in zip(flights, acks, strict=True)
    )
    check(wrong == 0, f"{wrong:,} places hold another event than was acknowledged")
    extra = len(found.values) - len(places)
    check(extra == 0, f"{extra:,} events are there twice")


def check_order(acks: Sequence[ibrik_client.Ack]) -> None:
    """Within a partition the offsets rise in the order of publishing."""
    last: dict[int, int] = {}
    for ack in acks:
        check(ack.offset > last.get(ack.partition, -1), f"partition {ack.partition} is reordered")
        last[ack.partition] = ack.offset


def check(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise CheckFailed(otherwise)
