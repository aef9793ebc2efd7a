"""A real API server for tests: etcd, kube-apiserver and, on demand, some of the real controllers.

There is no kubelet and no scheduler: pods are objects until `tests.support.kubelet` plays them.
Everything lives in one folder and on loopback, is ready by its own word, and ends by its own id.
`tests.support.cluster` is how tests talk to it.
"""

import contextlib
import json
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import trustme
import urllib3
import yaml

from tests.support.kube_assets import asset

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 15.0
CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "persistentvolumeclaim-protection-controller",
    "serviceaccount-controller",
    "statefulset-controller",
)
"""Those whose work the operator builds on. Nothing binds volumes or fills endpoints here."""

_AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
        {"level": "None"},
    ],
}


@dataclass(frozen=True, slots=True)
class ApiServer:
    """What is needed to reach it, and its folder."""

    url: str
    ca_file: Path
    admin_token: str
    controllers_token: str
    folder: Path

    @property
    def audit_log(self) -> Path:
        """One line of JSON for each write, there before the write is answered."""
        return self.folder / "audit.log"

    def kubeconfig(self, token: str, name: str, namespace: str = "default") -> Path:
        """A kubeconfig file for whoever has `token`."""
        path = self.folder / f"{name}.kubeconfig"
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self.url, "certificate-authority": str(self.ca_file)},
                }
            ],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [
                {
                    "name": "test",
                    "context": {"cluster": "test", "user": name, "namespace": namespace},
                }
            ],
        }
        path.write_text(yaml.safe_dump(config))
        return path


@contextmanager
def running_apiserver(folder: Path) -> Iterator[ApiServer]:
    """Start etcd and the API server in `folder`; end them."""
    folder.mkdir(parents=True, exist_ok=True)
    server = ApiServer(
        url=f"https://127.0.0.1:{free_port()}",
        ca_file=folder / "ca.pem",
        admin_token=secrets.token_hex(16),
        controllers_token=secrets.token_hex(16),
        folder=folder,
    )
    _write_identities(server)
    etcd_url = f"http://127.0.0.1:{free_port()}"
    with ExitStack() as stack:
        etcd = stack.enter_context(_running("etcd", folder, _etcd_flags(folder, etcd_url)))
        _wait_until_ready(f"{etcd_url}/readyz", etcd, folder / "etcd.log")
        process = stack.enter_context(_running("kube-apiserver", folder, _flags(server, etcd_url)))
        _wait_until_ready(f"{server.url}/readyz", process, folder / "kube-apiserver.log", server)
        yield server


@contextmanager
def running_controllers(server: ApiServer) -> Iterator[None]:
    """Start the real controllers; after the definitions, so that they know our kinds at once."""
    kubeconfig = server.kubeconfig(server.controllers_token, "controllers")
    flags = [
        f"--kubeconfig={kubeconfig}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--leader-elect=false",
        "--secure-port=0",
    ]
    with _running("kube-controller-manager", server.folder, flags):
        yield


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket() as listener:
        listener.bind((host, 0))
        port = listener.getsockname()[1]
    assert isinstance(port, int)
    return port


def _write_identities(server: ApiServer) -> None:
    folder = server.folder
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(server.ca_file))
    serving = authority.issue_cert("127.0.0.1", "localhost", "kubernetes.default.svc")
    (folder / "server.pem").write_bytes(serving.cert_chain_pems[0].bytes())
    serving.private_key_pem.write_to_path(str(folder / "server.key"))
    signing = authority.issue_cert("service-accounts.test")
    signing.private_key_pem.write_to_path(str(folder / "service-accounts.key"))
    # Users of their own, so that the audit log tells them apart.
    users = {"admin": server.admin_token, "controllers": server.controllers_token}
    lines = [f'{token},{name},{name},"system:masters"\n' for name, token in users.items()]
    (folder / "tokens.csv").write_text("".join(lines))
    (folder / "audit-policy.yaml").write_text(json.dumps(_AUDIT_POLICY))


def _etcd_flags(folder: Path, url: str) -> list[str]:
    peer = f"http://127.0.0.1:{free_port()}"
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",  # a test's data is gone with its folder
        "--log-level=warn",
    ]


def _flags(server: ApiServer, etcd_url: str) -> list[str]:
    folder = server.folder
    return [
        f"--etcd-servers={etcd_url}",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={server.url.rpartition(':')[2]}",
        f"--tls-cert-file={folder / 'server.pem'}",
        f"--tls-private-key-file={folder / 'server.key'}",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={folder / 'service-accounts.key'}",
        f"--service-account-signing-key-file={folder / 'service-accounts.key'}",
        "--service-cluster-ip-range=10.0.0.0/16",
        f"--audit-policy-file={folder / 'audit-policy.yaml'}",
        f"--audit-log-path={server.audit_log}",
        # Stricter than most clusters: who names an owner needs the right to hold it up.
        "--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
        "--endpoint-reconciler-type=none",
        "--profiling=false",
        "--shutdown-delay-duration=0s",
    ]


@contextmanager
def _running(name: str, folder: Path, flags: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    with (folder / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            [asset(name), *flags], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield process
    finally:
        # Nothing of it is kept, so nothing is worth a graceful end.
        process.kill()
        process.wait(STOP_TIMEOUT_S)


def _wait_until_ready(
    url: str, process: subprocess.Popen[bytes], log: Path, server: ApiServer | None = None
) -> None:
    headers = {"Authorization": f"Bearer {server.admin_token}"} if server else {}
    ca = str(server.ca_file) if server else None
    pause = threading.Event()
    with urllib3.PoolManager(ca_certs=ca, retries=False, timeout=5.0) as pool:
        for _ in range(int(START_TIMEOUT_S * 10)):
            assert process.poll() is None, f"it ended at its start:\n{log.read_text()[-4000:]}"
            with contextlib.suppress(urllib3.exceptions.HTTPError):
                if pool.request("GET", url, headers=headers).status == 200:
                    return
            pause.wait(0.1)
    raise AssertionError(f"it is not ready after {START_TIMEOUT_S} s:\n{log.read_text()[-4000:]}")
