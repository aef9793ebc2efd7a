"""Two topics that claim one name at a pool: the oldest wins, whatever order they are asked in."""

import itertools

from ibrik_operator.decisions.rivals import rival
from ibrik_operator.keys import Key
from tests.support.resources import CREATED, LATER, topic, world_of


def test_the_oldest_wins_and_then_the_first_name() -> None:
    oldest = topic("m", {"topicName": "orders"}, creationTimestamp=CREATED)
    twin = topic("n", {"topicName": "orders"}, creationTimestamp=CREATED)
    younger = topic("orders", creationTimestamp=LATER)
    for order in itertools.permutations([oldest, twin, younger]):
        world = world_of(*order)
        assert rival(oldest, world) is None
        assert rival(twin, world) == Key("Topic", "shop", "m")
        assert rival(younger, world) == Key("Topic", "shop", "m")


def test_another_pool_namespace_or_name_is_no_rival() -> None:
    one = topic("orders", creationTimestamp=LATER)
    world = world_of(
        one,
        topic("a", {"topicName": "orders", "pool": {"name": "big"}}),
        topic("b", {"topicName": "orders"}, namespace="other"),
        topic("c"),
    )
    assert rival(one, world) is None


def test_the_next_one_has_the_name_when_the_oldest_is_gone() -> None:
    oldest, younger = topic("m", {"topicName": "orders"}), topic("orders", creationTimestamp=LATER)
    world = world_of(oldest, younger)
    world.remove(Key.of(oldest))
    assert rival(younger, world) is None
