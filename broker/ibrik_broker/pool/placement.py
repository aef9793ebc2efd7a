"""Which broker gets a new topic. Pure: brokers and counts in, an order of candidates out."""

from collections.abc import Iterable, Mapping

from ibrik_broker.metadata.brokers import BrokerRow

STEP_BYTES = 2**30
"""Brokers that differ by less hold equally much: their bytes are known late, their topics at once,
so that a hundred topics made in a second do not all go to the broker with a few bytes less."""
FRESH_MS = 15_000
"""A broker that said nothing for longer gets no new topics."""


def candidates(
    brokers: Iterable[BrokerRow], topics: Mapping[str, int], now_ms: int
) -> list[BrokerRow]:
    """The brokers that are alive: first that with the fewest bytes, then with the fewest topics.

    `topics` says how many each owns, by its id.
    """
    alive = (broker for broker in brokers if now_ms - broker.updated_ms < FRESH_MS)
    return sorted(
        alive,
        key=lambda broker: (broker.size_bytes // STEP_BYTES, topics.get(broker.id, 0), broker.name),
    )
