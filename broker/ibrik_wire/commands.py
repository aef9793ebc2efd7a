"""What a client may say: the verbs, their arguments, and what a wrong line means for the framing.

A line is understood here and nowhere else. The one question that decides whether a connection
survives a wrong line is whether the bytes that follow can still be told apart: after `PUB` with a
size that is no number, payload and commands look alike, so the connection ends; after `FETCH`
with a wrong offset it goes on.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

LINE_BYTES_MAX = 1_024
"""Longest line with its end. A topic has at most 253 characters and a number 20 digits; the rest is
room for what a person types. (nats-server's `max_control_line` is 4,096, memcached's key 250.)"""

TOPIC_BYTES_MAX = 253
PARTITION_MAX = 2**31 - 1
OFFSET_MAX = 2**63 - 1
SHOWN_BYTES_MAX = 64
"""How much of a wrong line is shown back."""

_TOPIC = re.compile(rb"[a-z0-9](?:[a-z0-9._-]*[a-z0-9])?")
# Browsers can be made to send HTTP to any port of localhost, with a body that reads like commands
# ("cross-protocol scripting"; Redis aborts on POST and Host: for the same reason).
_HTTP = re.compile(rb"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|CONNECT|TRACE|PRI) |Host:", re.I)


class Target(NamedTuple):
    """A topic, and a partition if the client named one."""

    topic: str
    partition: int | None


@dataclass(slots=True)
class Publish:
    """Consecutive `PUB`s to one target, as one command: their payloads in order."""

    target: Target
    payloads: list[bytes] = field(default_factory=list)


class Fetch(NamedTuple):
    target: Target
    offset: int


class Ping(NamedTuple):
    pass


class Invalid(NamedTuple):
    """A line that is refused. When `is_fatal`, nothing after it can be understood."""

    code: str
    text: str
    is_fatal: bool = False


Command = Publish | Fetch | Ping | Invalid


class PublishHead(NamedTuple):
    """The line of a `PUB`; `size` bytes of payload follow, skipped when there is a `refusal`."""

    target: Target
    size: int
    refusal: Invalid | None = None


Line = PublishHead | Fetch | Ping | Invalid | None


def parse_line(line: bytes) -> Line:
    """What one line says; None for an empty one.

    Empty lines are allowed between commands, so that a person can press return after a payload
    (RFC 9112 §2.2 allows one before a request for the same kind of sender).
    """
    words = line.split()
    if not words:
        return None
    verb = words[0].upper()
    if (parse := _VERBS.get(verb)) is not None:
        return parse(words[1:])
    if _HTTP.match(line):
        return Invalid("unknown-command", "this is the TCP door; HTTP has another port", True)
    is_text = line.isascii() and line.decode("ascii").strip().isprintable()
    said = f"'{_shown(words[0])}' is none of PUB, FETCH, PING"
    return Invalid("unknown-command", said, is_fatal=not is_text)


def encode_publish(topic: str, payload: bytes, partition: int | None = None) -> bytes:
    return b"PUB %b %d\r\n%b" % (_encode_target(topic, partition), len(payload), payload)


def encode_fetch(topic: str, offset: int, partition: int | None = None) -> bytes:
    return b"FETCH %b %d\r\n" % (_encode_target(topic, partition), offset)


def _encode_target(topic: str, partition: int | None) -> bytes:
    return topic.encode() if partition is None else b"%b/%d" % (topic.encode(), partition)


def _publish(arguments: list[bytes]) -> Line:
    size = _number(arguments[1], OFFSET_MAX) if len(arguments) == 2 else None
    if size is None:
        return Invalid("invalid-request", "expected: PUB <topic>[/<partition>] <size>", True)
    target = _target(arguments[0])
    if isinstance(target, Invalid):
        return PublishHead(Target("", None), size, target)
    return PublishHead(target, size)


def _fetch(arguments: list[bytes]) -> Line:
    offset = _number(arguments[1], OFFSET_MAX) if len(arguments) == 2 else None
    if offset is None:
        return Invalid("invalid-request", "expected: FETCH <topic>[/<partition>] <offset>")
    target = _target(arguments[0])
    return target if isinstance(target, Invalid) else Fetch(target, offset)


def _ping(arguments: list[bytes]) -> Line:
    return Invalid("invalid-request", "PING takes no arguments") if arguments else Ping()


_VERBS: Mapping[bytes, Callable[[list[bytes]], Line]] = {
    b"PUB": _publish,
    b"FETCH": _fetch,
    b"PING": _ping,
}


def _target(word: bytes) -> Target | Invalid:
    name, slash, number = word.partition(b"/")
    if len(name) > TOPIC_BYTES_MAX or _TOPIC.fullmatch(name) is None:
        return Invalid("invalid-name", f"'{_shown(name)}' cannot be a topic: use [a-z0-9._-]")
    partition = _number(number, PARTITION_MAX) if slash else None
    if slash and partition is None:
        return Invalid("unknown-partition", f"'{_shown(number)}' is not a partition's number")
    return Target(name.decode("ascii"), partition)


def _number(word: bytes, highest: int) -> int | None:
    """Digits only: `int` alone would also take signs, spaces and underscores."""
    if not word.isdigit() or len(word) > len(str(highest)):
        return None
    number = int(word)
    return number if number <= highest else None


def _shown(word: bytes) -> str:
    """A piece of a wrong line that is safe on one line of text."""
    text = word[:SHOWN_BYTES_MAX].decode("ascii", "backslashreplace")
    return "".join(c if c.isprintable() else "?" for c in text)
