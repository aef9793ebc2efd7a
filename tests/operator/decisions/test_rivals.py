"""Two topics that claim one name at a pool: the oldest wins, whatever order they are asked in."""

import itertools

import pytest

from ibrik_operator.decisions.rivals import rival
from ibrik_operator.keys import Document, Key
from tests.support.resources import CREATED, LATER, topic, world_of


def nobody(_: Document) -> bool:
    return False


def is_the_served_one(document: Document) -> bool:
    return bool(document["metadata"]["name"] == "served")


def test_the_oldest_wins_and_then_the_first_uid() -> None:
    oldest = topic("z", {"topicName": "orders"}, creationTimestamp=CREATED, uid="uid-a")
    twin = topic("a", {"topicName": "orders"}, creationTimestamp=CREATED, uid="uid-b")
    younger = topic("orders", creationTimestamp=LATER, uid="uid-0")
    for order in itertools.permutations([oldest, twin, younger]):
        world = world_of(*order)
        assert rival(oldest, world, nobody) is None
        assert rival(twin, world, nobody) == Key("Topic", "shop", "z")
        assert rival(younger, world, nobody) == Key("Topic", "shop", "z")


@pytest.mark.parametrize("uid", ["uid-0", "uid-9"])
def test_of_two_of_the_same_second_the_one_that_is_served_keeps_the_name(uid: str) -> None:
    served = topic("served", {"topicName": "orders"}, uid=uid)
    late = topic("late", {"topicName": "orders"}, uid="uid-5")
    world = world_of(served, late)
    assert rival(served, world, is_the_served_one) is None
    assert rival(late, world, is_the_served_one) == Key.of(served)


@pytest.mark.parametrize("uid", ["uid-0", "uid-9"])
def test_what_is_served_is_known_by_its_status_after_a_restart(uid: str) -> None:
    served = topic("served", {"topicName": "orders"}, uid=uid, status={"topicId": "some"})
    late = topic("late", {"topicName": "orders"}, uid="uid-5")
    world = world_of(served, late)
    assert rival(served, world, nobody) is None
    assert rival(late, world, nobody) == Key.of(served)


def test_an_older_one_wins_also_over_one_that_is_served() -> None:
    older = topic("older", {"topicName": "orders"})
    served = topic("orders", creationTimestamp=LATER, status={"topicId": "some"})
    assert rival(older, world_of(older, served), nobody) is None


def test_another_pool_namespace_or_name_is_no_rival() -> None:
    one = topic("orders", creationTimestamp=LATER)
    world = world_of(
        one,
        topic("a", {"topicName": "orders", "pool": {"name": "big"}}),
        topic("b", {"topicName": "orders"}, namespace="other"),
        topic("c"),
    )
    assert rival(one, world, nobody) is None


def test_the_next_one_has_the_name_when_the_oldest_is_gone() -> None:
    oldest, younger = topic("m", {"topicName": "orders"}), topic("orders", creationTimestamp=LATER)
    world = world_of(oldest, younger)
    world.remove(Key.of(oldest))
    assert rival(younger, world, nobody) is None
