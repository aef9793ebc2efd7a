"""Topics that another broker of the pool owns: what is delivered into one goes to that broker.

`topics` marks the name of such a topic as absent here; `core.py` gives the way to its owner.
"""

from collections.abc import Awaitable, Callable

from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.messages import Message

PublishAcross = Callable[[str, Message], Awaitable[None]]
"""Publish one message, with its id, to a topic of another broker. Raises Refusal."""


def is_elsewhere(engine: Engine, topic: str) -> bool:
    """Whether another broker owns the topic."""
    refusal = engine.absent.get(topic)
    return refusal is not None and refusal.code == "owner-elsewhere"


async def publish(
    engine: Engine, topic: str, message: Message, across: PublishAcross | None
) -> None:
    """Publish here, or there. Raises Refusal `unknown-topic`, `owner-unavailable`, and more."""
    if across is not None and is_elsewhere(engine, topic):
        await across(topic, message)
        return
    await engine.publish(engine.topic(topic), [message])
