"""An operator that has nothing to do writes nothing: the audit log says so."""

from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.declared import SUBSCRIPTION, TOPIC, channel, subscription, topic
from tests.support.kubelet import Kubelet
from tests.support.operator_process import Operator
from tests.support.shop import Shop, opened

PASSES = 5
TOPICS = 20


def steady_passes(operator: Operator) -> int:
    """Comparisons of everything so far in which nothing differed."""
    return operator.metric('ibrik_operator_resyncs_total{result="steady"}')


def changing_calls(operator: Operator) -> int:
    return operator.metric('ibrik_operator_broker_calls_total{call="apply",result="done"}')


def wait_for_passes(shop: Shop) -> None:
    enough = steady_passes(shop.operator) + PASSES
    shop.eventually(lambda: steady_passes(shop.operator) >= enough)


def test_neither_idling_nor_a_restart_writes_anything(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path
) -> None:
    quick = {"IBRIK_OPERATOR_RESYNC_MS": "1000"}
    with opened(cluster, kubelet, namespace, tmp_path / "first", **quick) as shop:
        shop.apply(channel("hook", "", http={"url": "http://127.0.0.1:9/"}))
        for number in range(TOPICS):
            shop.apply(topic(f"topic-{number}", ""))
            shop.apply(subscription(f"reader-{number}", "", f"topic-{number}"))
        for number in range(TOPICS):
            shop.ready(TOPIC, f"topic-{number}")
            shop.ready(SUBSCRIPTION, f"reader-{number}")
        wait_for_passes(shop)
        since, calls = cluster.audit_position(), changing_calls(shop.operator)
        wait_for_passes(shop)
        assert shop.operator.writes(since) == []
        assert changing_calls(shop.operator) == calls
    with opened(cluster, kubelet, namespace, tmp_path / "second", **quick) as shop:
        since = cluster.audit_position()
        shop.eventually(lambda: steady_passes(shop.operator) > 0)
        wait_for_passes(shop)
        assert shop.operator.writes(since) == []
        # The brokers are told everything once, since only they know whether it is as it was.
        calls = changing_calls(shop.operator)
        wait_for_passes(shop)
        assert changing_calls(shop.operator) == calls


def test_a_declared_topic_costs_two_writes(own_shop: Shop) -> None:
    shop = own_shop
    shop.apply(topic("first", ""))
    shop.ready(TOPIC, "first")
    since = shop.cluster.audit_position()
    for number in range(TOPICS):
        shop.apply(topic(f"topic-{number}", ""))
    for number in range(TOPICS):
        shop.ready(TOPIC, f"topic-{number}")
    written = [write for write in shop.operator.writes(since) if write.resource == "topics"]
    assert len(written) <= 2 * TOPICS
    assert {write.status for write in shop.operator.writes(since)} <= {200, 201}
