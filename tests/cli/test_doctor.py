"""The doctor: what was seen becomes plain words and the next step; and a look at real brokers."""

import json
import zipfile
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from ibrik_api import __version__
from ibrik_cli.doctor.brokers import read_metrics
from ibrik_cli.doctor.bundle import files_of, without_passwords, without_secrets
from ibrik_cli.doctor.checks import examine, is_well
from ibrik_cli.doctor.finding import BrokerSeen, Finding, Seen
from tests.cli.clusters import World
from tests.cli.sick import cluster, lease, operator, pod, ready, resource
from tests.support.broker import Broker, running_broker

GIB = 2**30


def problems(seen: Seen) -> list[Finding]:
    return [finding for finding in examine(seen) if finding.level != "fine"]


def only(seen: Seen) -> Finding:
    (finding,) = problems(seen)
    return finding


def test_a_cluster_that_is_well_has_no_finding_but_fine_ones() -> None:
    findings = examine(cluster(topics=[resource("orders")]))
    assert problems(cluster()) == []
    assert is_well(findings)
    assert [f.text for f in findings] == [
        "operator 2/2, leader ibrik-operator-7c",
        "definitions are those of 0.1.0",
        "pool shop/default 1/1",
        "topics 1 of 1 ready",
    ]


@pytest.mark.parametrize(
    ("changes", "text", "remedy"),
    [
        ({"operators": []}, "there is no operator", "helm install ibrik"),
        (
            {"operators": [operator(replicas=0, ready_replicas=0)]},
            "operator ibrik-system/ibrik-operator is scaled to 0",
            "kubectl -n ibrik-system scale deployment ibrik-operator --replicas=2",
        ),
        (
            {"operators": [operator(ready_replicas=0)]},
            "operator ibrik-system/ibrik-operator: 0 of 2 ready",
            "describe deployment ibrik-operator",
        ),
        ({"leases": []}, "no replica leads", "logs deployment/ibrik-operator"),
        (
            {"leases": [lease("2026-11-28T09:50:00.000000Z")]},
            "no replica leads",
            "logs deployment/ibrik-operator",
        ),
        (
            {"definitions": []},
            "the definitions brokerpools.ibrik.dev, topics.ibrik.dev",
            "crds.enabled",
        ),
        (
            {"operators": [operator(image="images.example:5000/ibrik/operator:0.2.0")]},
            "is version 0.2.0, this command 0.1.0",
            "",
        ),
        (
            {"pools": [resource("default", ready("False", "ImagePullFailed", "No such image."))]},
            "pool shop/default is not ready: ImagePullFailed: No such image.",
            "kubectl -n shop describe brokerpools.ibrik.dev default",
        ),
        (
            {
                "subscriptions": [
                    resource("billing", ready("False", "DestinationNotFound", "There is no such."))
                ]
            },
            "subscription shop/billing is not ready: DestinationNotFound: There is no such.",
            "describe subscriptions.ibrik.dev billing",
        ),
        (
            {"topics": [resource("orders", status={"conditions": []})]},
            "topic shop/orders has no status: no operator has looked at it",
            "describe topics.ibrik.dev orders",
        ),
        (
            {"topics": [resource("orders", metadata={"generation": 2})]},
            "topic shop/orders was changed, and the change is not carried out yet",
            "",
        ),
        (
            {
                "topics": [
                    resource("orders", metadata={"annotations": {"ibrik.dev/paused": "true"}})
                ]
            },
            "topics shop/orders is paused",
            "kubectl -n shop annotate topics.ibrik.dev orders ibrik.dev/paused-",
        ),
        (
            {
                "pods": [
                    pod(
                        "ibrik-default-0",
                        is_ready=False,
                        phase="Pending",
                        containerStatuses=[{"state": {"waiting": {"reason": "ErrImagePull"}}}],
                    )
                ]
            },
            "pod shop/ibrik-default-0 is Pending (ErrImagePull)",
            "Check the name of the image",
        ),
        (
            {
                "pods": [
                    pod(
                        "ibrik-default-0",
                        containerStatuses=[
                            {
                                "restartCount": 3,
                                "lastState": {"terminated": {"reason": "OOMKilled"}},
                            }
                        ],
                    )
                ]
            },
            "ran out of memory and was restarted (3 times)",
            "Raise spec.resources.limits.memory",
        ),
        (
            {
                "claims": [
                    {
                        "metadata": {"name": "data-ibrik-default-0", "namespace": "shop"},
                        "status": {"phase": "Pending"},
                    }
                ]
            },
            "volume claim shop/data-ibrik-default-0 is Pending",
            "kubectl get storageclass",
        ),
        ({"unseen": {"events": "you may not"}}, "could not look at events: you may not", ""),
    ],
)
def test_what_is_wrong_is_said_with_what_to_do(
    changes: dict[str, Any], text: str, remedy: str
) -> None:
    finding = only(cluster(**changes))
    assert text in finding.text
    assert remedy in finding.remedy


