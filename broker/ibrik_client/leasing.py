"""Leases of a subscription, one request each: take messages, settle them.

No loops and no timers: who leases decides when to ask again and when to settle.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ibrik_client.calls import Calls, Resource, path_of
from ibrik_client.errors import ServerFailed
from ibrik_client.messages import Message, decode_envelope


class Lease(NamedTuple):
    """A message that is the caller's until its deadline."""

    message: Message
    token: str
    """What settles it."""
    attempt: int
    """1 when it is handed out for the first time."""
    deadline: str
    seconds: float = 30.0
    """From the answer to the deadline, whatever the clocks say."""


class Leasing(Calls):
    """Take, acknowledge, give back."""

    async def lease(
        self,
        subscription: str,
        *,
        max_messages: int = 100,
        wait_s: float = 0,
        consumer: str = "",
    ) -> list[Lease]:
        """Messages to work on; empty when there are none within `wait_s`, at most 20 s."""
        body = {
            "max": max_messages,
            "wait": f"{int(min(wait_s, 20) * 1000)}ms",
            "consumer": consumer,
        }
        path = f"{path_of('subscriptions', subscription)}:lease"
        answer = await self._call("POST", path, body=body)
        return decode_leases(answer.body) if answer.body else []

    async def ack(self, subscription: str, tokens: Sequence[str]) -> list[Resource]:
        """Done with these messages; the leases that did not count any more, and why."""
        return await self._settle(subscription, "ack", {"leases": list(tokens)})

    async def nack(
        self,
        subscription: str,
        tokens: Sequence[str],
        *,
        delay: str | None = None,
        reason: str = "",
    ) -> list[Resource]:
        """Give them back: they come again after `delay`, or as the retry policy says."""
        body: Resource = {"leases": list(tokens), "reason": reason}
        if delay is not None:
            body["delay"] = delay
        return await self._settle(subscription, "nack", body)

    async def extend(self, subscription: str, tokens: Sequence[str]) -> list[Resource]:
        """Begin the deadlines anew, for work that takes longer."""
        return await self._settle(subscription, "extend", {"leases": list(tokens)})

    async def _settle(self, subscription: str, verb: str, body: Resource) -> list[Resource]:
        path = f"{path_of('subscriptions', subscription)}:{verb}"
        stale: list[Resource] = (await self._document("POST", path, body=body))["stale"]
        return stale


class _Answer(msgspec.Struct):
    topic: str
    messages: list[msgspec.Raw]
    deadline_ms: int = 30_000


class _Hold(msgspec.Struct):
    lease: str
    attempt: int = 1
    deadline: str = ""


_answer = msgspec.json.Decoder(_Answer)
_hold = msgspec.json.Decoder(_Hold)


def decode_leases(body: bytes) -> list[Lease]:
    """What the broker answers to a lease request."""
    try:
        answer = _answer.decode(body)
        holds = [_hold.decode(raw) for raw in answer.messages]
    except msgspec.MsgspecError as error:
        raise ServerFailed(f"the broker sent leases that are not understood: {error}") from error
    seconds = answer.deadline_ms / 1_000
    return [
        Lease(
            decode_envelope(bytes(raw), answer.topic, -1), h.lease, h.attempt, h.deadline, seconds
        )
        for raw, h in zip(answer.messages, holds, strict=True)
    ]
