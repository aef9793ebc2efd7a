"""The API server answers 409, 429, 5xx, nothing, or loses its answer: it becomes as declared."""

import dataclasses
from pathlib import Path

import pytest

from tests.apiserver.test_faults import begin, begun, remove, removed
from tests.support.cluster import Cluster
from tests.support.declared import POD, POOL, SET
from tests.support.kubelet import Kubelet
from tests.support.operator_process import install_rights, running_operator
from tests.support.shop import Shop
from tests.support.unreliable import unreliable


@pytest.mark.parametrize("seed", range(3))
def test_everything_becomes_as_declared_through_faults(
    cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path, seed: int
) -> None:
    print(f"seed {seed}")
    account = install_rights(cluster, f"ibrik-{namespace}", [namespace])
    with unreliable(cluster.server, seed, faults=60) as proxy:
        path = dataclasses.replace(cluster.server, url=proxy.url).kubeconfig(
            account.token, f"unreliable-{namespace}"
        )
        with running_operator(cluster, account, tmp_path, [namespace], path) as operator:
            shop = Shop(cluster, kubelet, namespace, operator, tmp_path)
            begin(shop)
            begun(shop)
            remove(shop)
            removed(shop)
            assert operator.process.poll() is None, operator.log.read_text()[-4000:]
    print("\n".join(proxy.told))
    assert len(proxy.told) > 10
    for kind in (POOL, SET, POD):
        assert len(cluster.objects(kind, namespace)) == 1
