"""Watching: what an event changes in the world, and which keys it brings into the queue."""

from typing import Any

import pytest

from ibrik_operator.handlers.watching import OURS, WATCHED, Watching, _kopf_settings
from ibrik_operator.keys import Key
from ibrik_operator.kube import KINDS
from ibrik_operator.settings import Settings
from ibrik_operator.world import World
from tests.support.resources import topic

ORDERS = Key("Topic", "shop", "orders")


def orders(version: int, **given: Any) -> dict[str, Any]:
    return topic("orders", resourceVersion=str(version), **given)


class Watched:
    def __init__(self) -> None:
        self.world = World()
        self.queued: list[Key] = []
        self.watching = Watching(self.world, self.queued.append)

    def see(self, type_: str | None, document: dict[str, Any]) -> list[Key]:
        """What this event brought into the queue."""
        self.queued.clear()
        self.watching.seen(type_, document)
        return list(self.queued)


@pytest.mark.parametrize("type_", [None, "ADDED", "MODIFIED"])
def test_what_is_new_is_remembered_and_reconciled(type_: str | None) -> None:
    watched = Watched()
    assert ORDERS in watched.see(type_, orders(1))
    assert watched.world.get(ORDERS) == orders(1)


def test_a_status_of_our_own_brings_nothing_into_the_queue() -> None:
    watched = Watched()
    watched.see("ADDED", orders(1, ready=True))
    assert watched.see("MODIFIED", orders(2, ready=True, status={"bytes": 7})) == []
    assert watched.see("MODIFIED", orders(2, ready=True)) == []
    known = watched.world.get(ORDERS)
    assert known is not None
    assert known["metadata"]["resourceVersion"] == "2"


@pytest.mark.parametrize(
    "change",
    [
        {"generation": 2},
        {"annotations": {"ibrik.dev/paused": "true"}},
        {"labels": {"team": "shop"}},
        {"finalizers": ["ibrik.dev/protect"]},
        {"deletionTimestamp": "2026-11-28T10:00:00Z"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_a_person_changes_is_reconciled(change: dict[str, Any]) -> None:
    watched = Watched()
    watched.see("ADDED", orders(1))
    assert ORDERS in watched.see("MODIFIED", orders(2, **change))


def test_the_same_list_read_again_brings_nothing_into_the_queue() -> None:
    watched = Watched()
    watched.see("ADDED", orders(1))
    assert watched.see(None, orders(1)) == []


def test_what_comes_late_undoes_nothing_that_was_read_since() -> None:
    watched = Watched()
    watched.see(None, orders(10, generation=2))
    assert watched.see("MODIFIED", orders(9, generation=1)) == []
    assert watched.see("MODIFIED", orders(100, generation=3)) != []
    known = watched.world.get(ORDERS)
    assert known is not None
    assert known["metadata"]["generation"] == 3


def test_a_status_of_our_own_is_known_before_its_event() -> None:
    """Else what counts on it is written twice."""
    watched = Watched()
    watched.see("ADDED", orders(1))
    watched.watching.wrote(orders(3, ready=True))
    assert watched.world.get(ORDERS) == orders(3, ready=True)
    # What waits for it to be ready is told once: not again by its event, nor by one before it.
    assert Key("BrokerPool", "shop", "default") in watched.queued
    assert watched.see("MODIFIED", orders(2)) == []
    assert watched.see("MODIFIED", orders(3, ready=True)) == []
    assert watched.world.get(ORDERS) == orders(3, ready=True)


def test_an_answer_that_comes_after_the_end_brings_nothing_back() -> None:
    watched = Watched()
    watched.see("ADDED", orders(1, uid="first"))
    watched.see("DELETED", orders(4, uid="first"))
    watched.watching.wrote(orders(3, uid="first", ready=True))
    assert watched.world.get(ORDERS) is None
    watched.see("ADDED", orders(5, uid="second"))
    watched.watching.wrote(orders(3, uid="first", ready=True))
    assert watched.world.get(ORDERS) == orders(5, uid="second")


def test_what_is_deleted_is_gone() -> None:
    watched = Watched()
    watched.see("ADDED", orders(1))
    assert ORDERS in watched.see("DELETED", orders(2))
    assert watched.world.get(ORDERS) is None


def test_the_end_of_one_does_not_take_another_of_its_name_away() -> None:
    watched = Watched()
    watched.see("ADDED", orders(5, uid="second"))
    assert watched.see("DELETED", orders(4, uid="first")) == []
    assert watched.world.get(ORDERS) is not None


def test_the_end_of_what_was_never_seen_is_nothing() -> None:
    assert Watched().see("DELETED", orders(1)) == []


def test_no_value_of_a_secret_is_kept() -> None:
    watched = Watched()
    metadata = {"name": "token", "namespace": "shop", "resourceVersion": "1", "uid": "1"}
    secret = {"kind": "Secret", "metadata": metadata, "data": {"value": "c2VjcmV0"}}
    watched.see("ADDED", secret)
    known = watched.world.get(Key("Secret", "shop", "token"))
    assert known is not None
    assert list(known["data"]) == ["value"]
    assert "c2VjcmV0" not in str(known)


def test_kopf_says_nothing_of_its_own_and_watches_only_what_is_ours_of_others_kinds() -> None:
    ours = _kopf_settings(Settings())
    assert not ours.posting.enabled
    selectors = ours.watching.label_selectors
    for kind, labels in WATCHED.items():
        at = KINDS[kind]
        assert selectors.get((at.group, at.version, at.plural), "") == labels
        assert labels or kind in {"BrokerPool", "Topic", "Subscription", "Channel"}
    assert WATCHED["Pod"] == OURS


def test_attempts_to_reach_the_api_server_never_end_and_grow_to_a_bound() -> None:
    pauses = iter(_kopf_settings(Settings()).networking.error_backoffs)
    first = [next(pauses) for _ in range(50)]
    assert all(0.5 <= pause <= 90 for pause in first)
    assert min(first[10:]) >= 30
