"""Archives on a kind cluster: the Spark operator of its chart, flights, a pod that reads tables.

Environment: SPARK_OPERATOR_CHART is a folder or a name that Helm knows, SPARK_OPERATOR_IMAGE the
image that it wants; the image is loaded when the local engine has it, and pulled otherwise.
"""

import hashlib
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples.quickstart import flights

from e2e.support.cluster import ROOT, WAIT_S, Cluster, Document, until
from e2e.support.pods import Client, pod, script

HOME = Path(os.environ.get("CLUSTER_CACHE", Path.home() / ".cache" / "local-cluster"))
CHART = os.environ.get("SPARK_OPERATOR_CHART", str(HOME / "charts" / "spark-operator"))
IMAGE = os.environ.get("SPARK_OPERATOR_IMAGE", "ghcr.io/kubeflow/spark-operator/controller:2.4.0")
SPARK_SYSTEM = "spark-operator"
LAKE_CLAIM = "lake-ibrik-default-0"
READ = Path(__file__).with_name("read_table.py")
RUN_S = 300
"""How long until a schedule of a minute has brought what there is into the table, at most."""


def install_spark_operator(cluster: Cluster, namespace: str) -> None:
    """It serves this namespace and no other."""
    known = subprocess.run(("docker", "image", "inspect", IMAGE), capture_output=True, check=False)
    if known.returncode == 0:
        cluster.load(IMAGE)
    cluster.helm(
        "upgrade", "--install", "spark-operator", CHART, "--namespace", SPARK_SYSTEM,
        "--create-namespace", "--set", f"spark.jobNamespaces={{{namespace}}}", "--wait",
        "--timeout", "4m",
    )  # fmt: skip


def some_flights(count: int) -> list[str]:
    """The first of the year."""
    packages = ROOT / ".demo" / "pkgs"
    every = flights.read(flights.fetch(ROOT / "requirements" / "demo.lock", packages))
    return [flight.event.decode() for flight in every[:count]]


@dataclass(frozen=True, slots=True)
class Lake:
    """The archived topic `flights` of a namespace, and what was acknowledged of it."""

    cluster: Cluster
    client: Client
    sent: dict[tuple[int, int], str]

    @property
    def namespace(self) -> str:
        return self.client.namespace

    def publish(self, events: list[str]) -> None:
        places = self.client.publish_lines("flights", events)
        self.sent.update(zip(places, events, strict=True))

    def earliest(self) -> dict[int, int]:
        """Of each partition the first offset that can be read."""
        status, answer = self.client.call("GET", "/v1/topics/flights/partitions")
        assert status == 200, answer
        return {one["partition"]: one["earliest"] for one in json.loads(answer)["partitions"]}

    def topic(self) -> Document:
        found = self.cluster.find("topics.ibrik.dev", "flights", self.namespace)
        assert found is not None
        return found

    def wait_archived(self, timeout_s: float = RUN_S) -> Document:
        """The status of the archive as soon as it knows of everything that was sent."""
        self.cluster.wait_condition(
            "topics.ibrik.dev", "flights", self.namespace, "ArchiveHealthy=True", timeout_s
        )
        wanted: dict[int, int] = {}
        for partition, offset in self.sent:
            wanted[partition] = max(wanted.get(partition, 0), offset + 1)

        def look() -> Document | None:
            status: Document = self.topic()["status"].get("archive") or {}
            reached = status.get("archivedUpTo") or []
            is_there = all(
                number < len(reached) and reached[number] >= end for number, end in wanted.items()
            )
            return status if is_there else None

        return until(f"all flights of {self.namespace} are archived", look, timeout_s)

    def table(self) -> dict[str, Any]:
        """What a pod with the volume of the tables reads there."""
        topic_id = self.topic()["status"]["topicId"]
        name = "reader"
        reader = pod(
            name, self.cluster.tag, ["python", "/talk/read_table.py", f"/lake/{topic_id}"], "spark"
        )
        reader["spec"]["restartPolicy"] = "Never"
        reader["spec"]["containers"][0]["volumeMounts"].append(
            {"name": "lake", "mountPath": "/lake"}
        )
        claim = {"claimName": LAKE_CLAIM}
        reader["spec"]["volumes"].append({"name": "lake", "persistentVolumeClaim": claim})
        self.cluster.apply(_read_script(), reader, namespace=self.namespace)
        self.cluster.kubectl(
            "wait", f"pod/{name}", "--namespace", self.namespace,
            "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={WAIT_S}s",
        )  # fmt: skip
        said = self.cluster.kubectl("logs", name, "--namespace", self.namespace)
        self.cluster.kubectl("delete", "pod", name, "--namespace", self.namespace)
        found: dict[str, Any] = json.loads(said)
        return found

    def expected(self) -> dict[str, Any]:
        """What the table has to hold."""
        rows = sorted([p, o, event] for (p, o), event in self.sent.items())
        return {"rows": len(rows), "digest": hashlib.sha256(json.dumps(rows).encode()).hexdigest()}


def _read_script() -> Document:
    found = script()
    found["data"]["read_table.py"] = READ.read_text(encoding="utf-8")
    return found
