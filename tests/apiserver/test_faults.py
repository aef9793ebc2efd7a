"""The operator dies after each of its side effects; the next one finishes what it began.

Each case reaches one fault point, which ends the process as SIGKILL would, then starts an operator
without a fault: everything has to become as declared, nothing twice, and no message is lost.
"""

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from ibrik_api.quantities import GIB, parse_quantity
from ibrik_operator.faults import EXIT_CODE, POINTS
from tests.support.archived import (
    CRON_JOB,
    JOB,
    archived_topic,
    archiving_pool,
    none,
    only,
)
from tests.support.cluster import Cluster, Document
from tests.support.declared import (
    CHANNEL,
    CLAIM,
    POD,
    POOL,
    SECRET,
    SET,
    SUBSCRIPTION,
    TOPIC,
    annotated,
    channel,
    is_so,
    pool,
    subscription,
    topic,
)
from tests.support.kubelet import Kubelet
from tests.support.operator_process import install_rights, running_operator
from tests.support.shop import Shop

FIRST, VOLUME = "ibrik-default-0", "data-ibrik-default-0"
AUTH = {"bearer": {"secretRef": {"name": "token", "key": "token"}}}


TWO = 2 * GIB


def storage(size: str) -> Document:
    return {"size": size, "storageClassName": "grows-anyway"}


def begin(shop: Shop) -> None:
    """Everything that makes an operator write at the start."""
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "none"}
    shop.cluster.apply(head | {"metadata": {"name": "grows-anyway"}, "allowVolumeExpansion": True})
    value = base64.b64encode(b"word").decode()
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}}
    shop.apply(secret | {"data": {"token": value}})
    shop.apply(channel("hook", "", http={"url": "http://127.0.0.1:9/"}, auth=AUTH))
    shop.apply(topic("orders", "", deletionPolicy="Delete"))
    push = {"mode": "push", "channelRef": {"name": "hook"}}
    shop.apply(subscription("pushes", "", "orders", **push))


def begun(shop: Shop) -> None:
    for kind, name in (
        (POOL, "default"),
        (TOPIC, "orders"),
        (SUBSCRIPTION, "pushes"),
        (CHANNEL, "hook"),
    ):
        shop.ready(kind, name)


def begin_with_a_pool(shop: Shop) -> None:
    shop.apply(pool("default", "", storage=storage("1Gi")))
    begin(shop)
    begun(shop)
    shop.publish("orders", b"1", b"2", b"3")


def grow(shop: Shop) -> None:
    shop.apply(pool("default", "", storage=storage("2Gi")))


def grown(shop: Shop) -> None:
    shop.wait(CLAIM, VOLUME, holds_two)
    shop.wait(SET, "ibrik-default", lambda s: "2Gi" in str(s["spec"]["volumeClaimTemplates"]))
    begun(shop)
    assert shop.messages("orders") == 3


