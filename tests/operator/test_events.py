"""Events: a person hears of what flipped, once, and of nothing that stayed as it was."""

import pytest

from ibrik_operator.events import MAX_MESSAGE, News, event_of, transitions
from tests.support.resources import topic

NOW_MS = 1_800_000_000_000


def one(type_: str, status: str, reason: str, message: str = "") -> dict[str, str]:
    return {"type": type_, "status": status, "reason": reason, "message": message}


FINE = [one("PoolReady", "True", "PoolReady"), one("Ready", "True", "Ready")]
BROKEN = [
    one("PoolReady", "False", "PoolNotFound", "create the pool"),
    one("Ready", "False", "PoolNotFound", "create the pool"),
]


def test_what_breaks_is_a_warning_that_says_why_once() -> None:
    assert transitions(FINE, BROKEN) == [News("PoolNotFound", "create the pool", True)]


def test_what_heals_is_told_of() -> None:
    healed = transitions(BROKEN, FINE)
    assert [(news.reason, news.is_warning) for news in healed] == [
        ("PoolReady", False),
        ("Ready", False),
    ]
    assert all(news.message for news in healed)


def test_another_reason_is_news() -> None:
    other = [one("PoolReady", "False", "PoolNotReady", "wait"), *BROKEN[1:]]
    assert transitions(BROKEN, other) == [News("PoolNotReady", "wait", True)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(FINE, FINE, id="all stayed well"),
        pytest.param(BROKEN, BROKEN, id="it is as broken as before"),
        pytest.param([], FINE, id="all is well from the start"),
        pytest.param(
            BROKEN, [{**condition, "message": "other words"} for condition in BROKEN],
            id="the same in other words",
        ),
        pytest.param(
            [], [one("Reconciling", "True", "Rolling"), one("Stalled", "False", "Fine")],
            id="only for generic tools",
        ),
        pytest.param(FINE, [one("PoolReady", "Unknown", "Waits")], id="nobody knows"),
    ],
)  # fmt: skip
def test_nothing_is_told_of(before: list[dict[str, str]], after: list[dict[str, str]]) -> None:
    assert transitions(before, after) == []


def test_an_event_names_its_object_and_is_bounded() -> None:
    event = event_of(topic("orders"), News("Conflict", "x" * 5_000, True), now_ms=NOW_MS)
    about = event["involvedObject"]
    assert (about["kind"], about["namespace"], about["name"]) == ("Topic", "shop", "orders")
    assert about["uid"] == "uid-orders"
    assert (event["type"], event["reason"]) == ("Warning", "Conflict")
    assert len(event["message"]) == MAX_MESSAGE
    assert event["metadata"]["namespace"] == "shop"


def test_events_of_long_names_have_names_that_the_api_server_takes() -> None:
    names = {
        event_of(topic("n" * 253), News(reason, ""), now_ms=NOW_MS)["metadata"]["name"]
        for reason in ("Conflict", "Ready")
    }
    assert len(names) == 2
    assert all(len(name) <= 253 for name in names)
