"""A kind cluster and the installed chart, by the commands that a person would type.

Waiting is by condition: what is asked for again and again until it is so, never a time.
"""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any, TypeVar

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "helm" / "ibrik"
RELEASE, SYSTEM = "ibrik", "ibrik-system"
OPERATOR = "deployment/ibrik-operator"
COMMAND_S = 120
WAIT_S = 120
LOOK_S = 0.5

Document = dict[str, Any]
T = TypeVar("T")


def run(*command: str, stdin: str = "", timeout_s: float = COMMAND_S, **env: str) -> str:
    """Standard output of a command that has to end well."""
    ended = subprocess.run(
        command, input=stdin, capture_output=True, text=True, timeout=timeout_s, check=False,
        env=os.environ | env, cwd=ROOT,
    )  # fmt: skip
    assert ended.returncode == 0, f"{' '.join(command)}\n{ended.stdout[-4000:]}{ended.stderr}"
    return ended.stdout


def until(what: str, look: Callable[[], T | None], timeout_s: float = WAIT_S) -> T:
    """What `look` finds, as soon as it finds something; `what` is the sentence of the failure."""
    deadline = monotonic() + timeout_s
    pause = Event()
    while True:
        found = look()
        if found:
            return found
        assert monotonic() < deadline, f"not within {timeout_s:.0f} s: {what}"
        pause.wait(LOOK_S)


def condition(document: Document, kind: str) -> Document:
    conditions = document.get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == kind), {})


@dataclass(frozen=True, slots=True)
class Cluster:
    name: str
    kubeconfig: Path
    tag: str
    """Of the images that are loaded."""

    def kubectl(self, *arguments: str, stdin: str = "", timeout_s: float = COMMAND_S) -> str:
        return run(
            "kubectl", *arguments, stdin=stdin, timeout_s=timeout_s, KUBECONFIG=str(self.kubeconfig)
        )

    def refusal(self, *arguments: str, stdin: str = "") -> str:
        """What a command says that has to fail."""
        ended = subprocess.run(
            ("kubectl", *arguments), input=stdin, capture_output=True, text=True, check=False,
            timeout=COMMAND_S, env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
        )  # fmt: skip
        assert ended.returncode != 0, ended.stdout
        return ended.stderr

    def helm(self, *arguments: str, timeout_s: float = 300) -> str:
        return run("helm", *arguments, timeout_s=timeout_s, KUBECONFIG=str(self.kubeconfig))

    def apply(self, *documents: Document, namespace: str) -> None:
        text = yaml.safe_dump_all(documents)
        self.kubectl("apply", "--namespace", namespace, "--filename", "-", stdin=text)

    def find(self, kind: str, name: str, namespace: str = "") -> Document | None:
        place = ("--namespace", namespace) if namespace else ()
        found = self.kubectl("get", kind, name, *place, "--ignore-not-found", "--output=json")
        return json.loads(found) if found.strip() else None

    def objects(self, kind: str, namespace: str, selector: str = "") -> list[Document]:
        chosen = ("--selector", selector) if selector else ()
        found = self.kubectl("get", kind, "--namespace", namespace, *chosen, "--output=json")
        items: list[Document] = json.loads(found)["items"]
        return items

    def wait_condition(
        self, kind: str, name: str, namespace: str, wanted: str, timeout_s: float = WAIT_S
    ) -> Document:
        """The object as soon as a condition is as `wanted`: `Ready=True`, `Ready=False/Reason`."""
        of, _, rest = wanted.partition("=")
        status, _, reason = rest.partition("/")
        seen: list[Document | None] = [None]

        def look() -> Document | None:
            seen[0] = found = self.find(kind, name, namespace)
            if found is None:
                return None
            now = condition(found, of)
            current = now.get("observedGeneration", 0) == found["metadata"]["generation"]
            is_so = now.get("status") == status and reason in {"", now.get("reason")}
            return found if current and is_so else None

        try:
            return until(f"{kind} {namespace}/{name} {wanted}", look, timeout_s)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.story(kind, name, namespace)}") from None

    def wait_gone(self, kind: str, name: str, namespace: str = "", timeout_s: float = 60) -> None:
        until(
            f"{kind} {name} is gone",
            lambda: self.find(kind, name, namespace) is None,
            timeout_s,
        )

    def wait_replaced(self, pod: Document) -> None:
        """Until there is another one of its name, and that one is ready."""
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]

        def is_another_ready() -> bool:
            now = self.find("pod", name, namespace)
            if now is None or now["metadata"]["uid"] == pod["metadata"]["uid"]:
                return False
            return condition(now, "Ready").get("status") == "True"

        until(f"another pod {name} is ready", is_another_ready)

    def story(self, kind: str, name: str, namespace: str) -> str:
        """What a person would look at next."""
        looks = [
            ("get", kind, name, "--namespace", namespace, "--output=yaml"),
            ("get", "pods,statefulsets,ibrik,events", "--namespace", namespace),
            ("logs", OPERATOR, "--namespace", SYSTEM, "--tail=40", "--all-pods=true"),
        ]
        ended = [
            subprocess.run(
                ("kubectl", *look), capture_output=True, text=True, check=False,
                timeout=COMMAND_S, env=os.environ | {"KUBECONFIG": str(self.kubeconfig)},
            )
            for look in looks
        ]  # fmt: skip
        return "\n".join(one.stdout + one.stderr for one in ended)

    # --- the chart --------------------------------------------------------------------------------

    def load(self, *images: str) -> None:
        run("kind", "load", "docker-image", "--name", self.name, *images, timeout_s=300)

    def is_installed(self) -> bool:
        """Installed as the other tests expect it: for the whole cluster."""
        found = json.loads(self.helm("list", "--all", "--namespace", SYSTEM, "--output=json"))
        return any(one["name"] == RELEASE and one["status"] == "deployed" for one in found)

    def install(self, *arguments: str, chart: Path = CHART) -> None:
        self.helm(
            "upgrade", "--install", RELEASE, str(chart), "--namespace", SYSTEM,
            "--create-namespace", "--set", f"image.tag={self.tag}", *arguments, "--wait",
            "--timeout", "4m",
        )  # fmt: skip

    def uninstall(self) -> None:
        self.helm("uninstall", RELEASE, "--namespace", SYSTEM, "--wait", "--timeout", "4m")

    def new_namespace(self, name: str, *, restricted: bool = True) -> str:
        """A namespace in which Kubernetes enforces the restricted profile, or not."""
        profile = "restricted" if restricted else "privileged"
        labels = {f"pod-security.kubernetes.io/{mode}": profile for mode in ("enforce", "warn")}
        metadata = {"name": name, "labels": labels}
        text = yaml.safe_dump({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        self.kubectl("apply", "--filename", "-", stdin=text)
        return name

    def delete_namespace(self, name: str, *, timeout_s: float = 60) -> None:
        """Gone within the time, or the test fails."""
        self.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")
        self.wait_gone("namespace", name, timeout_s=timeout_s)
