"""One kind cluster for the whole run, the chart installed in it, a namespace for each test.

Environment: KIND_CLUSTER names the cluster (e2e), KIND_NODE_IMAGE its image, IMAGE_TAG the images
that `make images` built (dev); E2E_KEEP=1 uses a cluster that is there and leaves it at the end.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from e2e.support.cluster import Cluster, run
from e2e.support.pods import Client, start_client

NAME = os.environ.get("KIND_CLUSTER", "e2e")
NODE_IMAGE = os.environ.get("KIND_NODE_IMAGE", "kindest/node:v1.34.4")
TAG = os.environ.get("IMAGE_TAG", "dev")
KEEP = os.environ.get("E2E_KEEP", "") not in {"", "0"}
START_S = 300
_numbers = count(1)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "reinstalls: installs in its own way; runs after the others")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes the installation away comes last, so that it is installed anew only once."""
    items.sort(key=lambda item: item.get_closest_marker("reinstalls") is not None)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    folder = Path(tempfile.gettempdir())
    with (folder / f"ibrik-e2e-{NAME}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pytest.exit(f"another run uses the cluster {NAME}: wait, or set KIND_CLUSTER", 1)
        kubeconfig = folder / f"ibrik-e2e-{NAME}.kubeconfig"
        there = NAME in run("kind", "get", "clusters", "--quiet").split()
        if there and not KEEP:
            run("kind", "delete", "cluster", "--name", NAME)
        if there and KEEP:
            kubeconfig.write_text(run("kind", "get", "kubeconfig", "--name", NAME))
        else:
            run(
                "kind", "create", "cluster", "--name", NAME, "--image", NODE_IMAGE,
                "--kubeconfig", str(kubeconfig), "--wait", "120s", timeout_s=START_S,
            )  # fmt: skip
        kubeconfig.chmod(0o600)
        try:
            made = Cluster(NAME, kubeconfig, TAG)
            made.load(f"ibrik/broker:{TAG}", f"ibrik/operator:{TAG}")
            yield made
        finally:
            if not KEEP:
                run("kind", "delete", "cluster", "--name", NAME)


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
