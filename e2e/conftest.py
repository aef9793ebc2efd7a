"""One kind cluster for the whole run, the chart installed in it, a namespace for each test."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count

import pytest

from e2e.support.cluster import Cluster
from e2e.support.kind import ClusterInUse, running_cluster
from e2e.support.pods import Client, start_client

_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "reinstalls: installs in its own way; runs after the others")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes the installation away comes last, so that it is installed anew only once."""
    items.sort(key=lambda item: item.get_closest_marker("reinstalls") is not None)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    with ExitStack() as stack:
        try:
            yield stack.enter_context(running_cluster())
        except ClusterInUse as error:
            pytest.exit(str(error), 1)


@pytest.fixture
def installed(cluster: Cluster) -> Cluster:
    """The cluster with the chart as it comes, for all namespaces."""
    if not cluster.is_installed():
        cluster.install()
    return cluster


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """Its own for each test; gone after it, when the test passed through."""
    name = cluster.new_namespace(f"t{next(_numbers)}-{os.getpid()}")
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture
def client(cluster: Cluster, namespace: str) -> Client:
    return start_client(cluster, namespace)
