"""Working on the messages of a subscription, one `async with` block each.

    async for message in ibrik.subscribe("billing"):
        async with message:
            await charge(message.json())

Leaving the block acknowledges, an exception gives the message back with the error as reason. A few
messages are leased ahead; their leases are extended by one task while they are in hand. Whatever
way the loop ends, what was leased ahead is given back, and what is still being worked on may be
finished until the client is left.
"""

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from types import TracebackType
from typing import Self

from ibrik_client.background import Background
from ibrik_client.errors import IbrikError, InvalidRequest, LeaseExpired
from ibrik_client.leasing import Lease, Leasing
from ibrik_client.messages import Message
from ibrik_client.settling import DONE, Settler, Verdict

MAX_IN_FLIGHT = 100
MOST_IN_FLIGHT = 10_000
"""The broker extends no more at once."""
LEASE_COUNT = 1_000
"""The broker hands out no more at once."""
WAIT_S = 20.0
"""Longest wait of one request for messages."""
RENEWALS = 4
"""A lease is extended after this part of its time, so that several tries fit into the rest."""
CLOSE_S = 10.0
"""Leaving the client waits no longer for a broker that is away."""

STOPPED = Verdict(is_done=False, delay="0s", reason="stopped")

logger = logging.getLogger("ibrik.client")


MESSAGE_FIELDS = tuple(known.name for known in fields(Message))


