"""How far subscriptions are, moving them, and what becomes of messages that failed.

Lag and seeks of subscriptions, dead letters, replays.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from ibrik_client.calls import Calls, Resource, path_of, up_to


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

    async def deliveries(self, topic: str, partition: int, offset: int) -> list[Resource]:
        """How far each subscription of the topic is with one message, and what failed."""
        path = path_of("topics", topic, "partitions", str(partition), "messages", str(offset))
        found: list[Resource] = (await self._document("GET", f"{path}/deliveries"))["deliveries"]
        return found

    # --- dead letters -----------------------------------------------------------------------------

    async def dead_letters(
        self,
        subscription: str,
        *,
        limit: int = 100,
        reason: str | None = None,
        status: int | None = None,
        state: str | None = None,
        filter: str | None = None,  # noqa: A002 - the field's word
    ) -> Sequence[Resource]:
        """Messages that had all their attempts, and why; `state` is dead or redriven."""
        found = self.each_dead_letter(
            subscription,
            reason=reason,
            status=status,
            state=state,
            filter=filter,
            page=min(limit, 100),
        )
        return await up_to(found, limit)

    def each_dead_letter(
        self,
        subscription: str,
        *,
        reason: str | None = None,
        status: int | None = None,
        state: str | None = None,
        filter: str | None = None,  # noqa: A002 - the field's word
        page: int = 100,
    ) -> AsyncIterator[Resource]:
        """The same one by one, for more of them than shall be held at once."""
        params = {
            "reason": reason,
            "status": None if status is None else str(status),
            "state": state,
            "filter": filter,
            "page_size": str(page),
        }
        return self._pages(path_of("deadletters", subscription), params)

    async def redrive(
        self,
        subscription: str,
        *,
        filter: str | None = None,  # noqa: A002 - the field's word
        letters: Sequence[tuple[int, int]] | None = None,
        rate: int | None = None,
        dry_run: bool = False,
    ) -> Resource:
        """Deliver the messages of dead letters again, to their subscription only.

        All that are dead, or those that fit, or `letters` by partition and offset. Safe to repeat:
        what is redriven is so once. Ask again while the answer is not `complete`.
        """
        places = None
        if letters is not None:
            places = [{"partition": partition, "offset": offset} for partition, offset in letters]
        wishes = {"filter": filter, "offsets": places, "rate": rate}
        body = {name: value for name, value in wishes.items() if value is not None}
        path = f"{path_of('deadletters', subscription)}:redrive"
        return await self._document("POST", path, body=body | {"dry_run": dry_run})

    async def purge_dead_letters(self, subscription: str, *, dry_run: bool = False) -> Resource:
        """Delete the dead letters; their messages stay where they are."""
        path = f"{path_of('deadletters', subscription)}:purge"
        return await self._document("POST", path, body={"dry_run": dry_run})

    # --- replays ----------------------------------------------------------------------------------

    async def replays(self) -> list[Resource]:
        """Replays, the newest first."""
        return [replay async for replay in self._pages("/v1/replays")]

    async def replay(self, replay_id: str) -> Resource:
        return await self._document("GET", path_of("replays", replay_id))

    async def create_replay(self, wish: Mapping[str, Any]) -> Resource:
        """Begin a replay; it goes on after a restart of the broker.

        `wish` has source {topic, from, to, partitions, filter}, target {channel or topic}, rate and
        dry_run.
        """
        return await self._document("POST", "/v1/replays", body=wish, is_repeatable=False)

    async def replay_attempts(self, replay_id: str, *, limit: int = 100) -> Sequence[Resource]:
        """Attempts that failed, the newest first."""
        params = {"page_size": str(min(limit, 500))}
        return await up_to(self._pages(path_of("replays", replay_id, "attempts"), params), limit)

    async def cancel_replay(self, replay_id: str) -> Resource:
        """Send nothing more; what is on its way ends."""
        return await self._document("DELETE", path_of("replays", replay_id))
