"""Listens, owns every connection, looks at the clock for all, drains them at the end."""

import asyncio
from collections.abc import Iterator
from functools import partial

from ibrik_broker.partitions.engine import Engine
from ibrik_broker.settings import LimitSettings, TcpSettings
from ibrik_broker.tcp.connection import Connection
from ibrik_broker.tcp.context import CreateTopic, TcpContext
from ibrik_broker.telemetry import metrics
from ibrik_broker.telemetry.metrics import Reading

BACKLOG_CONNECTIONS = 1_024
CLOCK_SECONDS = 1.0
"""How often silent and slow clients are looked for: one timer for all connections."""


class TcpDoor:
    def __init__(
        self,
        engine: Engine,
        limits: LimitSettings,
        tasks: asyncio.TaskGroup,
        *,
        create_topic: CreateTopic | None = None,
    ) -> None:
        self._context = TcpContext(engine, limits, tasks, create_topic=create_topic)
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._clock: asyncio.TimerHandle | None = None

    async def open(self, settings: TcpSettings) -> tuple[str, int]:
        """Listen; returns the address and the port that was really taken."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            partial(Connection, self._context, self._connections),
            settings.host,
            settings.port,
            backlog=BACKLOG_CONNECTIONS,
        )
        self._clock = loop.call_later(CLOCK_SECONDS, self._on_clock)
        host, port, *_ = self._server.sockets[0].getsockname()
        return host, port

    def stop_accepting(self) -> None:
        if self._server is not None:
            self._server.close()

    async def drain(self, seconds: float) -> None:
        """Answer what is in flight, refuse what is new, end every connection; bounded in time."""
        self.stop_accepting()
        self._context.is_draining = True
        for connection in tuple(self._connections):
            connection.finish()
        try:
            async with asyncio.timeout(seconds):
                while self._connections:
                    self._context.changed.clear()
                    await self._context.changed.wait()
        except TimeoutError:
            for connection in tuple(self._connections):
                connection.abort()
        if self._clock is not None:
            self._clock.cancel()

    def readings(self) -> Iterator[Reading]:
        """What the door says at a scrape."""
        counters = self._context.counters
        yield Reading(metrics.TCP_CONNECTIONS, (), len(self._connections))
        yield Reading(metrics.TCP_CONNECTIONS_ACCEPTED, (), counters.accepted)
        yield Reading(metrics.TCP_CONNECTIONS_REFUSED, (), counters.refused)
        yield Reading(metrics.TCP_PAUSES, (), counters.pauses)
        yield Reading(metrics.TCP_COMMANDS, ("PUB",), counters.published)
        yield Reading(metrics.TCP_COMMANDS, ("FETCH",), counters.fetched)
        yield Reading(metrics.TCP_COMMANDS, ("PING",), counters.pings)
        for code, count in sorted(counters.errors.items()):
            yield Reading(metrics.TCP_ERRORS, (code,), count)

    def look_at_clock(self, now: float) -> None:
        """End the clients that have taken too long; `now` is the time of the event loop."""
        for connection in tuple(self._connections):
            connection.look_at_clock(now)

    def _on_clock(self) -> None:
        loop = asyncio.get_running_loop()
        self.look_at_clock(loop.time())
        self._clock = loop.call_later(CLOCK_SECONDS, self._on_clock)
