"""Which channels and subscriptions there are. Puts the parts together and keeps them up to date.

The doors call `channels`, `subscriptions`, `endpoints` and `desired`; the registry says when topics
change; the dispatcher says what it stopped. `run` carries out what came in meanwhile.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

import structlog

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.database import Database
from ibrik_broker.metadata.deliveries import FlowState
from ibrik_broker.metadata.resources import ResourceKind, ResourceRows
from ibrik_broker.registrations.applying import Desired
from ibrik_broker.registrations.around import Around
from ibrik_broker.registrations.channels import Channels, CredentialFault
from ibrik_broker.registrations.collection import Common
from ibrik_broker.registrations.delivering import Delivering
from ibrik_broker.registrations.endpoints import Endpoints
from ibrik_broker.registrations.entries import Entries
from ibrik_broker.registrations.subscriptions import Subscriptions
from ibrik_broker.registrations.turns import Turns
from ibrik_broker.registrations.uses import Uses
from ibrik_broker.topics.changes import TopicChange
from ibrik_broker.topics.registry import Registry

logger = structlog.get_logger("catalogue")

AGAIN_SECONDS = 5.0
"""How often what could not be carried out is tried again."""
LOOKS_PER_CREDENTIALS = 6
"""Each so many times secrets are looked for: they come and go beside the wish."""


class Catalogue:
    def __init__(
        self,
        registry: Registry,
        database: Database,
        dispatcher: Delivering,
        *,
        clock_ms: Callable[[], int],
        ticks_ms: Callable[[], int],
        credential_fault: CredentialFault | None = None,
    ) -> None:
        self._turns = Turns(self._follow_topics)
        self._changes: dict[TopicChange, None] = {}
        self._woken = asyncio.Event()
        common = Common(dispatcher, self._turns, Uses(), registry.namespace, clock_ms, ticks_ms)
        self.channels = Channels(
            Entries(ResourceRows(database, ResourceKind.CHANNEL), "channel", clock_ms),
            common,
            credential_fault,
        )
        self.subscriptions = self.channels.users = Subscriptions(
            Entries(ResourceRows(database, ResourceKind.SUBSCRIPTION), "subscription", clock_ms),
            common,
            Around(registry, self.channels.found),
        )
        self.endpoints = Endpoints(self.channels, self.subscriptions, self._turns)
        self.desired = Desired(registry, self.channels, self.subscriptions, self._turns)
        registry.on_change.append(self._on_topic_change)
        dispatcher.on_halt = self.on_halt

    async def load(self, states: Mapping[str, FlowState] | None = None) -> None:
        """Read all rows and have them served; `states` is what the database knows of all flows.

        Raises Refusal `metadata-unavailable`.
        """
        async with self._turns:
            await self.channels.load()
            self.subscriptions.loaded = None if states is None else dict(states)
            await self.subscriptions.load()
            self.subscriptions.loaded = None

    async def run(self) -> None:
        """Follow the topics, and try again what failed; until it is cancelled."""
        looks = 0
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._woken.wait()
            self._woken.clear()
            looks += 1
            try:
                await self.catch_up()
                if looks % LOOKS_PER_CREDENTIALS == 0:
                    await self.channels.check_all_credentials()
            except Exception:
                logger.exception("catalogue failed")

    async def catch_up(self) -> None:
        """Carry out what topics changed, and what failed before."""
        async with self._turns:
            await self._finish()

    async def look(self) -> None:
        """Learn what other brokers did. Raises Refusal `metadata-unavailable`."""
        async with self._turns:
            await self.channels.look()
            await self.subscriptions.look()

    async def on_halt(self, kind: str, identity: str, reason: str) -> None:
        """The dispatcher stopped something: keep that, so that a restart does not forget it.

        Raises Refusal `metadata-unavailable`: the dispatcher tells it again.
        """
        async with self._turns:
            channel = self.channels.entries.by_id(identity)
            if kind == "channel" and channel is not None:
                await self.channels.halt(channel, reason)
                return
            subscription = self.subscriptions.entries.by_id(identity)
            if subscription is not None:
                await self.subscriptions.halt(subscription, reason)

    def _on_topic_change(self, change: TopicChange) -> None:
        self._changes[change] = None
        self._woken.set()

    async def _follow_topics(self) -> None:
        while self._changes:
            change = next(iter(self._changes))
            del self._changes[change]
            await self.subscriptions.on_topic_change(change)

    async def _finish(self) -> None:
        """What the database or the dispatcher refused before."""
        with suppress(Refusal):
            for subscription_id in list(self.subscriptions.closing):
                await self.subscriptions.finish_closing(subscription_id)
        await self.channels.finish()
        await self.subscriptions.finish()
