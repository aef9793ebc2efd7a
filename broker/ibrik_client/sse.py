"""Server-sent events from bytes, without I/O: the parser of the WHATWG HTML standard §9.2.6."""

from collections.abc import Iterator
from typing import NamedTuple

from ibrik_client.errors import ServerFailed

MAX_EVENT_BYTES = 96 * 1024 * 1024
"""Largest event: the largest message (64 MiB) as base64, with room for its envelope."""


class Event(NamedTuple):
    name: str
    text: str
    last_id: str
    """The id in force after this event; an event without one keeps the previous."""


class EventParser:
    """Takes bytes as they come, gives whole events; a torn one waits for the rest."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched_bytes = 0
        self._name = ""
        self._lines: list[str] = []
        self._event_bytes = 0
        self.last_id = ""
        """Where to resume; also an event without data moves it."""
        self.retry_ms: int | None = None
        """When the server wants to be asked again after it ended the stream."""

    def resumed(self) -> "EventParser":
        """A parser for the next connection, which goes on after the last id."""
        parser = EventParser()
        parser.last_id = self.last_id
        return parser

    def feed(self, content: bytes) -> Iterator[Event]:
        """The events that `content` completes."""
        self._buffer += content
        while (end := self._buffer.find(b"\n", self._searched_bytes)) >= 0:
            line = bytes(self._buffer[:end]).removesuffix(b"\r")
            del self._buffer[: end + 1]
            self._searched_bytes = 0
            if line:
                self._take(line.decode(errors="replace"))
            elif event := self._dispatch():
                yield event
        self._searched_bytes = len(self._buffer)
        if self._searched_bytes + self._event_bytes > MAX_EVENT_BYTES:
            raise ServerFailed(f"an event is larger than {MAX_EVENT_BYTES} bytes")

    def _take(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._lines.append(value)
            self._event_bytes += len(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self.last_id = value
        elif name == "retry" and value.isascii() and value.isdigit():
            self.retry_ms = int(value)
        # A comment has an empty name: a sign of life, nothing to do.

    def _dispatch(self) -> Event | None:
        lines, name = self._lines, self._name
        self._lines, self._name, self._event_bytes = [], "", 0
        return Event(name or "message", "\n".join(lines), self.last_id) if lines else None