@pytest.mark.parametrize("image", ["ibrik/operator:dev", "ibrik/operator@sha256:2c26b46b"])
def test_an_image_that_names_no_version_is_not_compared(image: str) -> None:
    assert problems(cluster(operators=[operator(image=image)])) == []


def test_definitions_of_another_version_are_noticed() -> None:
    definitions = deepcopy(list(cluster().definitions))
    definitions[1]["metadata"]["labels"] = {"helm.sh/chart": "ibrik-0.0.9"}
    spec = definitions[1]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    del spec["properties"]["retention"]
    finding = only(cluster(definitions=definitions))
    assert finding.text.startswith("the definitions topics.ibrik.dev (ibrik-0.0.9) are not those")


def test_a_full_disk_names_the_pool_to_grow_and_the_largest_topics() -> None:
    pool = resource("default", spec={"storage": {"size": "10Gi"}})
    broker = BrokerSeen(
        "shop/ibrik-default-0",
        "0.1.0",
        is_ready=True,
        free_bytes=210_000_000,
        is_storage_full=True,
        namespace="shop",
        pool="default",
    )
    topics = [
        resource("orders", status={"bytes": 8_100_000_000}),
        resource("small", status={"bytes": 0}),
    ]
    finding = only(cluster(pools=[pool], brokers=[broker], topics=topics))
    assert finding.level == "problem"
    assert finding.text == (
        "broker shop/ibrik-default-0 has 210.0 MB free of 10Gi; publishing is refused below "
        "268.4 MB"
    )
    assert finding.remedy == (
        "Grow it: kubectl -n shop patch brokerpools.ibrik.dev default --type merge -p "
        '\'{"spec":{"storage":{"size":"20Gi"}}}\', or lower retention of: orders (8.1 GB)'
    )


def test_many_resources_with_one_reason_are_not_all_named() -> None:
    topics = [resource(f"t{n}", ready("False", "PoolNotReady", "Wait.")) for n in range(40)]
    texts = [finding.text for finding in problems(cluster(topics=topics))]
    assert len(texts) == 6
    assert texts[-1] == "35 more topics for the same reason: PoolNotReady"


def test_a_young_resource_may_still_be_without_a_status() -> None:
    young = resource("a", status={"conditions": []}, metadata={"creationTimestamp": NOW_MINUS_5_S})
    assert problems(cluster(topics=[young])) == []


NOW_MINUS_5_S = "2026-11-28T09:59:55Z"


def test_recent_warnings_are_shown_once_each() -> None:
    def event(reason: str, when: str, kind: str = "Pod") -> dict[str, Any]:
        return {
            "metadata": {"name": reason},
            "type": "Warning",
            "reason": reason,
            "message": f"{reason} happened",
            "lastTimestamp": when,
            "involvedObject": {"kind": kind, "name": "ibrik-default-0"},
        }

    events = [
        event("BackOff", "2026-11-28T09:58:00Z"),
        event("BackOff", "2026-11-28T09:59:00Z"),
        event("Old", "2026-11-28T07:00:00Z"),
        event("Cgroup", "2026-11-28T09:59:00Z", kind="Node"),
    ]
    finding = only(cluster(events=events))
    assert finding.text == "event on Pod ibrik-default-0: BackOff: BackOff happened"
    assert is_well([finding])


def test_the_figures_of_a_broker_are_read_from_its_metrics() -> None:
    metrics = (
        "# HELP ibrik_ready x\n"
        'ibrik_build_info{version="0.1.0"} 1.0\n'
        "ibrik_ready 1.0\nibrik_storage_free_bytes 2.1e+08\nibrik_storage_full 1.0\n"
        'ibrik_damaged_records{topic="a",partition="0"} 3.0\n'
        'ibrik_damaged_records{topic="b",partition="0"} 4.0\n'
    )
    read = read_metrics(BrokerSeen("b"), metrics)
    assert read == BrokerSeen(
        "b", "0.1.0", True, free_bytes=210_000_000, is_storage_full=True, damaged_records=7
    )
    (finding,) = [f for f in problems(cluster(brokers=[read])) if "damaged" in f.text]
    assert "7 damaged records" in finding.text


