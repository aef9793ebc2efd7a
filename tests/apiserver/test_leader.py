"""Of several replicas one leads; the election is a real Lease of a real API server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from ibrik_operator.kube import Kube
from ibrik_operator.leader import Leader
from ibrik_operator.settings import LeaseSettings, Settings
from tests.support.cluster import Cluster
from tests.support.declared import POOL, TOPIC, pool, topic
from tests.support.kubelet import Kubelet
from tests.support.operator_process import HOME, install_rights, running_operator
from tests.support.shop import Shop

LEASE = "coordination.k8s.io/v1/Lease"


def settings(namespace: str, identity: str) -> Settings:
    return Settings(identity=identity, lease=LeaseSettings(namespace=namespace, name="operator"))


@pytest.fixture
async def kube(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Kube]:
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    kube = await Kube.connect()
    yield kube
    await kube.close()


async def test_the_first_one_leads_on_a_cluster_without_the_lease(
    cluster: Cluster, namespace: str, kube: Kube
) -> None:
    leader = Leader(settings(namespace, "first"), kube.api)
    seen: list[str] = []

    async def lead() -> None:
        held = cluster.get(LEASE, "operator", namespace)["spec"]
        seen.append(held["holderIdentity"])

    await leader.run(lead)
    assert seen == ["first"]
    assert not cluster.get(LEASE, "operator", namespace)["spec"].get("holderIdentity")


async def test_what_goes_wrong_while_leading_ends_the_replica(
    cluster: Cluster, namespace: str, kube: Kube
) -> None:
    leader = Leader(settings(namespace, "first"), kube.api)

    async def lead() -> None:
        raise RuntimeError("the world ended")

    with pytest.raises(ExceptionGroup) as ended:
        await leader.run(lead)
    assert ended.group_contains(RuntimeError, match="the world ended")
    assert not leader.is_leading


async def test_the_second_leads_as_soon_as_the_first_lets_go(
    cluster: Cluster, namespace: str, kube: Kube
) -> None:
    order: list[str] = []
    leads, goes = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        order.append("first")
        leads.set()
        await goes.wait()

    async def second() -> None:
        order.append("second")

    async with asyncio.TaskGroup() as group:
        group.create_task(Leader(settings(namespace, "first"), kube.api).run(first))
        await leads.wait()
        group.create_task(Leader(settings(namespace, "second"), kube.api).run(second))
        await asyncio.sleep(0)
        assert cluster.get(LEASE, "operator", namespace)["spec"]["holderIdentity"] == "first"
        goes.set()
    assert order == ["first", "second"]


def test_a_replica_that_is_asked_to_end_hands_the_work_to_the_next(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path
) -> None:
    name = f"ibrik-{namespace}"
    lease = {
        "IBRIK_OPERATOR_LEASE__NAMESPACE": HOME,
        "IBRIK_OPERATOR_LEASE__NAME": f"{name}-operator",
    }
    account = install_rights(cluster, name, [namespace])
    first = {**lease, "IBRIK_OPERATOR_IDENTITY": "first"}
    second = {**lease, "IBRIK_OPERATOR_IDENTITY": "second"}
    with (
        running_operator(cluster, account, tmp_path / "1", [namespace], **first) as leading,
        running_operator(cluster, account, tmp_path / "2", [namespace], **second) as waiting,
    ):
        shop = Shop(cluster, kubelet, namespace, leading, tmp_path)
        shop.apply(pool("default", ""))
        shop.ready(POOL, "default")
        held = [one for one in (leading, waiting) if one.metric("ibrik_operator_is_leader") == 1]
        assert len(held) == 1
        ending, next_one = held[0], leading if held[0] is waiting else waiting
        assert ending.terminate() == 0
        assert "Traceback" not in ending.log.read_text()
        shop.apply(topic("orders", ""))
        shop.ready(TOPIC, "orders")
        assert next_one.metric("ibrik_operator_is_leader") == 1
