"""The real operator as a process, with the rights that the chart gives and no other.

One operator serves the namespaces of one test, so that many tests use one API server. Its writes
are those of its own account, and can be counted in the audit log.
"""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import urllib3
import yaml

from tests.support.apiserver import free_port
from tests.support.cluster import Cluster, Document, Write
from tests.support.kube_assets import asset

CHART = Path(__file__).resolve().parents[2] / "helm" / "ibrik"
HOME = "ibrik-system"
COMMAND = (sys.executable, "-m", "ibrik_operator")
STOP_TIMEOUT_S = 100.0
KUBERNETES = "1.34"
IMAGE = "ibrik/broker:test"


@dataclass
class Operator:
    """A running operator, seen from outside."""

    admin: Cluster
    account: Cluster
    process: "subprocess.Popen[bytes]"
    log: Path
    url: str

    def writes(self, since: int = 0) -> list[Write]:
        """What it wrote; without the Lease, which it renews all the time."""
        written = self.admin.writes(self.account.user, since)
        return [write for write in written if write.resource != "leases"]

    def metric(self, sample: str) -> int:
        """A sample of its metrics, with its labels; 0 while there is none."""
        try:
            text = urllib3.request("GET", f"{self.url}/metrics", retries=False).data.decode()
        except urllib3.exceptions.NewConnectionError:
            return 0  # It is only starting.
        found = re.search(rf"^{re.escape(sample)} (\S+)$", text, re.MULTILINE)
        return 0 if found is None else int(float(found[1]))

    def kill(self) -> int:
        self.process.kill()
        return self.process.wait(STOP_TIMEOUT_S)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_TIMEOUT_S)

    def wait(self) -> int:
        """Its exit code, when it ends by itself."""
        return self.process.wait(STOP_TIMEOUT_S)


def install_rights(admin: Cluster, release: str, namespaces: Sequence[str]) -> Cluster:
    """The account of the chart with its rights; for no namespaces, in all of them."""
    admin.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    account = ""
    for document in _rendered(release, namespaces):
        admin.apply(document, force=True)
        if document["kind"] == "ServiceAccount":
            account = document["metadata"]["name"]
    return admin.as_service_account(account, HOME)


@contextmanager
def running_operator(
    admin: Cluster,
    account: Cluster,
    folder: Path,
    namespaces: Sequence[str],
    kubeconfig: Path | None = None,
    **env: str,
) -> Iterator[Operator]:
    """Start it, and end it when it still runs. `env` are settings by their names."""
    folder.mkdir(parents=True, exist_ok=True)
    port, log = free_port(), folder / "operator.log"
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    settings = {
        "KUBECONFIG": str(kubeconfig or account.kubeconfig),
        "IBRIK_OPERATOR_NAMESPACES": ",".join(namespaces),
        "IBRIK_OPERATOR_BROKER_IMAGE": IMAGE,
        "IBRIK_OPERATOR_HTTP__PORT": str(port),
        "IBRIK_OPERATOR_RESYNC_MS": "5000",
    }
    with log.open("ab") as output:
        process = subprocess.Popen(
            COMMAND,
            env=inherited | settings | env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield Operator(admin, account, process, log, f"http://127.0.0.1:{port}")
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(STOP_TIMEOUT_S)


def _rendered(release: str, namespaces: Sequence[str]) -> list[Document]:
    ended = subprocess.run(
        (
            asset("helm"), "template", release, str(CHART), f"--namespace={HOME}",
            f"--kube-version={KUBERNETES}", f"--set=watchNamespaces={{{','.join(namespaces)}}}",
            "--show-only=templates/operator/serviceaccount.yaml",
            "--show-only=templates/rbac/operator.yaml",
        ),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return [document for document in yaml.safe_load_all(ended.stdout) if document]
