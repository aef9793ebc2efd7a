"""What receivers saw, line by line in the order in which it happened. Written by the sinks and the
consumers, read by the checker.

An attempt begins when the message arrives and ends when it is answered, or when the connection is
lost before that. A lease is an attempt too: it ends when the consumer sends what it thinks of it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec


class Place(NamedTuple):
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.partition}/{self.offset}"


class Begun(msgspec.Struct, frozen=True, array_like=True, tag="begun"):
    number: int
    """Of this attempt; `Ended` and `Settled` refer to it."""
    at_ms: int
    subscription: str
    place: Place
    attempt: int
    message: str
    """Which message the bytes are."""


class Ended(msgspec.Struct, frozen=True, array_like=True, tag="ended"):
    number: int
    status: int | None
    """2xx: it was taken. None: there was no answer."""


class Settled(msgspec.Struct, frozen=True, array_like=True, tag="settled"):
    """The broker confirmed that the lease's message is done with."""

    number: int


Event = Begun | Ended | Settled

_decoder = msgspec.json.Decoder(Event)
_encoder = msgspec.json.Encoder()


def encode(event: Event) -> bytes:
    return _encoder.encode(event) + b"\n"


def read(path: Path) -> Iterable[Event]:
    with path.open("rb") as lines:
        for line in lines:
            yield _decoder.decode(line)
