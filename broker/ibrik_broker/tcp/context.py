"""What all connections of the door share: engine, limits, counters, and the bytes they hold."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from ibrik_broker.partitions.engine import Engine
from ibrik_broker.settings import LimitSettings
from ibrik_broker.tcp.fetch import DecodedBatches

CreateTopic = Callable[[str], Awaitable[None]]


@dataclass(slots=True)
class TcpCounters:
    """Plain integers, read at a scrape."""

    accepted: int = 0
    refused: int = 0
    published: int = 0
    fetched: int = 0
    pings: int = 0
    pauses: int = 0
    errors: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class TcpContext:
    engine: Engine
    limits: LimitSettings
    tasks: asyncio.TaskGroup
    """Owns fetches and the creation of topics; publishing needs no task."""
    create_topic: CreateTopic | None = None
    """Creates a topic on first use (`--dev`); None refuses unknown topics."""
    counters: TcpCounters = field(default_factory=TcpCounters)
    decoded: DecodedBatches = field(default_factory=DecodedBatches)
    unacknowledged_bytes: int = 0
    """Of all connections: published, not yet answered."""
    arriving_bytes: int = 0
    """Of all connections: parts of payloads that are not complete yet."""
    is_draining: bool = False
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a connection is gone; what draining waits for."""
