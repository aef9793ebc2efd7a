"""One real API server for all tests of this folder, with the definitions; a namespace for each.

The folder is collected only where the binaries are (`tests.support.kube_assets`), and not by
`make test`: `make apitest` runs it.
"""

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support import kube_assets
from tests.support.apiserver import ApiServer, running_apiserver, running_controllers
from tests.support.archived import CHART
from tests.support.cluster import Cluster
from tests.support.definitions import install_definitions
from tests.support.kubelet import Kubelet, running_kubelet
from tests.support.shop import Shop, opened

collect_ignore_glob = [] if kube_assets.are_there() else ["test_*.py"]
if CHART not in os.environ:
    collect_ignore_glob.append("test_archive_spark.py")
_numbers = count(1)


def new_namespace(cluster: Cluster) -> str:
    return cluster.new_namespace(f"test-{next(_numbers)}")


@pytest.fixture(scope="session")
def apiserver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    with running_apiserver(tmp_path_factory.mktemp("apiserver")) as server:
        yield server


@pytest.fixture(scope="session")
def cluster(apiserver: ApiServer) -> Cluster:
    """The administrator of the API server, which knows our kinds."""
    cluster = Cluster(apiserver, apiserver.admin_token)
    install_definitions(cluster)
    return cluster


@pytest.fixture(scope="session")
def controllers(cluster: Cluster) -> Iterator[None]:
    """The real controllers: sets make pods and claims, owners take what they own with them."""
    with running_controllers(cluster.server):
        yield


@pytest.fixture(scope="session")
def kubelet(
    cluster: Cluster, controllers: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Kubelet]:
    """The node of all pods: real brokers on addresses of their own."""
    with running_kubelet(cluster, tmp_path_factory.mktemp("node")) as kubelet:
        yield kubelet


@pytest.fixture
def namespace(cluster: Cluster) -> str:
    return new_namespace(cluster)


@pytest.fixture(scope="module")
def shop(
    cluster: Cluster, kubelet: Kubelet, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Shop]:
    """One namespace with an operator for all tests of a module, which use names of their own."""
    folder = tmp_path_factory.mktemp("shop")
    with opened(cluster, kubelet, new_namespace(cluster), folder) as shop:
        yield shop


@pytest.fixture
def own_shop(cluster: Cluster, kubelet: Kubelet, namespace: str, tmp_path: Path) -> Iterator[Shop]:
    """The same for one test that does not share."""
    with opened(cluster, kubelet, namespace, tmp_path) as shop:
        yield shop
