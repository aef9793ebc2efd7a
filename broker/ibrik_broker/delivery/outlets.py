"""All destinations of this broker: their pushers, and which flows go there.

A flow may name a destination that is not there: it waits, and goes on when it comes.
"""

import asyncio
from collections.abc import Callable, Iterable

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.outlet import Outlet
from ibrik_broker.delivery.parts import Parts
from ibrik_broker.delivery.push import Push
from ibrik_broker.delivery.pusher import Pusher
from ibrik_broker.delivery.senders.parcel import Sender
from ibrik_broker.delivery.wishes import ChannelWish


class Outlets:
    def __init__(self, make_sender: Callable[[ChannelWish], Sender], parts: Parts) -> None:
        self._make_sender = make_sender
        self._parts = parts
        self._pushers: dict[str, Pusher] = {}
        self._members: dict[str, dict[Push, None]] = {}
        """By channel, also by one that is not there."""

    async def put(self, wish: ChannelWish) -> None:
        """Make or change a destination; flows that wait for it go on."""
        pusher = self._pushers.get(wish.id)
        if pusher is None:
            self._pushers[wish.id] = Pusher(Outlet(wish), self._make_sender(wish), self._parts)
        else:
            await self._change(pusher, wish)
        for push in self._members.get(wish.id, ()):
            self._connect(push, wish.id)

    async def _change(self, pusher: Pusher, wish: ChannelWish) -> None:
        known, old_sender = pusher.outlet.wish, pusher.sender
        if known.destination != wish.destination or known.name != wish.name:
            pusher.sender = self._make_sender(wish)
            await old_sender.close()
        pusher.outlet.change(wish)

    async def drop(self, channel_id: str) -> None:
        """A destination goes; flows to it wait for another one."""
        pusher = self._pushers.pop(channel_id, None)
        if pusher is None:
            return
        for push in self._members.get(channel_id, ()):
            pusher.forget(push)
            push.pusher = None
        await pusher.sender.close()

    def join(self, push: Push) -> None:
        """A flow goes to the channel of its wish, and to no other one any more."""
        channel_id = push.wish.channel_id
        if push.joined_id != channel_id:
            self.leave(push)
        if channel_id is not None:
            push.joined_id = channel_id
            self._members.setdefault(channel_id, {})[push] = None
            self._connect(push, channel_id)

    def leave(self, push: Push) -> None:
        if push.joined_id is None:
            return
        members = self._members[push.joined_id]
        members.pop(push, None)
        if not members:
            del self._members[push.joined_id]
        push.joined_id = None
        if push.pusher is not None:
            push.pusher.forget(push)
            push.pusher = None

    def _connect(self, push: Push, channel_id: str) -> None:
        push.pusher = self._pushers.get(channel_id)
        if push.flow.topic is not None:
            push.on_ready()

    def outlet(self, channel_id: str) -> Outlet:
        """Raises Refusal `unknown-channel`."""
        return self._known(channel_id).outlet

    def outlets(self) -> Iterable[Outlet]:
        return [pusher.outlet for pusher in self._pushers.values()]

    def sender(self, channel_id: str) -> Sender:
        """The very sender that deliveries use, for a probe. Raises Refusal `unknown-channel`."""
        return self._known(channel_id).sender

    def _known(self, channel_id: str) -> Pusher:
        pusher = self._pushers.get(channel_id)
        if pusher is None:
            raise Refusal("unknown-channel", f"There is no channel {channel_id}.")
        return pusher

    async def close(self, seconds: float) -> None:
        """Send nothing new, and let what is on its way end."""
        async with asyncio.TaskGroup() as closing:
            for pusher in self._pushers.values():
                closing.create_task(pusher.close(seconds))
