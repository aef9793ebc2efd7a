"""What the catalogue needs of the dispatcher: what it calls, and what it reads for status."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from ibrik_api.resources.channel import Circuit
from ibrik_broker.delivery.wishes import ChannelWish, SubscriptionWish
from ibrik_broker.metadata.deliveries import FlowState

OnHalt = Callable[[str, str, str], Awaitable[None]]
"""Kind ("channel" or "subscription"), id and reason of what the dispatcher stopped by itself."""


class SeenCounters(Protocol):
    dead_lettered: int


class SeenFlow(Protocol):
    @property
    def state(self) -> str: ...
    @property
    def backlog(self) -> int: ...
    @property
    def in_flight_count(self) -> int: ...
    @property
    def retrying_count(self) -> int: ...
    @property
    def oldest_ms(self) -> int | None: ...
    @property
    def counters(self) -> SeenCounters: ...


class SeenOutlet(Protocol):
    def circuit(self, now_ticks: int, /) -> Circuit: ...
    def paused_until_ticks(self, now_ticks: int, /) -> int | None: ...


class Delivering(Protocol):
    on_halt: OnHalt

    async def open(self, wish: SubscriptionWish, state: FlowState | None = None, /) -> None: ...
    async def change(self, wish: SubscriptionWish, /) -> None: ...
    async def close_subscription(self, subscription_id: str, /, *, forget: bool) -> None:
        """Also of a subscription that is not open: forgetting is about what is stored."""

    async def put_channel(self, wish: ChannelWish, /) -> None: ...
    async def drop_channel(self, channel_id: str, /) -> None: ...
    def flow(self, subscription_id: str, /) -> SeenFlow: ...
    def outlet(self, channel_id: str, /) -> SeenOutlet: ...
