"""What has to be done once in a while: the history of attempts stays bounded."""

import asyncio
from collections.abc import Callable

import structlog

from ibrik_api.durations import DAY_MS
from ibrik_api.errors import Refusal
from ibrik_broker.metadata.attempts import AttemptHistory

KEPT_MS = 7 * DAY_MS
EVERY_SECONDS = 600.0

logger = structlog.get_logger("delivery")


async def keep_history_short(history: AttemptHistory, clock_ms: Callable[[], int]) -> None:
    """Trim by age and number, again and again; until it is cancelled."""
    while True:
        try:
            await history.trim(clock_ms() - KEPT_MS)
        except Refusal as refusal:
            logger.warning("history of attempts not trimmed", reason=refusal.detail)
        await asyncio.sleep(EVERY_SECONDS)
