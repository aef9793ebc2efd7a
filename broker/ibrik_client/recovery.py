"""How far subscriptions are, moving them, and what becomes of messages that failed.

Lag and seeks of subscriptions, dead letters, replays.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ibrik_client.calls import Calls, Resource, path_of


class Recovery(Calls):
    """What people do when deliveries are late, failed, or wanted once more."""

    async def lag(self, subscription: str) -> Resource:
        """How far a subscription is behind: in total, and of each partition."""
        return await self._document("GET", path_of("subscriptions", subscription, "lag"))

    async def seek(
        self,
        subscription: str,
        to: Mapping[str, Any],
        *,
        partitions: Sequence[int] | None = None,
        dry_run: bool = False,
    ) -> Resource:
        """Move a subscription: `to` is one of from, offset, offsets, timestamp.

        Leases in hand become stale and waiting retries are dropped; `dry_run` only says what would
        happen.
        """
        body: Resource = {"to": dict(to), "dry_run": dry_run}
        if partitions is not None:
            body["partitions"] = list(partitions)
        path = f"{path_of('subscriptions', subscription)}:seek"
        return await self._document("POST", path, body=body)
