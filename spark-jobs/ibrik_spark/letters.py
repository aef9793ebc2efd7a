"""How many dead letters the subscriptions of a topic have, as the broker says."""

from collections import Counter
from typing import Any

import ibrik_client
from ibrik_client import RetryPolicy

from .broker import PATIENCE_S, refusals

MOST = 10_000
"""Dead letters of a subscription that are looked at."""


async def dead_letters(server: str, token: str | None, topic: str) -> list[dict[str, Any]]:
    """For each subscription that has some: how many by state, and why."""
    retry = RetryPolicy(deadline_s=PATIENCE_S)
    found: list[dict[str, Any]] = []
    async with ibrik_client.connect(server, token=token, retry=retry) as client:
        with refusals(f"ask for the dead letters of {topic}"):
            for subscription in await client.admin.subscriptions(topic=topic):
                counted = await _count(client, subscription["metadata"]["name"])
                found += [counted] if counted["letters"] else []
    return found


async def _count(client: ibrik_client.Client, subscription: str) -> dict[str, Any]:
    states: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    async for letter in client.admin.each_dead_letter(subscription):
        states[letter["state"]] += 1
        reasons[letter["reason"]] += 1
        if states.total() == MOST:
            break
    return {
        "subscription": subscription,
        "letters": states.total(),
        "isAll": states.total() < MOST,
        "states": dict(states),
        "reasons": dict(reasons.most_common()),
    }
