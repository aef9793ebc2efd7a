"""What the broker answers: one reply per command, in the order of the commands.

Encoders for the broker; `ReplyParser` for clients, with the same three outcomes as the command
parser: a reply, "need more", or a reply that says that the stream cannot be understood.
"""

import re
from typing import NamedTuple

LINE_BYTES_MAX = 1_024
"""Longest reply line with its end; `encode_failure` keeps below it."""

PAYLOAD_BYTES_MAX = 2**31 - 1

PONG = b"PONG\r\n"

# Most of what a producer hears, so it is taken in runs: half the cost of line by line.
_PUBLISHED_RUN = re.compile(rb"(?:OK [0-9]{1,19}\r\n)+")


class Published(NamedTuple):
    """`OK`: the record stands at `offset` and is as durable as its topic promises."""

    offset: int


class Fetched(NamedTuple):
    """`MSG`: the record at `offset`."""

    offset: int
    payload: bytes


class Pong(NamedTuple):
    pass


class Failed(NamedTuple):
    """`ERR`: the command changed nothing. When `is_fatal`, the stream itself is not understood."""

    code: str
    text: str
    is_fatal: bool = False


Reply = Published | Fetched | Pong | Failed


def encode_published(base_offset: int, count: int) -> bytes:
    """The `OK`s of `count` records from `base_offset` on, by one formatting operation."""
    return (b"OK %d\r\n" * count) % tuple(range(base_offset, base_offset + count))


def encode_fetched(offset: int, payload: bytes) -> bytes:
    return b"MSG %d %d\r\n%b\r\n" % (offset, len(payload), payload)


def encode_failure(code: str, text: str) -> bytes:
    """One line, whatever the text holds."""
    room = LINE_BYTES_MAX - len("ERR  \r\n") - len(code)
    line = " ".join(text.split()).encode("utf-8")[:room].decode("utf-8", "ignore")
    return f"ERR {code} {line}\r\n".encode()


def encode_pong() -> bytes:
    return PONG


class ReplyParser:
    """One connection's bytes into replies, the client's side."""

    def __init__(self) -> None:
        self.is_dead = False
        self._pending = bytearray()
        self._needed_bytes = 0

    def feed(self, chunk: bytes) -> list[Reply]:
        """The replies that are complete with this chunk."""
        if self.is_dead:
            return []
        if self._pending:
            self._pending += chunk
            if len(self._pending) < self._needed_bytes:
                return []
            chunk = bytes(self._pending)
            self._pending = bytearray()
        replies: list[Reply] = []
        rest_at = self._parse(chunk, replies)
        if rest_at < len(chunk) and not self.is_dead:
            self._pending += memoryview(chunk)[rest_at:]
        return replies

    def _parse(self, chunk: bytes, replies: list[Reply]) -> int:
        at, end = 0, len(chunk)
        while at < end:
            if run := _PUBLISHED_RUN.match(chunk, at):
                offsets = chunk[at : run.end()].split()[1::2]
                replies.extend(map(Published, map(int, offsets)))
                at = run.end()
                continue
            line_end = chunk.find(b"\n", at, at + LINE_BYTES_MAX) + 1
            if not line_end:
                self._needed_bytes = end - at + 1
                if end - at >= LINE_BYTES_MAX:
                    return self._end("a reply line is too long", replies, end)
                return at
            verb, *arguments = chunk[at:line_end].split(maxsplit=2) or [b""]
            payload_bytes = _payload_bytes(verb, arguments)
            at_next = line_end if payload_bytes is None else line_end + payload_bytes + 2
            if at_next > end:
                self._needed_bytes = at_next - at
                return at
            reply = _reply(verb, arguments, chunk[line_end : max(line_end, at_next - 2)])
            if reply is None:
                return self._end("not a reply of this protocol", replies, end)
            replies.append(reply)
            at = at_next
        return at

    def _end(self, text: str, replies: list[Reply], end: int) -> int:
        replies.append(Failed("invalid-reply", text, is_fatal=True))
        self.is_dead = True
        return end


def _payload_bytes(verb: bytes, arguments: list[bytes]) -> int | None:
    """Size of the payload that follows the line; None when none does."""
    if verb != b"MSG" or len(arguments) != 2:
        return None
    size = arguments[1].strip()
    if not size.isdigit() or len(size) > 10 or int(size) > PAYLOAD_BYTES_MAX:
        return None
    return int(size)


def _reply(verb: bytes, arguments: list[bytes], payload: bytes) -> Reply | None:
    match verb, arguments:
        case b"MSG", [offset, size] if offset.isdigit() and size.strip().isdigit():
            return Fetched(int(offset), payload) if len(payload) == int(size) else None
        case b"OK", [offset] if offset.strip().isdigit():
            return Published(int(offset))
        case b"PONG", []:
            return Pong()
        case b"ERR", [code, *text]:
            return Failed(
                code.decode("ascii", "replace"), b"".join(text).strip().decode("utf-8", "replace")
            )
    return None
