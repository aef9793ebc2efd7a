"""The broker process of one played pod: its address, its folders, its environment, its life.

`tests.support.kubelet` decides when; here is how.
"""

import base64
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from tests.support.cluster import Cluster, Document

COMMAND = (sys.executable, "-m", "ibrik_broker")
GRACE_S, RESTART_PAUSE_S, STOP_TIMEOUT_S = 30.0, 1.0, 30.0
PORTS = (8080, 7070, 8081)
HOSTS = ("IBRIK_HTTP__HOST", "IBRIK_TCP__HOST", "IBRIK_ADMIN__HOST")
_REFERENCE = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")


class MountFailed(Exception):
    """Something that the pod needs is not there; `reason` as a kubelet says it."""

    def __init__(self, reason: str, sentence: str) -> None:
        super().__init__(sentence)
        self.reason = reason


@dataclass
class PodProcess:
    """What runs for one pod. The next pod of the same name is another one."""

    namespace: str
    name: str
    folder: Path
    address: str
    since: str
    environment: dict[str, str] | None = None
    process: "subprocess.Popen[bytes] | None" = None
    restarts: int = 0
    ended_at: float | None = None
    leaving_since: float | None = None

    @classmethod
    def of(cls, pod: Document, folder: Path) -> "PodProcess":
        metadata = pod["metadata"]
        own = folder / "pods" / metadata["uid"]
        own.mkdir(parents=True, exist_ok=True)
        # A pod that waits keeps the address that it was told of.
        address = pod.get("status", {}).get("podIP") or next(_ADDRESSES)
        since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        return cls(metadata["namespace"], metadata["name"], own, address, since)

    @property
    def log(self) -> Path:
        """All that the broker wrote, over its restarts."""
        return self.folder / "log"

    @property
    def is_new(self) -> bool:
        return self.environment is None

    @property
    def is_down(self) -> bool:
        """Whether it ended and nobody asked for it."""
        return self.process is not None and self.process.poll() is not None

    def start(self, environment: dict[str, str]) -> None:
        self.environment = environment
        self._launch()

    def start_again_after_a_pause(self) -> None:
        if self.ended_at is None:
            self.ended_at = time.monotonic()
            self.restarts += 1
        elif time.monotonic() - self.ended_at >= RESTART_PAUSE_S:
            self._launch()

    def has_left(self) -> bool:
        """Whether it ended; the first question is the request to do so, patience has an end."""
        if self.process is None or self.process.poll() is not None:
            return True
        if self.leaving_since is None:
            self.leaving_since = time.monotonic()
            self.process.send_signal(signal.SIGTERM)
        elif time.monotonic() - self.leaving_since > GRACE_S:
            self.process.kill()
        return False

    def crash(self) -> None:
        """SIGKILL to the broker; the pod stays, and its broker is started again."""
        assert self.process is not None
        self.process.kill()

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(STOP_TIMEOUT_S)

    def _launch(self) -> None:
        assert self.environment is not None
        self.ended_at = None
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                COMMAND,
                env=self.environment,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )


def pod_environment(
    cluster: Cluster, pod: Document, address: str, mounts: Mapping[str, Path]
) -> dict[str, str]:
    """What the container says, its paths on this machine and its listeners on its address."""
    metadata = pod["metadata"]
    fields = {
        "metadata.name": metadata["name"],
        "metadata.namespace": metadata["namespace"],
        "metadata.uid": metadata["uid"],
        "status.podIP": address,
    }
    own: dict[str, str] = {}
    for entry in pod["spec"]["containers"][0].get("env", []):
        source = entry.get("valueFrom", {})
        if "fieldRef" in source:
            value = fields[source["fieldRef"]["fieldPath"]]
        elif "secretKeyRef" in source:
            value = _secret_value(cluster, metadata["namespace"], source["secretKeyRef"])
        else:
            value = _REFERENCE.sub(lambda found: own.get(found[1], found[0]), entry["value"])
        own[entry["name"]] = _on_this_machine(value, mounts)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    return inherited | own | dict.fromkeys(HOSTS, address)


def mounted(cluster: Cluster, pod: Document, folder: Path, node: Path) -> dict[str, Path]:
    """The folder of each mount path; config maps and secrets are as they are now."""
    namespace = pod["metadata"]["namespace"]
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
    mounts: dict[str, Path] = {}
    for mount in pod["spec"]["containers"][0].get("volumeMounts", []):
        volume = volumes[mount["name"]]
        place = folder / "volumes" / mount["name"]
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
            claim = cluster.get("v1/PersistentVolumeClaim", name, namespace)
            place = node / "claims" / claim["metadata"]["uid"]
        place.mkdir(parents=True, exist_ok=True)
        if "configMap" in volume:
            source = volume["configMap"]
            _project(cluster, "v1/ConfigMap", source["name"], namespace, source, place)
        elif "secret" in volume:
            source = volume["secret"]
            _project(cluster, "v1/Secret", source["secretName"], namespace, source, place)
        mounts[mount["mountPath"]] = place
    return mounts


def _project(
    cluster: Cluster, kind: str, name: str, namespace: str, source: Document, place: Path
) -> None:
    """The keys as files, exchanged all at once through the link `..data`, as a kubelet does."""
    found = cluster.find(kind, name, namespace)
    if found is None and not source.get("optional"):
        what = kind.rpartition("/")[2].lower()
        raise MountFailed(
            "ContainerCreating", f'MountVolume.SetUp failed: {what} "{name}" not found'
        )
    version = "none" if found is None else found["metadata"]["resourceVersion"]
    data, whole = place / "..data", place / f"..{version}"
    if data.is_symlink() and data.readlink() == Path(whole.name):
        return
    whole.mkdir()
    values = (found or {}).get("data") or {}
    for key, value in values.items():
        content = base64.b64decode(value) if kind == "v1/Secret" else value.encode()
        (whole / key).write_bytes(content)
        if not (place / key).is_symlink():
            (place / key).symlink_to(Path("..data") / key)
    before = place / data.readlink() if data.is_symlink() else None
    (place / "..new").symlink_to(whole.name)
    (place / "..new").rename(data)
    for link in place.iterdir():
        if link.is_symlink() and not link.name.startswith("..") and link.name not in values:
            link.unlink()
    if before is not None:
        shutil.rmtree(before)


def _secret_value(cluster: Cluster, namespace: str, reference: Document) -> str:
    name, key = reference["name"], reference["key"]
    secret = cluster.find("v1/Secret", name, namespace)
    if secret is None or key not in (secret.get("data") or {}):
        raise MountFailed(
            "CreateContainerConfigError", f'secret "{name}" not found, or has no key {key}'
        )
    return base64.b64decode(secret["data"][key]).decode()


def _on_this_machine(value: str, mounts: Mapping[str, Path]) -> str:
    for path, place in mounts.items():
        if value == path or value.startswith(f"{path}/"):
            return f"{place}{value.removeprefix(path)}"
    return value


def _free_addresses() -> Iterator[str]:
    """Loopback addresses on which nobody has the ports of a broker, others in each process."""
    for number in count(1):
        address = f"127.{os.getpid() % 200 + 20}.{number // 250 % 250}.{number % 250 + 1}"
        if all(_is_free(address, port) for port in PORTS):
            yield address


def _is_free(address: str, port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
        except OSError:
            return False
    return True


_ADDRESSES = _free_addresses()
