"""Channels: named destinations. The subscriptions that name one hear of each change."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ibrik_api.errors import Refusal
from ibrik_api.resources.channel import AllowedNamespaces, Channel, ChannelSpec
from ibrik_api.resources.destination import Destination
from ibrik_api.resources.destination_rules import check_destination, destination_endpoint
from ibrik_api.resources.topic_rules import refuse_if
from ibrik_broker.delivery.wishes import ChannelWish
from ibrik_broker.metadata.resources import ResourceRow
from ibrik_broker.registrations.collection import Collection, Common
from ibrik_broker.registrations.conditions import Aspect, Fault, Reason
from ibrik_broker.registrations.entries import Entries, Entry, precondition
from ibrik_broker.registrations.resolving import FoundChannel
from ibrik_broker.registrations.views import channel_view

CredentialFault = Callable[[Destination, str], str | None]
"""What is wrong with the secrets that a destination of a namespace refers to; called in a thread,
since it reads files. None: they are all there."""
SHOWN_SUBSCRIPTIONS = 5


class Users(Protocol):
    """The subscriptions, which hear of each channel that they name."""

    async def serve_all(self, ids: Iterable[str]) -> None: ...
    def names_of(self, ids: Iterable[str]) -> list[str]: ...


class Channels(Collection[ChannelSpec, ChannelWish, Channel]):
    kind = "Channel"
    word = "channel"
    model = Channel
    unconfirmed = Aspect.RESOLVED

    users: Users

    def __init__(
        self,
        entries: Entries[ChannelWish],
        common: Common,
        credential_fault: CredentialFault | None = None,
    ) -> None:
        super().__init__(entries, common)
        self._uses = common.uses.channels
        self._credential_fault = credential_fault

    # --- look -------------------------------------------------------------------------------------

    def found(self, namespace: str, name: str) -> FoundChannel | None:
        """What a subscription needs to know of a channel."""
        entry = self.entries.get((namespace, name))
        if entry is None:
            return None
        destination = None if entry.wish is None else entry.wish.destination
        is_open = isinstance(destination, ChannelSpec) and (
            destination.allowed_namespaces is AllowedNamespaces.ALL
        )
        allowed = AllowedNamespaces.ALL if is_open else AllowedNamespaces.SAME
        return FoundChannel(entry.id, allowed)

    def matching(
        self, *, kind: str | None = None, host: str | None = None, name_prefix: str = ""
    ) -> Callable[[Entry[ChannelWish]], bool]:
        """For `page(keep=…)`: those of a kind, to a host, with a beginning of the name."""

        def matches(entry: Entry[ChannelWish]) -> bool:
            if not entry.row.name.startswith(name_prefix) or entry.wish is None:
                return False
            destination = entry.wish.destination
            return kind in (None, destination.kind) and host in (
                None,
                destination_endpoint(destination)[0],
            )

        return matches

    def view(self, entry: Entry[ChannelWish]) -> Channel:
        return channel_view(
            entry.row,
            self.parse(entry.row.spec),
            entry.health,
            outlet=None if entry.wish is None else self._dispatcher.outlet(entry.id),
            subscriptions=self._uses.count(entry.key),
            now_ms=self._clock_ms(),
            now_ticks=self._common.ticks_ms(),
        )

    # --- over HTTP --------------------------------------------------------------------------------

    async def delete(
        self, name: str, *, if_match: int | None = None, namespace: str | None = None
    ) -> None:
        """Remove a channel that nobody names.

        Raises Refusal: unknown-channel, channel-in-use, managed-by-resource …
        """
        async with self._turns:
            entry = self.find(name, namespace)
            self.refuse_managed(entry)
            if if_match not in (None, entry.row.revision):
                why = f"it has revision {entry.row.revision}, not {if_match}"
                raise precondition(self.word, name, why)
            self.refuse_used(entry)
            await self.drop(entry)

    def is_used(self, entry: Entry[ChannelWish]) -> bool:
        return self._uses.count(entry.key) > 0

    def refuse_used(self, entry: Entry[ChannelWish]) -> None:
        names = self.users.names_of(self._uses.of(entry.key))
        if not names:
            return
        more = len(names) - SHOWN_SUBSCRIPTIONS
        shown = ", ".join(names[:SHOWN_SUBSCRIPTIONS]) + (f" and {more} more" if more > 0 else "")
        raise Refusal(
            "channel-in-use",
            f"The channel '{entry.row.name}' is named by the subscriptions {shown}. Delete them, "
            "or let them deliver elsewhere, and delete it then.",
            subscriptions=names,
        )

    # --- in a turn --------------------------------------------------------------------------------

    def parse(self, document: dict[str, Any]) -> ChannelSpec:
        return ChannelSpec.parse(document)

    def read(self, document: Mapping[str, Any]) -> ChannelSpec:
        return Channel.parse(document).spec

    def check(self, row: ResourceRow, spec: ChannelSpec, old: ChannelSpec | None) -> None:
        refuse_if(check_destination(spec))

    async def serve(self, entry: Entry[ChannelWish], *, again: bool = False) -> None:
        row = entry.row
        spec = self.parse(row.spec)
        wish = ChannelWish(
            id=row.id, name=row.name, namespace=row.namespace, destination=spec, halt=row.halt
        )
        if again or wish != entry.wish:
            await self._dispatcher.put_channel(wish)
            entry.wish = wish
        await self.check_credentials(entry)
        await self.users.serve_all(self._uses.of(entry.key))

    async def check_all_credentials(self) -> None:
        """Of those channels that need any."""
        for entry in list(self.entries):
            if entry.wish is not None and has_secrets(entry.wish.destination):
                await self.check_credentials(entry)

    async def check_credentials(self, entry: Entry[ChannelWish]) -> None:
        """Secrets come and go beside the wish, so this is asked again from time to time."""
        fault = None
        destination = None if entry.wish is None else entry.wish.destination
        if destination is not None and has_secrets(destination) and self._credential_fault:
            check = self._credential_fault
            fault = await asyncio.to_thread(check, destination, entry.row.namespace)
        faults = {}
        if fault is not None:
            faults[Aspect.CREDENTIALS_VALID] = Fault(Reason.CREDENTIALS_MISSING, fault[:2_000])
        entry.health.note(faults, self._clock_ms())

    async def drop(self, entry: Entry[ChannelWish]) -> None:
        """Subscriptions that name it wait; their cursors stay."""
        await self.entries.delete(entry)
        await self.on_gone(entry)

    async def on_gone(self, entry: Entry[ChannelWish]) -> None:
        await self.users.serve_all(self._uses.of(entry.key))
        if entry.wish is not None:
            await self._dispatcher.drop_channel(entry.id)
            entry.wish = None


def has_secrets(destination: Destination) -> bool:
    auth, tls = destination.auth, destination.tls
    references = (auth.bearer, auth.basic, tls.ca_secret_ref, destination.signing)
    return any(reference is not None for reference in references)