def claim_by_hand(shop: Shop) -> None:
    """A claim as a person makes it for the set, without any label."""
    spec = {
        "storageClassName": "grows-anyway",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    head = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": VOLUME}}
    shop.apply(head | {"spec": spec})


def holds_two(claim: Document) -> bool:
    """One that is not bound yet has no capacity."""
    return parse_quantity(claim["status"].get("capacity", {}).get("storage", "0")) == TWO


def begin_around_a_claim(shop: Shop) -> None:
    claim_by_hand(shop)
    grow(shop)
    begin(shop)


def grown_around_a_claim(shop: Shop) -> None:
    shop.wait(CLAIM, VOLUME, holds_two)
    begun(shop)


def change(shop: Shop) -> None:
    shop.apply(pool("default", "", storage=storage("1Gi"), config={"logLevel": "debug"}))


def changed(shop: Shop) -> None:
    config = shop.wait(POOL, "default", is_so("UpToDate"))
    assert config["spec"]["config"]["logLevel"] == "debug"
    shop.wait(POD, FIRST, lambda p: p["status"]["containerStatuses"][0]["ready"])
    begun(shop)
    assert shop.messages("orders") == 3


def remove(shop: Shop) -> None:
    shop.delete(TOPIC, "orders")


def removed(shop: Shop) -> None:
    shop.gone(TOPIC, "orders")
    shop.eventually(lambda: shop.ask("GET", "/v1/topics/orders/partitions")[0] == 404)


def without_archive(shop: Shop) -> None:
    shop.apply(pool("default", ""))
    shop.apply(archived_topic(enabled=False))
    shop.ready(TOPIC, "orders")


def begin_archive(shop: Shop) -> None:
    shop.apply(archiving_pool())
    shop.apply(archived_topic())


def archived(shop: Shop) -> None:
    shop.wait(TOPIC, "orders", is_so("ArchiveScheduled", "True", "ByCronJob"))
    only(shop, CRON_JOB)
    assert "archive" in shop.get(SECRET, "ibrik-default-admin")["data"]
    assert shop.find(CLAIM, "lake-ibrik-default-0") is not None


def begin_and_archive(shop: Shop) -> None:
    begin_archive(shop)
    archived(shop)


def ask_for_a_run(shop: Shop) -> None:
    shop.apply(annotated(archived_topic(), archive_now="1"))


def has_run_once(shop: Shop) -> None:
    name = only(shop, CRON_JOB)["metadata"]["name"]
    shop.wait(CRON_JOB, name, lambda j: "ibrik.dev/archive-now" in j["metadata"]["annotations"])
    only(shop, JOB)


def end_archive(shop: Shop) -> None:
    shop.apply(archived_topic(enabled=False))


def archived_no_more(shop: Shop) -> None:
    none(shop, CRON_JOB)
    shop.wait(TOPIC, "orders", lambda t: "ArchiveScheduled" not in str(t["status"]["conditions"]))


Step = Callable[[Shop], None]
AT_THE_START: tuple[Step | None, Step, Step] = (None, begin, begun)
STEPS: dict[str, tuple[Step | None, Step, Step]] = dict.fromkeys(POINTS, AT_THE_START) | {
    "pool-set-orphaned": (begin_with_a_pool, grow, grown),
    "pool-claim-labelled": (None, begin_around_a_claim, grown_around_a_claim),
    "pool-claim-grown": (begin_with_a_pool, grow, grown),
    "pool-pod-deleted": (begin_with_a_pool, change, changed),
    "finalizer-released": (begin_with_a_pool, remove, removed),
    "archive-token-made": (without_archive, begin_archive, archived),
    "archive-claim-applied": (None, begin_archive, archived),
    "archive-schedule-applied": (None, begin_archive, archived),
    "archive-run-created": (begin_and_archive, ask_for_a_run, has_run_once),
    "archive-schedule-deleted": (begin_and_archive, end_archive, archived_no_more),
}


@pytest.mark.parametrize("point", POINTS)
def test_the_next_operator_finishes_what_a_dying_one_began(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path, point: str
) -> None:
    before, act, check = STEPS[point]
    account = install_rights(cluster, f"ibrik-{namespace}", [namespace])

    def operator(folder: str, **env: str) -> object:
        return running_operator(cluster, account, tmp_path / folder, [namespace], **env)

    if before is not None:
        with operator("before") as first:
            before(Shop(cluster, kubelet, namespace, first, tmp_path))
    with operator("doomed", IBRIK_OPERATOR_FAULT=point) as doomed:
        act(Shop(cluster, kubelet, namespace, doomed, tmp_path))
        assert doomed.wait() == EXIT_CODE
    with operator("after") as last:
        shop = Shop(cluster, kubelet, namespace, last, tmp_path)
        check(shop)
        assert [p["metadata"]["name"] for p in cluster.objects(POOL, namespace)] == ["default"]
        assert len(cluster.objects(POD, namespace)) == 1
        assert last.process.poll() is None
