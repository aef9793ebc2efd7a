"""What all carriers of a dispatcher share; made once, passed on."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import structlog

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.alarms import Alarms
from ibrik_broker.delivery.deadletters import DeadLetters
from ibrik_broker.delivery.ledger import Ledger
from ibrik_broker.telemetry.metrics import Histogram

AGAIN_SECONDS = 1.0

logger = structlog.get_logger("delivery")


@dataclass(slots=True)
class Parts:
    ledger: Ledger
    dead_letters: DeadLetters
    alarms: Alarms
    tasks: asyncio.TaskGroup
    clock_ms: Callable[[], int]
    ticks_ms: Callable[[], int]
    random: Callable[[], float]
    sends_max: int
    """Messages on their way over all destinations."""
    latency: Callable[[str], Histogram]
    """From append to acknowledgement, by topic."""
    on_halt: Callable[[str, str, str], Awaitable[None]]
    """A channel is gone, a subscription stopped at a gap: (kind, id, reason), to be kept."""

    background: set[asyncio.Task[None]] = field(default_factory=set)
    """What goes on beside deliveries; cancelled at the end."""

    active: set[object] = field(default_factory=set)
    """The pushers that have tasks at this moment."""

    def share(self) -> int:
        """How many messages one destination may have on their way: all have the same share."""
        return max(1, self.sends_max // max(1, len(self.active)))

    def halt(self, kind: str, identity: str, reason: str) -> None:
        self.insist(partial(self.on_halt, kind, identity, reason))

    def insist(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it in the background; while the database is away, again and again."""
        task = self.tasks.create_task(_insist(work))
        self.background.add(task)
        task.add_done_callback(self.background.discard)


async def _insist(work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except Refusal as refusal:
            logger.warning("tried again", reason=refusal.detail)
            await asyncio.sleep(AGAIN_SECONDS)
        except Exception:
            logger.exception("delivery failed")
            return
        else:
            return
