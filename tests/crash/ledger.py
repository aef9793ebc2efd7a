"""What every producer sent, and where the broker said that it is.

Written by the load, read by the checker. A message is (producer, sequence); its value says so, so
that the log can be read back without any other memory. Nothing here knows the broker.
"""

from array import array
from collections import Counter
from dataclasses import dataclass, field

UNKNOWN = -1
_OFFSET_BITS = 48
_OFFSET_MASK = (1 << _OFFSET_BITS) - 1
# Every so often a message that does not fit a page, a socket buffer or the writer's join threshold.
_LARGE_EVERY = 1009
_LARGE_BYTES = 24_000


def value_of(producer: int, sequence: int) -> bytes:
    """The bytes of one message: who and which, then a filler whose length both decide."""
    length = (producer * 31 + sequence * 17) % 160
    if sequence % _LARGE_EVERY == _LARGE_EVERY - 1:
        length += _LARGE_BYTES
    return b"%d %d " % (producer, sequence) + b"." * length


def parse_value(value: bytes) -> tuple[int, int] | None:
    """The (producer, sequence) of a stored message; None when damaged or not one of ours."""
    parts = value.split(b" ", 2)
    if len(parts) != 3 or not (parts[0].isdigit() and parts[1].isdigit()):
        return None
    producer, sequence = int(parts[0]), int(parts[1])
    return (producer, sequence) if value == value_of(producer, sequence) else None


@dataclass(frozen=True, slots=True)
class LogName:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(slots=True)
class Ledger:
    """The harness's memory. A place is a log's number and an offset in one integer."""

    logs: list[LogName] = field(default_factory=list)
    places: list["array[int]"] = field(default_factory=list)  # producer -> sequence -> place
    acknowledged: int = 0
    # Since the last `take_recent`: judged after each run, while the evidence is fresh.
    recent: list[tuple[int, int]] = field(default_factory=list)
    # Two answers for one message that do not agree: no log is needed to know that one is wrong.
    contradictions: list[str] = field(default_factory=list)
    refusals: Counter[str] = field(default_factory=Counter)  # "try again later", by code
    # Messages of unknown outcome that were sent again: had they been stored before, or not?
    retries_found: int = 0
    retries_stored: int = 0
    _log_numbers: dict[LogName, int] = field(default_factory=dict)

    def log_number(self, log: LogName) -> int:
        number = self._log_numbers.get(log)
        if number is None:
            number = self._log_numbers[log] = len(self.logs)
            self.logs.append(log)
        return number

    def new_producer(self) -> int:
        self.places.append(array("q"))
        return len(self.places) - 1

    def send(self, producer: int) -> int:
        """The next sequence of this producer; from now on the message may be in the log."""
        places = self.places[producer]
        places.append(UNKNOWN)
        return len(places) - 1

    def acknowledge(self, producer: int, sequence: int, log_number: int, offset: int) -> None:
        """The broker answered. A second answer (a retry by id) must name the same place."""
        place = log_number << _OFFSET_BITS | offset
        places = self.places[producer]
        known = places[sequence]
        if known == UNKNOWN:
            places[sequence] = place
            self.acknowledged += 1
            self.recent.append((producer, sequence))
        elif known != place:
            self.contradictions.append(
                f"message {producer}:{sequence} was acknowledged at {self.describe(known)}, "
                f"and again at {self.describe(place)}"
            )

    def note_retry(self, found: int, messages: int) -> None:
        self.retries_found += found
        self.retries_stored += messages - found

    def take_recent(self) -> list[tuple[int, int]]:
        recent, self.recent = self.recent, []
        return recent

    def place(self, producer: int, sequence: int) -> int:
        """Where the message was acknowledged; UNKNOWN when it never was."""
        return self.places[producer][sequence]

    def was_sent(self, producer: int, sequence: int) -> bool:
        return producer < len(self.places) and sequence < len(self.places[producer])

    def describe(self, place: int) -> str:
        log_number, offset = parts_of(place)
        return f"{self.logs[log_number]} offset {offset}"


def parts_of(place: int) -> tuple[int, int]:
    """The log's number and the offset."""
    return place >> _OFFSET_BITS, place & _OFFSET_MASK


def place_of(log_number: int, offset: int) -> int:
    return log_number << _OFFSET_BITS | offset
