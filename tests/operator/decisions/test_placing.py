"""Where a Channel is served: where Subscriptions may name it, and at its own default pool."""

import pytest

from ibrik_operator.decisions.dependents import pools_of
from ibrik_operator.decisions.placing import is_allowed, pools_of_channel, resources_of_pool
from ibrik_operator.keys import Document, Key
from tests.support.resources import channel, keys, pool, subscription, topic, world_of

OPEN = {"allowedNamespaces": "All"}


@pytest.mark.parametrize(
    ("spec", "namespace", "is_fine"),
    [
        ({}, "shop", True),
        ({}, "other", False),
        ({"allowedNamespaces": "Same"}, "other", False),
        (OPEN, "other", True),
    ],
)
def test_a_channel_of_another_namespace_needs_consent(
    spec: dict[str, object], namespace: str, is_fine: bool
) -> None:
    assert is_allowed(channel(spec=spec), namespace) is is_fine


@pytest.mark.parametrize(
    ("others", "pools"),
    [
        ([], []),
        ([pool("big")], []),
        ([pool()], ["BrokerPool/default"]),
        (
            [pool("big"), topic("orders", {"pool": {"name": "big"}}), subscription(to="billing")],
            ["BrokerPool/big"],
        ),
        # Nobody knows the pool of a subscription whose topic is not there.
        ([pool("big"), subscription(to="billing")], []),
        # A pool that is not there serves nothing.
        ([topic(), subscription(to="billing")], []),
    ],
)
def test_a_channel_is_served_where_it_is_named(others: list[Document], pools: list[str]) -> None:
    one = channel()
    assert pools_of_channel(one, world_of(one, *others)) == keys(*pools)


@pytest.mark.parametrize(("spec", "pools"), [(OPEN, ["BrokerPool/other/default"]), ({}, [])])
def test_pools_of_other_namespaces_get_it_only_with_consent(
    spec: dict[str, object], pools: list[str]
) -> None:
    one = channel(spec=spec)
    world = world_of(
        one,
        pool(namespace="other"),
        topic(namespace="other"),
        subscription(to="shop/billing", namespace="other"),
    )
    assert pools_of_channel(one, world) == keys(*pools)


def test_a_pool_serves_exactly_what_says_so_of_itself() -> None:
    mine = [
        topic("orders"),
        channel("unused"),
        channel("mail", namespace="tools", spec=OPEN),
        subscription("billing", to="tools/mail"),
        subscription("pulling"),
    ]
    world = world_of(
        *mine,
        pool(),
        pool("big"),
        topic("clicks", {"pool": {"name": "big"}}),
        topic("orders", namespace="other"),
        channel("closed", namespace="tools"),
        subscription("refused", to="tools/closed"),
        subscription("of-clicks", of="clicks"),
        subscription("of-nothing", of="nothing"),
    )
    found = {Key.of(one) for one in resources_of_pool(Key("BrokerPool", "shop", "default"), world)}
    assert found == {Key.of(one) for one in mine} | set(keys("Subscription/refused"))
    for kind in ("Topic", "Subscription", "Channel"):
        for one in world.all(kind):
            is_served = Key("BrokerPool", "shop", "default") in pools_of(one, world)
            assert (Key.of(one) in found) is is_served, Key.of(one)
