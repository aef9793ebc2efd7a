"""`consume --subscription`: lease, print, settle; on Ctrl-C give back what was not printed."""

import asyncio
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ibrik_client import Client, Message
    from ibrik_client.leasing import Lease

IN_HAND = 100
"""Messages leased at once: few, since others wait for them."""
FOLLOW_WAIT_S = 20.0
LAST_WAIT_S = 1.0
"""When nothing comes so long, there is no more."""


@dataclass(slots=True)
class Consumer:
    client: "Client"
    subscription: str
    show: "Callable[[Message], None]"
    gives_back: bool = False
    """Print, and leave the messages to others."""
    count: int = 0
    stale_count: int = 0
    """Settled too late: these messages come again."""

    async def run(self, *, max_messages: int | None, follow: bool) -> None:
        """Until there is no more, `max_messages` were printed, or Ctrl-C."""
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, ended.set)
        while not ended.is_set():
            room = IN_HAND if max_messages is None else min(IN_HAND, max_messages - self.count)
            if room <= 0:
                return
            leases = await self._lease(room, FOLLOW_WAIT_S if follow else LAST_WAIT_S, ended)
            if not leases and not follow:
                return
            await self._print(leases)

    async def _lease(self, room: int, wait_s: float, ended: asyncio.Event) -> "list[Lease]":
        """Messages, or none once it has ended: a request that is broken off takes nothing."""
        asked = self.client.admin.lease(
            self.subscription,
            max_messages=room,
            wait_s=wait_s,
            consumer=f"ibrik-consume-{os.getpid()}",
        )
        async with asyncio.TaskGroup() as group:
            leasing = group.create_task(asked)
            ending = group.create_task(ended.wait())
            await asyncio.wait((leasing, ending), return_when=asyncio.FIRST_COMPLETED)
            leasing.cancel()
            ending.cancel()
        return [] if leasing.cancelled() else leasing.result()

    async def _print(self, leases: "Sequence[Lease]") -> None:
        printed = 0
        try:
            for lease in leases:
                self.show(lease.message)
                printed += 1
        finally:  # The reader of a pipe may have enough.
            self.count += printed
            await self._settle(leases[:printed], leases[printed:])

    async def _settle(self, done: "Sequence[Lease]", rest: "Sequence[Lease]") -> None:
        admin, name = self.client.admin, self.subscription
        stale = []
        if done and self.gives_back:
            stale += await admin.nack(name, [lease.token for lease in done], reason="--nack")
        elif done:
            stale += await admin.ack(name, [lease.token for lease in done])
        if rest:
            tokens = [lease.token for lease in rest]
            stale += await admin.nack(name, tokens, delay="0s", reason="not printed")
        self.stale_count += len(stale)
