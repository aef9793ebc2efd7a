"""The place of a run: an API server with its controllers, a played node, one operator, one pool.

The parts are those of `tests/apiserver`; a difference is that the operator compares as often as an
installed one, not as often as tests want it.
"""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import urllib3

from bench.framework import new_folder
from ibrik_operator.settings import Settings
from tests.support.apiserver import running_apiserver, running_controllers
from tests.support.cluster import Cluster
from tests.support.declared import POD, POOL, pool
from tests.support.definitions import install_definitions
from tests.support.kubelet import running_kubelet
from tests.support.shop import Shop, opened

NAMESPACE = "bench"
BROKERS = "app.kubernetes.io/component=broker"
_CHANGING = re.compile(
    r'^ibrik_http_requests_total\{route="(?:applyDesired|adoptTopic)",[^}]*\} (\S+)$', re.M
)


@contextmanager
def running_rig() -> Iterator[Shop]:
    """A namespace with an operator and a pool that is ready; all of it ends with the run."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(new_folder())).resolve()
        server = stack.enter_context(running_apiserver(folder / "apiserver"))
        cluster = Cluster(server, server.admin_token)
        install_definitions(cluster)
        stack.enter_context(running_controllers(server))
        kubelet = stack.enter_context(running_kubelet(cluster, folder / "node"))
        namespace = cluster.new_namespace(NAMESPACE)
        resync = str(Settings.model_fields["resync_ms"].default)
        shop = stack.enter_context(
            opened(cluster, kubelet, namespace, folder, IBRIK_OPERATOR_RESYNC_MS=resync)
        )
        shop.apply(pool("default", ""))
        shop.ready(POOL, "default")
        yield shop


def changing_admin_calls(shop: Shop) -> int:
    """How many requests to change resources the brokers answered so far."""
    calls = 0
    for pod in shop.cluster.objects(POD, shop.namespace, labels=BROKERS):
        url = f"http://{pod['status']['podIP']}:8081/metrics"
        text = urllib3.request("GET", url, retries=False, timeout=30.0).data.decode()
        calls += sum(int(float(count)) for count in _CHANGING.findall(text))
    return calls


def peak_memory_mib(shop: Shop) -> float:
    """The highest resident memory of the operator's process so far."""
    status = Path(f"/proc/{shop.operator.process.pid}/status").read_text()
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.M)
    assert found is not None
    return int(found[1]) / 1024
