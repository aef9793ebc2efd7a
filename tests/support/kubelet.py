"""What a node does, played: a pod of a pool is a real broker process on an address of its own.

The controllers make the pods and claims; this binds them, mounts what they name as folders,
starts the brokers, asks their readiness probe, and writes the status that a kubelet would. Broken
things are played on request: images that cannot be pulled, volumes that do not grow. Level-based:
a look at everything, a few times a second.

Other than in a cluster: all listeners are on loopback (127.x.y.z), nothing sleeps before a stop,
and secrets are mounted anew at once.
"""

import contextlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import urllib3

from tests.support.cluster import Cluster, Document, Refused
from tests.support.pod_process import MountFailed, PodProcess, mounted, pod_environment

PAUSE_S = 0.25
LOOK_TIMEOUT_S = 30.0
PROBE_TIMEOUT_S = 2.0
_POD, _CLAIM, _CLASS = "v1/Pod", "v1/PersistentVolumeClaim", "storage.k8s.io/v1/StorageClass"
BROKERS = "app.kubernetes.io/component=broker"


@dataclass
class Kubelet:
    """One node for all pods of brokers; its attributes may be changed while it runs."""

    cluster: Cluster
    folder: Path
    missing_images: set[str] = field(default_factory=set)
    """Images that no registry has."""
    grows: bool = True
    """Whether volumes grow when their claims ask for it."""
    is_scheduling: bool = True
    """Whether pods find a node."""
    failures: list[Exception] = field(default_factory=list)
    _looked: threading.Condition = field(default_factory=threading.Condition)
    _looks: int = 0
    _played: dict[str, PodProcess] = field(default_factory=dict)
    _told: dict[str, Document] = field(default_factory=dict)

    def look(self) -> None:
        """One look at everything."""
        for claim in self.cluster.objects(_CLAIM, labels=BROKERS):
            self._bind_or_grow(claim)
        pods = {pod["metadata"]["uid"]: pod for pod in self.cluster.objects(_POD, labels=BROKERS)}
        for uid in self._played.keys() - pods.keys():  # deleted by force
            self._played.pop(uid).kill()
        for pod in pods.values():
            with contextlib.suppress(_Passed):
                self._play(pod)
        with self._looked:
            self._looks += 1
            self._looked.notify_all()

    def wait_for_a_look(self) -> None:
        """Until all that is now has been seen."""
        with self._looked:
            enough = self._looks + 2  # one may be under way
            assert self._looked.wait_for(lambda: self._looks >= enough, LOOK_TIMEOUT_S)

    def process(self, namespace: str, pod: str) -> PodProcess:
        """The process of that pod, which has to run."""
        (found,) = (p for p in self._played.values() if (p.namespace, p.name) == (namespace, pod))
        return found

    def end(self) -> None:
        for process in self._played.values():
            process.kill()

    # --- pods -----------------------------------------------------------------------------------

    def _play(self, pod: Document) -> None:
        metadata = pod["metadata"]
        process = self._played.get(metadata["uid"])
        if "deletionTimestamp" in metadata:
            if process is None or process.has_left():
                self._played.pop(metadata["uid"], None)
                with _passing():
                    self.cluster.delete(
                        _POD, metadata["name"], metadata["namespace"],
                        uid=metadata["uid"], is_forced=True,
                    )  # fmt: skip
            return
        if process is None:
            if not self._is_bound(pod):
                return
            process = self._played[metadata["uid"]] = PodProcess.of(pod, self.folder)
        try:
            mounts = mounted(self.cluster, pod, process.folder, self.folder)
            if process.is_new:
                self._start(pod, process, mounts)
        except MountFailed as failed:
            if process.is_new:
                waiting = {"reason": failed.reason, "message": str(failed)}
                self._tell(pod, process, waiting=waiting)
                return
        if process.is_down:
            process.start_again_after_a_pause()
            crashed = {"reason": "CrashLoopBackOff", "message": "back-off restarting failed broker"}
            self._tell(pod, process, waiting=crashed)
        else:
            self._tell(pod, process, is_ready=_is_ready(pod, process.address))

    def _start(self, pod: Document, process: PodProcess, mounts: dict[str, Path]) -> None:
        image = pod["spec"]["containers"][0]["image"]
        if image in self.missing_images:
            raise MountFailed("ImagePullBackOff", f'Back-off pulling image "{image}"')
        process.start(pod_environment(self.cluster, pod, process.address, mounts))

    def _is_bound(self, pod: Document) -> bool:
        """Whether the pod has a node, which it gets when its claims are bound."""
        metadata = pod["metadata"]
        if pod["spec"].get("nodeName"):
            return True
        unbound = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"].get("volumes", [])
            if "persistentVolumeClaim" in volume
            and not self._has_volume(metadata["namespace"], volume)
        ]
        if unbound or not self.is_scheduling:
            volumes = "pod has unbound immediate PersistentVolumeClaims"
            reason = volumes if unbound else "1 Insufficient cpu"
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": "Unschedulable",
                "message": f"0/1 nodes are available: {reason}",
            }
            self._write_status(pod, {"phase": "Pending", "conditions": [condition]})
            return False
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/binding"
        target = {"apiVersion": "v1", "kind": "Node", "name": "player"}
        with _passing():
            self.cluster.request(
                "POST",
                path,
                {
                    "apiVersion": "v1",
                    "kind": "Binding",
                    "metadata": {"name": metadata["name"]},
                    "target": target,
                },
            )
        return True

    def _has_volume(self, namespace: str, volume: Document) -> bool:
        claim = self.cluster.find(_CLAIM, volume["persistentVolumeClaim"]["claimName"], namespace)
        return claim is not None and claim.get("status", {}).get("phase") == "Bound"

    def _tell(
        self,
        pod: Document,
        process: PodProcess,
        *,
        is_ready: bool = False,
        waiting: Document | None = None,
    ) -> None:
        container = pod["spec"]["containers"][0]
        flag = "True" if is_ready else "False"
        state = {"waiting": waiting} if waiting else {"running": {"startedAt": process.since}}
        self._write_status(
            pod,
            {
                "phase": "Pending" if waiting and process.is_new else "Running",
                "hostIP": "127.0.0.1",
                "podIP": process.address,
                "podIPs": [{"ip": process.address}],
                "startTime": process.since,
                "conditions": [
                    {"type": "PodScheduled", "status": "True"},
                    {"type": "Initialized", "status": "True"},
                    {"type": "ContainersReady", "status": flag},
                    {"type": "Ready", "status": flag},
                ],
                "containerStatuses": [
                    {
                        "name": container["name"],
                        "image": container["image"],
                        "imageID": "",
                        "ready": is_ready,
                        "started": waiting is None,
                        "restartCount": process.restarts,
                        "state": state,
                    }
                ],
            },
        )

    def _write_status(self, pod: Document, status: Document) -> None:
        """Only what is new."""
        metadata = pod["metadata"]
        if self._told.get(metadata["uid"]) == status:
            return
        with _passing():
            self.cluster.patch(
                _POD,
                metadata["name"],
                {"metadata": {"uid": metadata["uid"]}, "status": status},
                metadata["namespace"],
                subresource="status",
            )
        self._told[metadata["uid"]] = status

    # --- claims ---------------------------------------------------------------------------------

    def _bind_or_grow(self, claim: Document) -> None:
        metadata, spec = claim["metadata"], claim["spec"]
        wished = spec["resources"]["requests"]["storage"]
        status = claim.get("status", {})
        is_bound = status.get("phase") == "Bound"
        if is_bound and (not self.grows or status["capacity"]["storage"] == wished):
            return
        class_name = spec.get("storageClassName")
        if not is_bound and class_name and self.cluster.find(_CLASS, class_name) is None:
            return
        with contextlib.suppress(_Passed), _passing():
            self.cluster.patch(
                _CLAIM,
                metadata["name"],
                {
                    "status": {
                        "phase": "Bound",
                        "accessModes": spec["accessModes"],
                        "capacity": {"storage": wished},
                    }
                },
                metadata["namespace"],
                subresource="status",
            )


