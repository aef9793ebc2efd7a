"""Subscriptions: resolved against the topics and channels that there are, and told to deliver."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import (
    Mode,
    Subscription,
    SubscriptionDeletionPolicy,
    SubscriptionSpec,
)
from ibrik_api.resources.subscription_rules import check_subscription, plan_subscription_update
from ibrik_api.resources.topic_rules import refuse_if
from ibrik_broker.delivery.filters import Filter, compile_filter
from ibrik_broker.delivery.wishes import ChannelWish, SubscriptionWish
from ibrik_broker.metadata.deliveries import FlowState
from ibrik_broker.metadata.resources import ResourceRow, ResourceState
from ibrik_broker.metadata.rows import Origin
from ibrik_broker.registrations.around import Around
from ibrik_broker.registrations.collection import Collection, Common
from ibrik_broker.registrations.conditions import Aspect
from ibrik_broker.registrations.entries import Entries, Entry, precondition
from ibrik_broker.registrations.resolving import Resolution, resolve
from ibrik_broker.registrations.views import subscription_view
from ibrik_broker.topics.changes import TopicChange

AT_A_TIME = 100
"""Subscriptions that are resolved in a row: about 10 ms."""


class Told(NamedTuple):
    """What the dispatcher knows of a subscription."""

    subscription: SubscriptionWish
    inline: ChannelWish | None


class Closing(NamedTuple):
    """An end that the dispatcher has not confirmed yet."""

    forget: bool
    has_inline: bool


class Subscriptions(Collection[SubscriptionSpec, Told, Subscription]):
    kind = "Subscription"
    word = "subscription"
    model = Subscription
    unconfirmed = Aspect.DATA_PLANE_READY

    def __init__(self, entries: Entries[Told], common: Common, around: Around) -> None:
        super().__init__(entries, common)
        self.closing: dict[str, Closing] = {}
        """Ends that the dispatcher has not confirmed yet, by subscription."""
        self.loaded: dict[str, FlowState] | None = None
        """The states of all flows, while the broker starts."""
        self._around = around
        self._uses = common.uses

    # --- look -------------------------------------------------------------------------------------

    def view(self, entry: Entry[Told]) -> Subscription:
        told, flow = entry.wish, None
        if told is not None:
            with suppress(Refusal):  # a change failed half way: it is not open now
                flow = self._dispatcher.flow(entry.id)
        return subscription_view(
            entry.row,
            self.parse(entry.row.spec),
            entry.health,
            topic=None if told is None else told.subscription.topic,
            flow=flow,
            is_elsewhere=entry.is_elsewhere,
        )

    def matching(
        self,
        *,
        topic: str | None = None,
        channel: str | None = None,
        mode: Mode | None = None,
        name_prefix: str = "",
    ) -> Callable[[Entry[Told]], bool]:
        """For `page(keep=…)`: of a topic, to a channel, of a mode, with a beginning of the name."""

        def matches(entry: Entry[Told]) -> bool:
            # Ten thousand are looked at for one page: the documents are read, not parsed.
            told, document = entry.wish, entry.row.spec
            named = document.get("topicRef", {}).get("name")
            return (
                entry.row.name.startswith(name_prefix)
                and topic in (None, named if told is None else told.subscription.topic)
                and channel in (None, document.get("channelRef", {}).get("name"))
                and mode in (None, document.get("mode", Mode.PULL))
            )

        return matches

    def names_of(self, ids: Iterable[str]) -> list[str]:
        """With the namespace where it is not that of HTTP."""
        rows = [entry.row for i in ids if (entry := self.entries.by_id(i)) is not None]
        return sorted(
            row.name if row.namespace == self.namespace else f"{row.namespace}/{row.name}"
            for row in rows
        )

    def owner(self, row: ResourceRow) -> str | None:
        """The broker of a pool that serves it; None when its topic is not there."""
        spec = self.stored(row)
        if spec is None:
            return None
        return self.owner_of(row.namespace, row.origin, spec.topic_ref.name)

    def owner_of(self, namespace: str, origin: Origin, topic: str) -> str | None:
        return self._around.owner(namespace, origin, topic)

    # --- over HTTP --------------------------------------------------------------------------------

    async def delete(
        self,
        name: str,
        *,
        if_match: int | None = None,
        policy: SubscriptionDeletionPolicy | None = None,
        namespace: str | None = None,
    ) -> bool:
        """Delete by `policy`, or the subscription's own; whether it is kept, detached.

        Raises Refusal: unknown-subscription, subscription-detached, managed-by-resource …
        """
        async with self._turns:
            entry = self.entries.get((namespace or self.namespace, name))
            if entry is None or policy is None:
                entry = self.find(name, namespace)
            self.refuse_managed(entry)
            if if_match not in (None, entry.row.revision):
                why = f"it has revision {entry.row.revision}, not {if_match}"
                raise precondition(self.word, name, why)
            is_kept = self.keeps(entry.row, None)
            if policy is not None:
                is_kept = policy is SubscriptionDeletionPolicy.RETAIN
            await self.remove(entry, is_kept=is_kept)
            return is_kept

    # --- in a turn --------------------------------------------------------------------------------

    def parse(self, document: dict[str, Any]) -> SubscriptionSpec:
        return SubscriptionSpec.parse(document)

    def read(self, document: Mapping[str, Any]) -> SubscriptionSpec:
        return Subscription.parse(document).spec

    def keeps(self, row: ResourceRow, spec: SubscriptionSpec | None) -> bool:
        spec = self.stored(row) if spec is None else spec
        return spec is None or spec.deletion_policy is SubscriptionDeletionPolicy.RETAIN

    def check(self, row: ResourceRow, spec: SubscriptionSpec, old: SubscriptionSpec | None) -> None:
        check_subscription(spec)
        if old is not None:
            refuse_if(plan_subscription_update(old, spec))
        resolution = resolve(row, spec, _filter_of(spec), self._around)
        if row.origin is Origin.API:
            self._refuse_lost_references(spec, old, resolution)
        self._refuse_second_push(row, resolution)

    def check_resume(self, entry: Entry[Told]) -> None:
        spec = self.stored(entry.row)
        if spec is not None and spec.paused:
            raise Refusal(
                "subscription-paused",
                f"spec.paused of the subscription '{entry.row.name}' is true. Set it to false with "
                f"PUT /v1/subscriptions/{entry.row.name}, or in its resource.",
            )

    async def serve(self, entry: Entry[Told], *, again: bool = False) -> None:
        await self.finish_closing(entry.id)
        spec = self.parse(entry.row.spec)
        entry.is_elsewhere = self._around.is_elsewhere(entry.row, spec.topic_ref.name)
        if entry.row.state is ResourceState.DETACHED:
            await self._leave(entry)
            return
        self._uses.put(entry.row, spec)
        if entry.is_elsewhere:
            await self._leave(entry)
            return
        told = entry.wish
        known = None if told is None else told.subscription.filter
        resolution = resolve(entry.row, spec, _filter_of(spec, known), self._around)
        wish, inline = resolution.wish, resolution.inline
        if inline is not None and (again or told is None or told.inline != inline):
            await self._dispatcher.put_channel(inline)
        if told is None:
            await self._open(wish, self._state_of(entry))
        elif again or told.subscription != wish:
            await self._dispatcher.change(wish)
        entry.wish = Told(wish, inline)
        if inline is None and told is not None and told.inline is not None:
            await self._dispatcher.drop_channel(entry.id)
        entry.health.note(resolution.faults, self._clock_ms())

    async def remove(self, entry: Entry[Told], *, is_kept: bool) -> None:
        """Kept, it is detached: nothing is delivered, and its cursor stays."""
        if not is_kept:
            await self.drop(entry)
        elif entry.row.state is not ResourceState.DETACHED:
            await self.entries.change(entry, state=ResourceState.DETACHED)
            self._uses.remove(entry.id)
            await self._close(entry, forget=False)

    async def drop(self, entry: Entry[Told]) -> None:
        await self.entries.delete(entry)
        self._uses.remove(entry.id)
        await self._close(entry, forget=True)

    async def on_topic_change(self, change: TopicChange) -> None:
        """Resolve those that name the topic anew."""
        ids = {*self._uses.topics.of(change.name), *self._uses.topics.of(change.resource_name)}
        await self.serve_all(sorted(ids))

    async def serve_all(self, ids: Iterable[str]) -> None:
        """What fails is tried again later: the change that led here is done."""
        for number, subscription_id in enumerate(ids, 1):
            entry = self.entries.by_id(subscription_id)
            if entry is not None:
                await self.try_again(entry)
            if number % AT_A_TIME == 0:
                await asyncio.sleep(0)  # the doors go on, however many name one topic

    async def finish_closing(self, subscription_id: str) -> None:
        closing = self.closing.get(subscription_id)
        if closing is None:
            return
        await self._dispatcher.close_subscription(subscription_id, forget=closing.forget)
        if closing.has_inline:
            await self._dispatcher.drop_channel(subscription_id)
        del self.closing[subscription_id]

    async def on_gone(self, entry: Entry[Told]) -> None:
        self._uses.remove(entry.id)
        await self._leave(entry)

    # --- parts ------------------------------------------------------------------------------------

    async def _leave(self, entry: Entry[Told]) -> None:
        """Another broker serves it, or removed it: what is kept of it is that broker's."""
        entry.health.note({}, self._clock_ms())
        if entry.wish is not None:
            await self._close(entry, forget=False)

    async def _close(self, entry: Entry[Told], *, forget: bool) -> None:
        has_inline = entry.wish is not None and entry.wish.inline is not None
        self.closing[entry.id] = Closing(forget, has_inline)
        entry.wish = None
        await self.finish_closing(entry.id)

    async def _open(self, wish: SubscriptionWish, state: FlowState | None) -> None:
        try:
            await self._dispatcher.open(wish, state)
        except BaseException:
            # It may be open half way: closed first, it can be opened again.
            self.closing[wish.id] = Closing(forget=False, has_inline=False)
            raise

    def _state_of(self, entry: Entry[Told]) -> FlowState | None:
        """What the database knows of the flow; None: it has to be asked."""
        if self.loaded is not None:
            return self.loaded.pop(entry.id, FlowState())
        is_new, entry.is_new = entry.is_new, False  # a first attempt that fails may leave something
        return FlowState() if is_new else None

    def _refuse_lost_references(
        self, spec: SubscriptionSpec, old: SubscriptionSpec | None, resolution: Resolution
    ) -> None:
        """Over HTTP a new reference has to lead somewhere; one that was lost later does not."""
        topic_fault = resolution.faults.get(Aspect.TOPIC_RESOLVED)
        if topic_fault is not None and (old is None or old.dead_letter != spec.dead_letter):
            self._around.refuse_unknown_topic(resolution.wish.topic)
            raise Refusal(topic_fault.code, topic_fault.message)
        channel_fault = resolution.faults.get(Aspect.DESTINATION_RESOLVED)
        if channel_fault is not None and (old is None or old.channel_ref != spec.channel_ref):
            raise Refusal(channel_fault.code, channel_fault.message)

    def _refuse_second_push(self, row: ResourceRow, resolution: Resolution) -> None:
        wish = resolution.wish
        if not resolution.is_queue or wish.mode is not Mode.PUSH:
            return
        for entry in self.entries:
            told = entry.wish
            if told is None or entry.id == row.id or told.subscription.mode is not Mode.PUSH:
                continue
            if told.subscription.topic == wish.topic:
                raise Refusal(
                    "shared-needs-pull",
                    f"The topic '{wish.topic}' gives each message to one, and the subscription "
                    f"'{entry.row.name}' gets them by push already. Let consumers lease from one "
                    "shared subscription (mode: pull), or set dispatch: broadcast on the topic.",
                )


def _filter_of(spec: SubscriptionSpec, known: Filter | None = None) -> Filter | None:
    """The one that is known when it says the same: it counts. Raises Refusal `invalid-filter`."""
    if spec.filter is None or (known is not None and known.text == spec.filter):
        return None if spec.filter is None else known
    return compile_filter(spec.filter)
