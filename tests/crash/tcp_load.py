"""Producers on the TCP door: pipelined `PUB`, no ids, so nothing is sent twice.

What was in flight when the broker died stays unknown for ever: it may be in the log, once.
"""

import asyncio
from collections import deque
from collections.abc import Callable

from tests.crash.ledger import Ledger, LogName, value_of


class TcpProducer:
    """One producer, one partition; a new connection for each life of the broker."""

    def __init__(self, ledger: Ledger, log: LogName) -> None:
        self.ledger = ledger
        self.log = log
        self.log_number = ledger.log_number(log)
        self.name = ledger.new_producer()

    async def run(
        self, address: tuple[str, int], window: int, on_progress: Callable[[], None]
    ) -> None:
        """Keep `window` messages in flight until the connection ends, which is the broker's end."""
        loop = asyncio.get_running_loop()
        try:
            _, connection = await loop.create_connection(
                lambda: _Connection(self, window, on_progress), *address
            )
        except OSError:
            return  # Killed before we came.
        await connection.ended


class _Connection(asyncio.Protocol):
    def __init__(self, producer: TcpProducer, window: int, on_progress: Callable[[], None]) -> None:
        self._producer = producer
        self._window = window
        self._on_progress = on_progress
        self._in_flight: deque[int] = deque()
        self._rest = b""
        self._can_write = True
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._fill()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)

    def pause_writing(self) -> None:
        self._can_write = False

    def resume_writing(self) -> None:
        self._can_write = True
        self._fill()

    def data_received(self, data: bytes) -> None:
        *replies, self._rest = (self._rest + data).split(b"\r\n")
        try:
            for reply in replies:
                self._take(reply)
        except AssertionError as error:
            self.ended.set_exception(error)
            self._transport.abort()
            return
        self._fill()
        self._on_progress()

    def _take(self, reply: bytes) -> None:
        assert self._in_flight, f"a reply to nothing: {reply!r}"
        sequence = self._in_flight.popleft()
        producer = self._producer
        word, _, rest = reply.partition(b" ")
        if word == b"OK":
            producer.ledger.acknowledge(producer.name, sequence, producer.log_number, int(rest))
        else:
            assert word == b"ERR", f"neither OK nor ERR: {reply!r}"
            producer.ledger.refusals[rest.split(b" ")[0].decode()] += 1

    def _fill(self) -> None:
        producer = self._producer
        commands = []
        while self._can_write and len(self._in_flight) < self._window:
            sequence = producer.ledger.send(producer.name)
            value = value_of(producer.name, sequence)
            commands.append(b"PUB %s %d\r\n%s" % (str(producer.log).encode(), len(value), value))
            self._in_flight.append(sequence)
            if len(commands) == 64:
                self._write(commands)
        self._write(commands)

    def _write(self, commands: list[bytes]) -> None:
        if commands and not self._transport.is_closing():
            self._transport.write(b"".join(commands))
        commands.clear()