class _Passed(Exception):
    """The object is gone or another one by now: the next look sees what is."""


@contextmanager
def _passing() -> Iterator[None]:
    try:
        yield
    except Refused as refused:
        if refused.status in {404, 409}:
            raise _Passed from refused
        raise


def _is_ready(pod: Document, address: str) -> bool:
    container = pod["spec"]["containers"][0]
    ports = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    probe = container["readinessProbe"]["httpGet"]
    url = f"http://{address}:{ports.get(probe['port'], probe['port'])}{probe['path']}"
    with urllib3.PoolManager(retries=False, timeout=PROBE_TIMEOUT_S) as pool:
        try:
            return pool.request("GET", url).status == 200
        except urllib3.exceptions.HTTPError:
            return False


@contextmanager
def running_kubelet(cluster: Cluster, folder: Path) -> Iterator[Kubelet]:
    """Play until the end, then end all brokers; a failure of the player is raised here."""
    kubelet, stopped = Kubelet(cluster, folder), threading.Event()

    def play() -> None:
        while not stopped.wait(PAUSE_S):
            try:
                kubelet.look()
            except Exception as failure:  # noqa: BLE001 - raised at the end
                kubelet.failures.append(failure)
                stopped.set()

    thread = threading.Thread(target=play, name="kubelet")
    thread.start()
    try:
        yield kubelet
    finally:
        stopped.set()
        thread.join()
        kubelet.end()
    if kubelet.failures:
        raise kubelet.failures[0]
