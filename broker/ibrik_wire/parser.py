"""Bytes into commands, the broker's side. The hot loop of the TCP door.

`feed` has three outcomes for what it sees: a command, "need more", or `Invalid`; it never raises.
What is held between calls is bounded: one line, or one payload of at most `payload_bytes_max`.

Speed comes from three things. Consecutive `PUB`s to one target become one `Publish`, so that a
message costs a slice and an append. A line is a key of a small dictionary, since producers repeat
topic and size. A payload in many chunks is gathered, not joined anew with each of them.
"""

from ibrik_wire.commands import (
    LINE_BYTES_MAX,
    Command,
    Fetch,
    Invalid,
    Line,
    Ping,
    Publish,
    PublishHead,
    Target,
    parse_line,
)

KNOWN_LINES_MAX = 128
"""Lines remembered per connection; at 300 bytes each at most 38 KiB."""

SKIPPED_BYTES_MAX = 64 * 2**20
"""A payload over the limit is read past up to this size, so that the connection survives; above it
(1 TiB takes an hour) closing is kinder."""

INVALID_LINES_MAX = 16
"""Wrong lines in a row before the connection ends: this is no client of ours."""


_EMPTY_LINES = (b"\r\n", b"\n")


class CommandParser:
    """One connection's bytes into commands."""

    def __init__(self, *, payload_bytes_max: int) -> None:
        self.payload_bytes_max = payload_bytes_max
        self.is_dead = False
        """After a fatal `Invalid`, or `close`: all further bytes are dropped."""
        self._pending = bytearray()
        self._needed_bytes = 0  # below this many bytes pending there is nothing new to see
        self._skip_bytes = 0
        self._invalid_lines = 0
        self._known: dict[bytes, PublishHead] = {}

    @property
    def pending_bytes(self) -> int:
        """Bytes of a command that is not complete yet."""
        return len(self._pending)

    @property
    def is_between_commands(self) -> bool:
        return not self._pending and not self._skip_bytes

    def close(self) -> None:
        """Drop what is pending and all that follows."""
        self.is_dead = True
        self._pending = bytearray()
        self._skip_bytes = 0

    def feed(self, chunk: bytes) -> list[Command]:
        """The commands that are complete with this chunk."""
        if self.is_dead:
            return []
        if self._skip_bytes:
            skipped = min(self._skip_bytes, len(chunk))
            self._skip_bytes -= skipped
            chunk = chunk[skipped:]
        if self._pending:
            self._pending += chunk
            if len(self._pending) < self._needed_bytes:
                return []
            chunk = bytes(self._pending)
            self._pending = bytearray()
        commands: list[Command] = []
        rest_at = self._parse(chunk, commands)
        if commands and not isinstance(commands[-1], Invalid):
            self._invalid_lines = 0
        if rest_at < len(chunk) and not self.is_dead:
            self._pending += memoryview(chunk)[rest_at:]
        return commands

    def _parse(self, chunk: bytes, commands: list[Command]) -> int:
        """Parse what is complete; returns where the incomplete rest begins."""
        at, end = 0, len(chunk)
        find, known = chunk.find, self._known
        run: Target | None = None
        payloads: list[bytes] = []
        while at < end:
            line_end = find(b"\n", at, at + LINE_BYTES_MAX) + 1
            if not line_end:
                self._expect_line(end - at, commands)
                return at
            line = chunk[at:line_end]
            head = known.get(line)
            if head is None:
                if line in _EMPTY_LINES:
                    at = line_end
                    continue
                head = self._look_at(line, commands)
                if head is None:
                    run = None
                    at = self._past_skipped(line_end, end)
                    continue
            at_next = line_end + head.size
            if at_next > end:
                self._needed_bytes = at_next - at
                return at
            if head.target is not run:
                run = head.target
                payloads = [chunk[line_end:at_next]]
                commands.append(Publish(run, payloads))
            else:
                payloads.append(chunk[line_end:at_next])
            at = at_next
        return at

    def _expect_line(self, held_bytes: int, commands: list[Command]) -> None:
        self._needed_bytes = held_bytes + 1
        if held_bytes >= LINE_BYTES_MAX:
            said = f"a line has at most {LINE_BYTES_MAX} bytes"
            self._end(Invalid("invalid-request", said, is_fatal=True), commands)

    def _look_at(self, line: bytes, commands: list[Command]) -> PublishHead | None:
        """A line not seen before: remember a good `PUB`, pass on what is anything else."""
        said: Line = parse_line(line)
        match said:
            case None:
                return None
            case PublishHead(refusal=None, size=size) if size <= self.payload_bytes_max:
                return self._remember(line, said)
            case PublishHead(size=size, refusal=refusal):
                self._skip(size, refusal, commands)
            case Invalid(is_fatal=True):
                self._end(said, commands)
            case Invalid():
                self._refuse(said, commands)
            case Fetch() | Ping():
                commands.append(said)
        return None

    def _remember(self, line: bytes, head: PublishHead) -> PublishHead:
        """Equal targets become one object, which is how the loop sees that a run goes on."""
        known = self._known
        if len(known) >= KNOWN_LINES_MAX:
            known.clear()
        for other in known.values():
            if other.target == head.target:
                head = head._replace(target=other.target)
                break
        known[line] = head
        return head

    def _skip(self, size: int, refusal: Invalid | None, commands: list[Command]) -> None:
        """A payload that is not wanted: read past it while that is cheap."""
        if refusal is None:
            refusal = Invalid(
                "message-too-large",
                f"{size} bytes are more than the {self.payload_bytes_max} that this door takes",
            )
        if size > SKIPPED_BYTES_MAX:
            self._end(refusal._replace(is_fatal=True), commands)
            return
        self._skip_bytes = size
        self._refuse(refusal, commands)

    def _past_skipped(self, at: int, end: int) -> int:
        skipped = min(self._skip_bytes, end - at)
        self._skip_bytes -= skipped
        return end if self.is_dead else at + skipped

    def _refuse(self, invalid: Invalid, commands: list[Command]) -> None:
        if commands and not isinstance(commands[-1], Invalid):
            self._invalid_lines = 0
        commands.append(invalid)
        self._invalid_lines += 1
        if self._invalid_lines >= INVALID_LINES_MAX:
            said = f"{INVALID_LINES_MAX} wrong lines in a row"
            self._end(Invalid("invalid-request", said, is_fatal=True), commands)

    def _end(self, invalid: Invalid, commands: list[Command]) -> None:
        commands.append(invalid)
        self.close()
