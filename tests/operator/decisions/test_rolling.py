"""Which pod is replaced next: one at a time, sick ones first, and never when in doubt."""

from typing import Any

import pytest

from ibrik_api.kubernetes import DATABASE_HASH
from ibrik_operator.decisions.rolling import Roll, roll
from ibrik_operator.observations import PoolObservation
from tests.support.pool_documents import broker, observation, pod, silent

ALL_WELL = observation(broker(0), broker(1), broker(2))


def three(**changes: dict[str, Any]) -> list[dict[str, Any]]:
    """Three pods that are out of date; `changes` by p0, p1, p2."""
    return [pod(n, **{"digest": "old", **changes.get(f"p{n}", {})}) for n in range(3)]


def decided(pods: list[dict[str, Any]], seen: PoolObservation = ALL_WELL) -> tuple[str, str]:
    """The pod to delete, and the reason why the pool is not up to date."""
    found: Roll = roll(pods, 3, "new", seen)
    name = "" if found.pod is None else found.pod["metadata"]["name"].removeprefix("ibrik-default-")
    return name, "" if found.waits is None else str(found.waits.reason)


DONE = {"digest": "new"}
CASES = {
    "nothing is out of date": (three(p0=DONE, p1=DONE, p2=DONE), "", ""),
    "the highest goes first": (three(), "2", "Rolling"),
    "then the next": (three(p2=DONE), "1", "Rolling"),
    "an unready one goes before": (three(p0={"ready": False}), "0", "Rolling"),
    "one that goes is waited for": (three(p2={"deleted": True}), "", "Rolling"),
    "it is not done while the last one goes": (
        three(p0={"deleted": True}, p1=DONE, p2=DONE),
        "",
        "Rolling",
    ),
    "one that is not back is waited for": (three()[:2], "", "Rolling"),
    "a sick new one stops it": (three(p2=DONE | {"ready": False}), "", "RollWaits"),
    "putting back heals a sick one": (
        three(p0=DONE, p1=DONE, p2={"ready": False, "digest": "wrong"}),
        "2",
        "Rolling",
    ),
    "a sick one is replaced while another one goes": (
        three(p1={"ready": False}, p2={"deleted": True}),
        "1",
        "Rolling",
    ),
}


@pytest.mark.parametrize(("pods", "name", "reason"), CASES.values(), ids=CASES)
def test_the_next_pod(pods: list[dict[str, Any]], name: str, reason: str) -> None:
    assert decided(pods) == (name, reason)


def test_a_sick_pod_that_stops_it_is_named_with_a_command() -> None:
    waits = roll(three(p2=DONE | {"ready": False}), 3, "new", ALL_WELL).waits
    assert waits is not None
    assert "kubectl -n shop describe pod ibrik-default-2" in waits.message


DOUBTS = {
    "the database does not answer": observation(
        broker(0), broker(1, is_metadata_ready=False), broker(2)
    ),
    "an up-to-date broker does not answer": observation(broker(0), broker(1), silent(2)),
    "two do not answer": observation(broker(0), silent(1), silent(2)),
}


@pytest.mark.parametrize("seen", DOUBTS.values(), ids=DOUBTS)
def test_doubt_replaces_nothing_that_is_ready(seen: PoolObservation) -> None:
    assert decided(three(p2=DONE), seen) == ("", "RollWaits")


def test_a_broker_that_nobody_asked_since_it_came_is_waited_for() -> None:
    assert decided(three(p2=DONE), PoolObservation()) == ("", "Rolling")
    assert decided(three(p2=DONE), observation(broker(0), broker(1))) == ("", "Rolling")


def test_a_silent_broker_is_replaced_before_those_that_answer() -> None:
    assert decided(three(), observation(broker(0), silent(1), broker(2))) == ("1", "Rolling")


def test_a_pool_of_one_is_replaced_although_it_is_silent() -> None:
    assert roll([pod(0, digest="old")], 1, "new", observation(silent(0))).pod is not None


def test_an_unready_pod_is_replaced_whatever_the_database_says() -> None:
    seen = observation(broker(0, is_metadata_ready=False), silent(1), broker(2))
    assert decided(three(p1={"ready": False}), seen) == ("1", "Rolling")


def started_with(database: str, document: dict[str, Any]) -> dict[str, Any]:
    document["metadata"]["annotations"][DATABASE_HASH] = database
    return document


def test_brokers_cut_off_by_a_changed_password_are_replaced_with_the_new_one() -> None:
    cut_off = observation(*(broker(n, is_metadata_ready=False) for n in range(3)))
    pods = [started_with("former", one) for one in three()]
    assert roll(pods, 3, "new", cut_off, "newer").pod is pods[2]


def test_a_new_password_that_does_not_help_stops_after_one_broker() -> None:
    cut_off = observation(*(broker(n, is_metadata_ready=False) for n in range(3)))
    pods = [
        started_with("newer" if n == 2 else "former", one) for n, one in enumerate(three(p2=DONE))
    ]
    found = roll(pods, 3, "new", cut_off, "newer")
    assert found.pod is None
    assert found.waits is not None
    assert "until the database answers" in found.waits.message
