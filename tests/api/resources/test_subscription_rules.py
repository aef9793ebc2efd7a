"""What fits together in a subscription, what may change, what is left to the topic."""

from typing import Any

import pytest

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import GroupType, SubscriptionSpec
from ibrik_api.resources.subscription_rules import (
    check_subscription,
    group_type,
    ordering_of,
    parse_offsets,
    plan_subscription_update,
)
from ibrik_api.resources.topic import Delivery, Dispatch, Ordering

PUSH = {"mode": "push", "channelRef": {"name": "billing"}}
INLINE = {"mode": "push", "push": {"http": {"url": "http://billing/"}}}


def spec(**fields: Any) -> SubscriptionSpec:
    return SubscriptionSpec.parse({"topicRef": {"name": "orders"}} | fields)


def findings(**fields: Any) -> list[tuple[str, str, str]]:
    try:
        check_subscription(spec(**fields))
    except Refusal as refused:
        return [(e["code"], e["pointer"], e["detail"]) for e in refused.errors]
    return []


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mode": "stream", "type": "shared"},
        PUSH,
        INLINE,
        PUSH | {"type": "shared"},
        {"ordering": "strict", "type": "shared"},
        {"ordering": "key", "filter": "key == 'a'", "retry": {"preset": "webhook"}},
        {"start": {"from": "latest"}},
        {"start": {"from": "offset", "value": "0"}},
        {"start": {"from": "offset", "value": "17,0,9223372036854775807"}},
        {"start": {"from": "timestamp", "value": "2026-11-27T10:00:00Z"}},
        {"deadLetter": {"topicRef": {"name": "orders-dead"}}},
        {"retry": {"onExhausted": "block"}},
        {"retry": {"backoff": {"initial": "1m", "max": "1m"}}},
        PUSH | {"delivery": "fireAndForget"},
        PUSH | {"delivery": "fireAndForget", "ordering": "none"},
    ],
)
def test_what_fits_together_is_accepted(fields: dict[str, Any]) -> None:
    assert findings(**fields) == []


@pytest.mark.parametrize(
    ("fields", "pointer", "told"),
    [
        ({"mode": "push"}, "/spec", "give channelRef or push"),
        (PUSH | INLINE, "/spec/push", "keep one"),
        (PUSH | {"mode": "pull"}, "/spec/channelRef", "mode pull delivers nowhere"),
        (INLINE | {"mode": "stream"}, "/spec/push", "mode stream delivers nowhere"),
        ({"start": {"value": "3"}}, "/spec/start/value", "earliest needs no value"),
        ({"start": {"from": "latest", "value": "3"}}, "/spec/start/value", "leave it out"),
        ({"start": {"from": "offset"}}, "/spec/start/value", "needs a value"),
        ({"start": {"from": "timestamp"}}, "/spec/start/value", "needs a value"),
        ({"start": {"from": "offset", "value": ""}}, "/spec/start/value", "no offset"),
        ({"start": {"from": "offset", "value": "-1"}}, "/spec/start/value", "no offset"),
        ({"start": {"from": "offset", "value": "1, 2"}}, "/spec/start/value", "no offset"),
        ({"start": {"from": "offset", "value": "1,"}}, "/spec/start/value", "no offset"),
        ({"start": {"from": "offset", "value": "\u0661"}}, "/spec/start/value", "no offset"),
        (
            {"start": {"from": "offset", "value": "1,9223372036854775808"}},
            "/spec/start/value",
            "no offset",
        ),
        ({"start": {"from": "timestamp", "value": "1"}}, "/spec/start/value", "RFC 3339"),
        (
            {"retry": {"backoff": {"initial": "2m", "max": "1m"}}},
            "/spec/retry/backoff/initial",
            "longer than max (1m)",
        ),
        (
            {"retry": {"onExhausted": "block"}, "deadLetter": {"topicRef": {"name": "d"}}},
            "/spec/deadLetter",
            "nothing becomes a dead letter",
        ),
        ({"delivery": "fireAndForget"}, "/spec/delivery", "for mode push"),
        (
            PUSH | {"delivery": "fireAndForget", "retry": {"maxAttempts": 3}},
            "/spec/retry",
            "nothing is repeated",
        ),
        (
            PUSH | {"delivery": "fireAndForget", "deadLetter": {"topicRef": {"name": "d"}}},
            "/spec/deadLetter",
            "nothing is repeated",
        ),
        (
            PUSH | {"delivery": "fireAndForget", "ordering": "key"},
            "/spec/ordering",
            "nothing waits",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_its_field(
    fields: dict[str, Any], pointer: str, told: str
) -> None:
    ((code, found, detail),) = findings(**fields)
    assert (code, found) == ("invalid-resource", pointer)
    assert told in detail


@pytest.mark.parametrize(
    ("fields", "pointer", "told"),
    [
        (
            {"deadLetter": {"channelRef": {"name": "c"}}},
            "/spec/deadLetter/channelRef",
            "deadLetter.topicRef",
        ),
        ({"replay": {"requestId": "1", "from": "0"}}, "/spec/replay", "POST /v1/replays"),
    ],
)
def test_what_is_not_served_yet_is_refused_with_what_to_do_instead(
    fields: dict[str, Any], pointer: str, told: str
) -> None:
    ((code, found, detail),) = findings(**fields)
    assert (code, found) == ("unsupported-field", pointer)
    assert told in detail


def test_every_finding_is_told_at_once_also_those_of_the_destination() -> None:
    found = findings(
        mode="push",
        push={"http": {"url": "ftp://x/y"}, "auth": {"bearer": {"secretRef": {}}}},
        start={"from": "offset"},
    )
    assert [(code, pointer) for code, pointer, _ in found] == [
        ("invalid-resource", "/spec/start/value"),
        ("invalid-destination", "/spec/push/http/url"),
        ("invalid-destination", "/spec/push/auth/bearer/secretRef"),
    ]


def test_only_the_topic_is_fixed() -> None:
    old = spec(mode="pull")
    assert plan_subscription_update(old, spec(**PUSH, paused=True, type="shared")) == []
    (error,) = plan_subscription_update(old, old.parse({"topicRef": {"name": "bills"}}))
    assert (error["code"], error["pointer"]) == ("immutable-field", "/spec/topicRef")
    assert "(orders): put it back" in error["detail"]


@pytest.mark.parametrize(
    ("type_", "dispatch", "expected"),
    [
        (None, Dispatch.BROADCAST, GroupType.EXCLUSIVE),
        (None, Dispatch.QUEUE, GroupType.SHARED),
        ("shared", Dispatch.BROADCAST, GroupType.SHARED),
        ("exclusive", Dispatch.QUEUE, GroupType.EXCLUSIVE),
    ],
)
def test_the_type_is_its_own_or_that_of_the_topic(
    type_: str | None, dispatch: Dispatch, expected: GroupType
) -> None:
    fields = {} if type_ is None else {"type": type_}
    assert group_type(spec(**fields), dispatch) is expected


def test_the_ordering_is_its_own_or_that_of_the_topic() -> None:
    by_key = Delivery(ordering=Ordering.KEY)
    assert ordering_of(spec(), by_key) is Ordering.KEY
    assert ordering_of(spec(ordering="none"), by_key) is Ordering.NONE
    assert ordering_of(spec(ordering="strict"), Delivery()) is Ordering.STRICT
    assert ordering_of(spec(**PUSH, delivery="fireAndForget"), by_key) is Ordering.NONE


def test_offsets_are_one_or_one_for_each_partition() -> None:
    assert parse_offsets("7") == [7]
    assert parse_offsets("7,0,12") == [7, 0, 12]