def test_a_bundle_holds_no_secret_that_someone_wrote_into_a_document() -> None:
    sick = pod("ibrik-default-0")
    sick["spec"] = {
        "containers": [
            {
                "env": [
                    {"name": "DB_PASSWORD", "value": "hunter2"},
                    {"name": "IBRIK_METADATA__URL", "value": "postgresql://ibrik:hunter2@db/ibrik"},
                    {"name": "MODE", "value": "fast"},
                ]
            }
        ]
    }
    sick["metadata"]["annotations"] = {
        "kubectl.kubernetes.io/last-applied-configuration": '{"token": "hunter2"}'
    }
    logs = {"shop/ibrik-default-0": ["connecting to postgresql://ibrik:hunter2@db/ibrik"]}
    files = files_of(cluster(pods=[sick], logs=logs), [])
    text = "".join(files.values())
    assert "hunter2" not in text
    assert '"fast"' in text
    assert "postgresql://ibrik:(blotted out)@db/ibrik" in files["logs/shop/ibrik-default-0.log"]
    assert without_secrets({"token": "x", "tokens": 3}) == {"token": "(blotted out)", "tokens": 3}
    assert without_passwords("http://host:80/a@b") == "http://host:80/a@b"


# --- with real parts ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("doctor")) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path / "world")


def listing(*documents: Any) -> str:
    return json.dumps({"kind": "List", "items": documents})


KINDS = "brokerpools.ibrik.dev,topics.ibrik.dev,subscriptions.ibrik.dev,channels.ibrik.dev"


def furnish(world: World) -> None:
    """What kubectl tells of a cluster in which a subscription waits for its channel."""
    seen = cluster()
    waiting = resource("billing", ready("False", "DestinationNotFound", "There is no Channel."))
    label = "app.kubernetes.io/name=ibrik-operator"
    children = "app.kubernetes.io/managed-by=ibrik-operator"
    world.answer("get /version", '{"gitVersion": "v1.34.4"}')
    names = KINDS.replace(",", " ")
    world.answer(f"get customresourcedefinitions {names}", listing(*seen.definitions))
    world.answer(f"get deployments,pods {label}", listing(operator(image="a:" + __version__)))
    world.answer("get lease ibrik-operator ibrik-system", json.dumps(lease() | {"kind": "Lease"}))
    kinds = [p | {"kind": "BrokerPool"} for p in seen.pools] + [waiting | {"kind": "Subscription"}]
    world.answer(f"get {KINDS}", listing(*kinds))
    sick = pod("ibrik-default-1", is_ready=False)
    world.answer(f"get pods,persistentvolumeclaims {children}", listing(*seen.pods, sick))
    world.answer("get events", listing())
    world.answer("logs ibrik-default-1 shop", "cannot open the volume\n")


@pytest.mark.slow
def test_a_look_at_a_cluster_says_what_is_wrong(world: World, broker: Broker) -> None:
    furnish(world)
    world.forward("pod/ibrik-default-0", 8081, broker.admin_url)
    world.forward("pod/ibrik-default-1", 8081, broker.admin_url)
    done = world.run("--context", "kind", "-n", "shop", "doctor", "--bundle", "seen.zip")
    assert done.returncode == 1, done.stderr
    lines = done.stdout.splitlines()
    assert "✗ pod shop/ibrik-default-1 is Running" in lines
    assert any("billing is not ready: DestinationNotFound" in line for line in lines)
    assert "  cannot open the volume" in lines
    assert any(line.startswith(f"✓ broker shop/ibrik-default-0 {__version__}") for line in lines)
    with zipfile.ZipFile(world.folder / "seen.zip") as bundle:
        names = set(bundle.namelist())
        assert "DestinationNotFound" in bundle.read("findings.json").decode()
    assert {"pools.json", "pods.json", "brokers.json", "logs/shop/ibrik-default-1.log"} <= names
    assert not any("secret" in call for call in world.notes("calls"))
    as_json = json.loads(world.run("--context", "kind", "doctor", "-o", "json").stdout)
    assert as_json["well"] is False
    assert {"level", "text", "remedy"} == set(as_json["findings"][0])


def test_a_cluster_that_does_not_answer_is_one_sentence(world: World) -> None:
    done = world.run("--context", "kind", "doctor")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_broker_alone_is_looked_at(world: World, broker: Broker) -> None:
    done = world.run("doctor", "--admin", broker.admin_url)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith(f"✓ broker {broker.admin_url} {__version__}, ")
    nobody = world.run("doctor", "--admin", "http://127.0.0.1:9", "-o", "json")
    assert nobody.returncode == 1
    (finding,) = json.loads(nobody.stdout)["findings"]
    assert finding["text"].startswith("no broker answers")
    assert "ibrik serve --dev" in finding["remedy"]