@dataclass(slots=True, eq=False)
class Hold:
    """One lease in hand."""

    lease: Lease
    renewed_s: float
    """When it was leased or extended (clock of the event loop)."""
    is_settled: bool = False
    is_lost: bool = False
    """The broker said that someone else has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedMessage(Message):
    """A message to work on. Settle it by an `async with` block, or by `ack` or `nack`."""

    attempt: int
    """1 when it is handed out for the first time."""
    deadline: str
    """When it was to be settled at first; automatic extension moves that."""
    subscription: "Subscription" = field(repr=False, compare=False)
    hold: Hold = field(repr=False, compare=False)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            verdict = DONE
        elif isinstance(error, Exception):
            verdict = Verdict(is_done=False, reason=type(error).__name__)
        else:
            verdict = STOPPED  # cancelled: nothing is wrong with the message
        self.subscription.settle(self.hold, verdict)

    async def ack(self) -> None:
        """Done with; returns when the broker has noted it. Raises LeaseExpired when too late."""
        await self.subscription.settled(self.hold, DONE)

    async def nack(self, *, delay_s: float | None = None, reason: str = "") -> None:
        """Deliver it again, after `delay_s` or as the retry policy says. Raises LeaseExpired."""
        delay = None if delay_s is None else f"{round(delay_s * 1_000)}ms"
        await self.subscription.settled(self.hold, Verdict(False, delay, reason))


class Subscription:
    """The messages of one subscription, for one `async for`. Made by `Client.subscribe`."""

    def __init__(
        self,
        name: str,
        leasing: Leasing,
        background: Background,
        *,
        max_in_flight: int = MAX_IN_FLIGHT,
        consumer: str | None = None,
        extend: bool = True,
        wait_s: float = WAIT_S,
    ) -> None:
        if not 1 <= max_in_flight <= MOST_IN_FLIGHT:
            raise InvalidRequest(f"max_in_flight is 1 to {MOST_IN_FLIGHT}, not {max_in_flight}")
        self.name = name
        self.consumer = consumer or f"client-{secrets.token_hex(6)}"
        """An exclusive subscription tells its consumers apart by this."""
        self._leasing = leasing
        self._background = background
        self._max_in_flight = max_in_flight
        self._extends = extend
        self._wait_s = wait_s
        self._settler = Settler(leasing, name)
        self._ahead: deque[Hold] = deque()
        self._holds: dict[Hold, None] = {}
        """Leased and not settled, the ones leased ahead included."""
        self._changed = asyncio.Event()
        self._finished = asyncio.Event()
        """Stopped, and nothing is in hand."""
        self._failure: IbrikError | None = None
        self._leaser: asyncio.Task[None] | None = None
        self._settling: asyncio.Task[None] | None = None
        self._extending: asyncio.Task[None] | None = None
        self._lease_s = 0.0
        self._is_stopped = False

    @property
    def in_flight_count(self) -> int:
        """Messages that are leased and not settled."""
        return len(self._holds)

    @property
    def expired_count(self) -> int:
        """Messages that were settled too late; others have them again."""
        return self._settler.expired_count

    async def __aiter__(self) -> AsyncIterator[ReceivedMessage]:
        assert self._leaser is None, "a subscription is for one loop: subscribe again"
        self._leaser = self._background.start(self._lease())
        self._settling = self._background.start(self._settle())
        self._background.open(self)
        try:
            while True:
                yield await self._next()
        finally:
            self.stop()

    def stop(self) -> None:
        """Lease no more and give back what was leased ahead; what is in hand may be finished."""
        if self._is_stopped:
            return
        self._is_stopped = True
        if self._leaser is not None:
            self._leaser.cancel()
        while self._ahead:
            self.settle(self._ahead.popleft(), STOPPED)
        self._note_change()

    async def close(self) -> None:
        """Give back what is in hand, and send every verdict that was asked for."""
        self.stop()
        for hold in list(self._holds):
            self.settle(hold, STOPPED)
        if self._settling is not None:
            _done, late = await asyncio.wait([self._settling], timeout=CLOSE_S)
            for task in late:
                task.cancel()

    # --- settle -----------------------------------------------------------------------------------

    def settle(self, hold: Hold, verdict: Verdict) -> None:
        """Tell the broker soon; the first verdict on a message counts."""
        if self._let_go(hold):
            self._settler.settle(hold.lease.token, verdict)

    async def settled(self, hold: Hold, verdict: Verdict) -> None:
        if hold.is_lost:
            raise LeaseExpired("the lease expired: someone else has the message now")
        if self._let_go(hold):
            await self._settler.settled(hold.lease.token, verdict)

    def _let_go(self, hold: Hold) -> bool:
        if hold.is_settled:
            return False
        hold.is_settled = True
        self._holds.pop(hold, None)
        self._note_change()
        return True

    def _note_change(self) -> None:
        self._changed.set()
        if self._is_stopped and not self._holds:
            self._finished.set()
            self._settler.close()

    async def _settle(self) -> None:
        """Until stopped, and every verdict is told."""
        try:
            await self._settler.run()
        finally:
            self._background.closed(self)

    # --- lease ------------------------------------------------------------------------------------

    async def _lease(self) -> None:
        """Keep a few messages ahead. A failure is for the loop, once it has worked off the rest."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                while (room := self._room()) < 1:
                    self._changed.clear()
                    await self._changed.wait()
                leases = await self._leasing.lease(
                    self.name,
                    max_messages=min(room, LEASE_COUNT),
                    wait_s=self._wait_s,
                    consumer=self.consumer,
                )
                self._take(leases, loop.time())
        except IbrikError as error:
            self._failure = error
            self._changed.set()

    def _take(self, leases: Sequence[Lease], now_s: float) -> None:
        for lease in leases:
            hold = Hold(lease, now_s)
            self._ahead.append(hold)
            self._holds[hold] = None
            self._lease_s = lease.seconds
        if leases and self._extends and self._extending is None:
            self._extending = self._background.start(self._extend())
        self._changed.set()

    def _room(self) -> int:
        """How many to lease; none while half of what may be in flight is still ahead."""
        if len(self._ahead) > self._max_in_flight // 2:
            return 0
        return self._max_in_flight - len(self._holds)

    async def _next(self) -> ReceivedMessage:
        """The next message whose lease still stands."""
        loop = asyncio.get_running_loop()
        while True:
            while not self._ahead:
                if self._failure is not None:
                    raise self._failure
                self._changed.clear()
                await self._changed.wait()
            hold = self._ahead.popleft()
            self._changed.set()
            if loop.time() - hold.renewed_s < hold.lease.seconds:
                return self._received(hold)
            self._lose(hold)

    def _received(self, hold: Hold) -> ReceivedMessage:
        lease = hold.lease
        known = {name: getattr(lease.message, name) for name in MESSAGE_FIELDS}
        return ReceivedMessage(
            **known, attempt=lease.attempt, deadline=lease.deadline, subscription=self, hold=hold
        )

    # --- extend -----------------------------------------------------------------------------------

    async def _extend(self) -> None:
        """Extend the leases of all that is in hand, each before half of its time is over."""
        loop = asyncio.get_running_loop()
        while not self._finished.is_set():
            pause_s = self._lease_s / RENEWALS
            with suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await self._finished.wait()
            now_s = loop.time()
            due = [hold for hold in self._holds if now_s - hold.renewed_s >= pause_s]
            if due:
                await self._renew(due, now_s, pause_s)

    async def _renew(self, due: Sequence[Hold], now_s: float, limit_s: float) -> None:
        try:
            async with asyncio.timeout(limit_s):
                stale = await self._leasing.extend(self.name, [h.lease.token for h in due])
        except (TimeoutError, IbrikError) as error:
            logger.warning("leases of %s not extended, trying again: %s", self.name, error)
            return
        lost = {item["index"] for item in stale}
        for index, hold in enumerate(due):
            if index in lost:
                self._lose(hold)
            else:
                hold.renewed_s = now_s

    def _lose(self, hold: Hold) -> None:
        """Someone else has it; unless it was settled while the broker was asked."""
        if self._let_go(hold):
            hold.is_lost = True
            self._settler.expired_count += 1
            with suppress(ValueError):
                self._ahead.remove(hold)
