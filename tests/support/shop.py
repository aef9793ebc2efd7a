"""A namespace with an operator of its own, and what tests do in it again and again."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import urllib3

from tests.support.cluster import Cluster, Document, condition
from tests.support.declared import POD, is_so
from tests.support.kubelet import Kubelet
from tests.support.operator_process import Operator, install_rights, running_operator
from tests.support.waiting import eventually


@dataclass
class Shop:
    cluster: Cluster
    kubelet: Kubelet
    namespace: str
    operator: Operator
    folder: Path

    def apply(self, document: Document) -> Document:
        """As a person would, who owns what the document says."""
        place = {"metadata": document["metadata"] | {"namespace": self.namespace}}
        return self.cluster.apply(document | place, manager="person", force=True)

    def patch(self, kind: str, name: str, change: Document) -> Document:
        return self.cluster.patch(kind, name, change, self.namespace)

    def get(self, kind: str, name: str) -> Document:
        return self.cluster.get(kind, name, self.namespace)

    def find(self, kind: str, name: str) -> Document | None:
        return self.cluster.find(kind, name, self.namespace)

    def delete(self, kind: str, name: str) -> None:
        self.cluster.delete(kind, name, self.namespace)

    def wait(self, kind: str, name: str, until: Callable[[Document], object]) -> Document:
        return self.cluster.wait(kind, name, self.namespace, until)

    def ready(self, kind: str, name: str) -> Document:
        return self.wait(kind, name, is_so())

    def not_ready(self, kind: str, name: str, reason: str) -> str:
        """The sentence of Ready, once it is False for this reason."""
        found = self.wait(kind, name, is_so("Ready", "False", reason))
        return str(condition(found, "Ready")["message"])

    def gone(self, kind: str, name: str) -> None:
        self.cluster.wait_gone(kind, name, self.namespace)

    def eventually(self, is_so: Callable[[], bool], timeout_s: int = 100) -> None:
        eventually(is_so, timeout_s)

    def ask(
        self, method: str, path: str, body: bytes | None = None, *, pod: str = "ibrik-default-0"
    ) -> tuple[int, Any]:
        """The status and the document that the broker in a pod answers."""
        address = self.get(POD, pod)["status"]["podIP"]
        answer = urllib3.request(
            method, f"http://{address}:8080{path}", body=body, retries=False, timeout=30.0
        )
        return answer.status, json.loads(answer.data) if answer.data else None

    def publish(self, topic: str, *bodies: bytes, pod: str = "ibrik-default-0") -> None:
        for body in bodies:
            status, answer = self.ask("POST", f"/v1/topics/{topic}/messages", body, pod=pod)
            assert status == 201, answer

    def messages(self, topic: str, pod: str = "ibrik-default-0") -> int:
        """How many can be read of partition 0."""
        path = f"/v1/topics/{topic}/partitions/0/messages?from=earliest&max=1000"
        status, answer = self.ask("GET", path, pod=pod)
        assert status in {200, 204}, answer
        return len(answer["messages"]) if answer else 0


@contextmanager
def opened(
    cluster: Cluster, kubelet: Kubelet, namespace: str, folder: Path, **env: str
) -> Iterator[Shop]:
    """The operator has to outlive the tests."""
    account = install_rights(cluster, f"ibrik-{namespace}", [namespace])
    with running_operator(cluster, account, folder, [namespace], **env) as operator:
        yield Shop(cluster, kubelet, namespace, operator, folder)
        assert operator.process.poll() is None, operator.log.read_text()[-4000:]
