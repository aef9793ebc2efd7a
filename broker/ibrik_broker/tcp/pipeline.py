"""Replies in the order of the commands, whatever order they become known in. No I/O.

Every command gets a slot when it is read. A slot is filled when its reply is known; what is filled
at the head can be written. A fetch is looked at only when it reaches the head: what was published
before it on the same connection is then answered, so a client reads its own writes.
"""

from collections import deque
from dataclasses import dataclass

from ibrik_wire import Fetch


@dataclass(slots=True, eq=False)
class Slot:
    """The place of one command, or of one run of publishes, in the order of replies."""

    reply: bytes | None = None
    fetch: Fetch | None = None


class Pipeline:
    def __init__(self) -> None:
        self._slots: deque[Slot] = deque()

    def __bool__(self) -> bool:
        return bool(self._slots)

    def open(self, reply: bytes | None = None, fetch: Fetch | None = None) -> Slot:
        slot = Slot(reply, fetch)
        self._slots.append(slot)
        return slot

    @property
    def has_reply(self) -> bool:
        return bool(self._slots) and self._slots[0].reply is not None

    def next_fetch(self) -> Slot | None:
        """The slot at the head if it waits for a fetch to be looked at."""
        if self._slots and self._slots[0].fetch is not None and self._slots[0].reply is None:
            return self._slots[0]
        return None

    def take_replies(self) -> bytes:
        """All that can be written now, joined."""
        slots, replies = self._slots, []
        while slots and (reply := slots[0].reply) is not None:
            replies.append(reply)
            slots.popleft()
        return replies[0] if len(replies) == 1 else b"".join(replies)

    def clear(self) -> None:
        self._slots.clear()
