"""The pool as one broker knows it: itself, the others, and what it tells them.

Everything here is knowledge in memory, from the last look at the database; `following.py` looks
again. Whether another broker answers is found out by asking it.
"""

import hashlib
import hmac
from collections.abc import Callable
from dataclasses import replace

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.brokers import BrokerRow, BrokerRows


class Pool:
    def __init__(
        self, rows: BrokerRows, me: BrokerRow, key: bytes, clock_ms: Callable[[], int]
    ) -> None:
        self.me = me
        self.token = hmac.digest(key, b"brokers of one pool", hashlib.sha256).hex()
        """By which brokers of one pool know each other."""
        self.clock_ms = clock_ms
        self._rows = rows
        self._brokers: dict[str, BrokerRow] = {}

    # --- look -------------------------------------------------------------------------------------

    def is_me(self, owner: str | None) -> bool:
        return owner == self.me.id

    def broker(self, owner: str) -> BrokerRow:
        """Raises Refusal `owner-unavailable` when no broker of this id ever joined."""
        found = self._brokers.get(owner)
        if found is None:
            raise unknown_owner(owner)
        return found

    def name(self, owner: str) -> str:
        found = self._brokers.get(owner)
        return f"with volume {owner}" if found is None else found.name

    def brokers(self) -> list[BrokerRow]:
        """All that ever joined, by name."""
        return list(self._brokers.values())

    def others(self) -> list[BrokerRow]:
        return [broker for broker in self._brokers.values() if broker.id != self.me.id]

    # --- follow -----------------------------------------------------------------------------------

    async def refresh(self) -> None:
        """Look who there is. Raises Refusal `metadata-unavailable`."""
        self._brokers = {row.id: row for row in await self._rows.all()}

    async def announce(self, http_port: int, admin_port: int) -> None:
        """The doors are open: let the others know. Raises Refusal `metadata-unavailable`."""
        now_ms = self.clock_ms()
        self.me = replace(self.me, http_port=http_port, admin_port=admin_port, started_ms=now_ms)
        await self.beat(0)

    async def beat(self, size_bytes: int) -> None:
        """Say that this broker is there. Raises Refusal `metadata-unavailable`."""
        self.me = replace(self.me, size_bytes=size_bytes, updated_ms=self.clock_ms())
        await self._rows.put(self.me)
        self._brokers[self.me.id] = self.me


def unknown_owner(owner: str) -> Refusal:
    return Refusal(
        "owner-unavailable",
        f"The topic is on volume {owner}, and no broker with that volume is known here. Start the "
        "broker that has it, or restore the volume.",
        owner=owner,
    )
