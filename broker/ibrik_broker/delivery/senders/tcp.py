"""Delivery over TCP: `MSG <offset> <size>` out, `OK <offset>` or `ERR <code> <text>` back.

A connection carries one message at a time and is kept for the next one; whatever is not the answer
that was waited for ends it. Documented in docs/formats/push.md.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ibrik_api.resources.destination import Destination
from ibrik_broker.delivery.answers import Answer, failed
from ibrik_broker.delivery.credentials import CredentialMissing, Credentials
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.senders.dressing import Wardrobe
from ibrik_broker.delivery.senders.failures import failure
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.partitions.deadlines import Deadlines
from ibrik_wire.replies import LINE_BYTES_MAX, Failed, Published, Reply, ReplyParser, encode_fetched

IDLE_S = 30.0
"""How long a connection waits for its next message."""
SHOWN_CHARACTERS = 200


@dataclass(slots=True, eq=False)
class _Connection:
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    idle_since_s: float = 0.0

    @property
    def is_open(self) -> bool:
        return not self.reader.at_eof() and not self.writer.is_closing()

    def close(self) -> None:
        self.writer.transport.abort()  # nothing of worth is on its way


class _BrokenAnswer(Exception):
    """The answer is not what the protocol says; the text says what it is."""


class TcpSender:
    """One program that reads messages over TCP."""

    def __init__(
        self,
        destination: Destination,
        *,
        guard: Guard,
        credentials: Credentials,
        namespace: str,
        clock_ms: Callable[[], int],
    ) -> None:
        assert destination.tcp is not None
        self._host, self._port = destination.tcp.host, destination.tcp.port
        self._has_tls = destination.tcp.tls
        self._timeout_s = destination.timeout_ms / 1_000
        self._deadlines = Deadlines(destination.timeout_ms)
        self._idle_max = destination.limits.concurrency
        self._guard = guard
        self._wardrobe = Wardrobe(destination, namespace, credentials, clock_ms)
        self._idle: list[_Connection] = []
        self._is_closed = False

    async def send(self, parcel: Parcel) -> Answer:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        try:
            reply = await self._deadlines.wait(self._exchange(parcel))
        except CredentialMissing as missing:
            error, detail = "credential-missing", str(missing)
        except _BrokenAnswer as broken:
            error, detail = "broken-answer", str(broken)
        except Exception as raised:  # noqa: BLE001 - a message never ends a flow
            error, detail = failure(raised, self._host, self._timeout_s)
        else:
            duration_ms = round((loop.time() - started_s) * 1_000)
            if isinstance(reply, Published):
                return Answer(None, None, "", None, duration_ms)
            error, detail = "refused", f"answered ERR {reply.code}: {_shown(reply.text)}"
        return failed(error, detail, duration_ms=round((loop.time() - started_s) * 1_000))

    async def _exchange(self, parcel: Parcel) -> Published | Failed:
        record = parcel.record
        connection = self._take_idle() or await self._open()
        try:
            connection.writer.write(encode_fetched(record.offset, record.value or b""))
            await connection.writer.drain()
            reply = _expected(await _reply(connection.reader), record.offset)
        except BaseException:
            connection.close()
            raise
        self._put_idle(connection)
        return reply

    async def _open(self) -> _Connection:
        tls = (await self._wardrobe.dressing()).tls if self._has_tls else None
        self._guard.aim((self._host, False))
        connected = await self._guard.connect(self._host, self._port)
        try:
            reader, writer = await asyncio.open_connection(
                sock=connected,
                limit=LINE_BYTES_MAX,
                ssl=tls,
                server_hostname=self._host if tls is not None else None,
            )
        except BaseException:
            connected.close()
            raise
        return _Connection(reader, writer)

    def _take_idle(self) -> _Connection | None:
        """The connection that was used last, while it is open; old ones are closed on the way."""
        oldest_s = asyncio.get_running_loop().time() - IDLE_S
        while self._idle and self._idle[0].idle_since_s < oldest_s:
            self._idle.pop(0).close()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return None

    def _put_idle(self, connection: _Connection) -> None:
        if self._is_closed or len(self._idle) >= self._idle_max:
            connection.close()
            return
        connection.idle_since_s = asyncio.get_running_loop().time()
        self._idle.append(connection)

    async def close(self) -> None:
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()


async def _reply(reader: asyncio.StreamReader) -> Reply | None:
    """The next line as a reply; None when it is none. Raises EOFError at the end."""
    try:
        line = await reader.readline()
    except ValueError as error:
        raise _BrokenAnswer(f"the answer is longer than {LINE_BYTES_MAX:,} bytes") from error
    if not line:
        raise EOFError
    replies = ReplyParser().feed(line)
    return replies[0] if replies else None


def _expected(reply: Reply | None, offset: int) -> Published | Failed:
    match reply:
        case Published(offset=acknowledged) if acknowledged != offset:
            raise _BrokenAnswer(f"the answer to offset {offset} is for {acknowledged}")
        case Published() | Failed(is_fatal=False):
            return reply
    raise _BrokenAnswer("the answer is neither OK with the offset nor ERR")


def _shown(text: str) -> str:
    """A stranger's text on one line."""
    return "".join(c if c.isprintable() else "?" for c in text[:SHOWN_CHARACTERS])
