"""What happens to a pool over its life: replaced, refused, deleted; and what its volume keeps."""

from typing import Any

from tests.support.cluster import Document
from tests.support.declared import (
    CLAIM,
    POD,
    POOL,
    TOPIC,
    is_so,
    pool,
    topic,
)
from tests.support.shop import Shop

QUOTA = "v1/ResourceQuota"
CLASS = "storage.k8s.io/v1/StorageClass"
FIRST = "ibrik-default-0"


def storage(size: str, class_name: str) -> Document:
    return {"size": size, "storageClassName": class_name}


def other_than(document: Document) -> Any:
    """Another incarnation of it, which is ready."""
    return lambda found: found["metadata"]["uid"] != document["metadata"]["uid"] and is_up(found)


def is_up(pod: Document) -> bool:
    states = pod.get("status", {}).get("containerStatuses", [])
    return bool(states) and bool(states[0]["ready"])


def test_a_change_of_settings_replaces_the_pod_and_loses_nothing(own_shop: Shop) -> None:
    shop = own_shop
    shop.apply(topic("orders", ""))
    shop.ready(TOPIC, "orders")
    shop.publish("orders", *(str(number).encode() for number in range(20)))
    before = shop.get(POD, FIRST)
    shop.apply(pool("default", "", config={"logLevel": "debug"}))
    shop.wait(POD, FIRST, other_than(before))
    shop.wait(POOL, "default", is_so("UpToDate"))
    shop.ready(TOPIC, "orders")
    assert shop.messages("orders") == 20


def test_a_quota_that_is_exhausted_is_told(own_shop: Shop) -> None:
    shop = own_shop
    head = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    count = {"count/statefulsets.apps": "0"}
    shop.apply(head | {"spec": {"hard": count}})
    # The controller that counts does not run here.
    counted = {"status": {"hard": count, "used": count}}
    shop.cluster.patch(QUOTA, "none", counted, shop.namespace, subresource="status")
    shop.apply(pool("default", ""))
    assert "exceeded quota" in shop.not_ready(POOL, "default", "Forbidden")
    shop.delete(QUOTA, "none")
    shop.ready(POOL, "default")


def test_a_storage_class_that_is_missing_is_told(own_shop: Shop) -> None:
    shop = own_shop
    shop.apply(pool("default", "", storage=storage("1Gi", "no-such-class")))
    shop.not_ready(POOL, "default", "ClaimPending")
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "none"}
    shop.cluster.apply(head | {"metadata": {"name": "no-such-class"}})
    shop.ready(POOL, "default")
    shop.cluster.delete(CLASS, "no-such-class")


def test_deleting_a_pool_keeps_its_volume_and_a_new_one_finds_it(own_shop: Shop) -> None:
    shop = own_shop
    shop.apply(pool("main", ""))
    shop.apply(topic("orders", "", pool={"name": "main"}))
    before = shop.ready(TOPIC, "orders")
    for body in (b"1", b"2", b"3"):
        shop.publish("orders", body, pod="ibrik-main-0")
    shop.delete(POOL, "main")
    shop.gone(POD, "ibrik-main-0")
    shop.not_ready(TOPIC, "orders", "PoolNotFound")
    assert shop.get(CLAIM, "data-ibrik-main-0")
    shop.apply(pool("main", ""))
    shop.ready(POOL, "main")
    after = shop.ready(TOPIC, "orders")
    assert after["status"]["topicId"] == before["status"]["topicId"]
    assert shop.messages("orders", pod="ibrik-main-0") == 3
