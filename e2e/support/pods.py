"""Pods of the tests, of the restricted profile: one to talk from, one that webhooks go to."""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from e2e.support.cluster import Cluster, Document, until

TALK = Path(__file__).with_name("talk.py")
SINK_PORT = 9000
TALK_S = 300


def pod(name: str, tag: str, command: list[str], image: str = "broker") -> Document:
    """A pod with one of our images, which has Python and nothing to lose."""
    container = {
        "name": "main",
        "image": f"ibrik/{image}:{tag}",
        "command": command,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "talk", "mountPath": "/talk"}],
    }
    spec = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65532,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [{"name": "talk", "configMap": {"name": "talk"}}],
    }
    metadata = {"name": name, "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def script() -> Document:
    data = {"talk.py": TALK.read_text(encoding="utf-8")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "talk"}, "data": data}


@dataclass(frozen=True, slots=True)
class Client:
    """A pod that talks to the brokers of its namespace, as an application does."""

    cluster: Cluster
    namespace: str
    url: str = "http://ibrik-default:8080"

    def publish(self, topic: str, first: int, count: int) -> list[list[int]]:
        """Partition and offset of each; every message is acknowledged when this returns."""
        places: list[list[int]] = self._talk("publish", self.url, topic, str(first), str(count))
        return places

    def publish_lines(self, topic: str, events: list[str]) -> list[tuple[int, int]]:
        """The same of events of JSON, in one request."""
        lines = "\n".join(events)
        return [(p, o) for p, o in self._talk("batch", self.url, topic, stdin=lines)]

    def read(self, topic: str, partitions: int = 1) -> list[Any]:
        found: list[Any] = self._talk("read", self.url, topic, str(partitions))
        return found

    def call(self, method: str, path: str, body: str = "") -> tuple[int, str]:
        status, answer = self._talk("call", method, f"{self.url}{path}", body)
        return status, answer

    def start_probe(self, topic: str, seconds: int) -> "subprocess.Popen[str]":
        """Publishes and reads for so long; its report is what it prints at its end."""
        return subprocess.Popen(
            (
                "kubectl", f"--kubeconfig={self.cluster.kubeconfig}", "exec", "client",
                "--namespace", self.namespace, "--",
                "python", "/talk/talk.py", "probe", self.url, topic, str(seconds),
            ),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip

    def _talk(self, *arguments: str, stdin: str = "") -> Any:
        said = self.cluster.kubectl(
            "exec", "client", "--stdin", "--namespace", self.namespace, "--",
            "python", "/talk/talk.py", *arguments,
            stdin=stdin, timeout_s=TALK_S,
        )  # fmt: skip
        return json.loads(said)


def start_client(cluster: Cluster, namespace: str) -> Client:
    forever = ["python", "-c", "import signal; signal.pause()"]
    cluster.apply(script(), pod("client", cluster.tag, forever), namespace=namespace)
    wait_ready(cluster, "client", namespace)
    return Client(cluster, namespace)


def start_sink(cluster: Cluster, namespace: str) -> None:
    """The Service `sink`, whose pod prints every body that it gets."""
    listen = ["python", "/talk/talk.py", "listen", str(SINK_PORT)]
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "sink"},
        "spec": {"selector": {"app": "sink"}, "ports": [{"port": 80, "targetPort": SINK_PORT}]},
    }
    sink = pod("sink", cluster.tag, listen)
    sink["spec"]["containers"][0]["readinessProbe"] = {
        "tcpSocket": {"port": SINK_PORT},
        "periodSeconds": 1,
    }
    cluster.apply(script(), service, sink, namespace=namespace)
    wait_ready(cluster, "sink", namespace)


def wait_received(cluster: Cluster, namespace: str, body: str) -> None:
    until(
        f"the sink in {namespace} gets {body}",
        lambda: body in cluster.kubectl("logs", "sink", "--namespace", namespace).splitlines(),
    )


def wait_ready(cluster: Cluster, name: str, namespace: str) -> None:
    cluster.kubectl(
        "wait", f"pod/{name}", "--namespace", namespace, "--for=condition=Ready", "--timeout=90s"
    )
