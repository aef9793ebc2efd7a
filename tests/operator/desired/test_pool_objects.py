"""What the operator makes for a pool, whole, as files that a person reads.

`IBRIK_WRITE_GOLDEN=1 pytest tests/operator/desired` writes them anew; read the difference.
"""

import difflib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from ibrik_api.kubernetes import CONFIG_HASH, DATABASE_HASH, POOL_LABEL
from ibrik_api.resources.pool import Claim
from ibrik_broker.settings import Settings, load_settings
from ibrik_operator.archives import Job, Slot
from ibrik_operator.desired.archive import (
    cron_job,
    lake_claim,
    single_job,
    spark_run,
    spark_schedule,
)
from ibrik_operator.desired.broker_set import (
    ADMIN_FOLDER,
    CONFIG_FOLDER,
    CREDENTIALS_FOLDER,
    DATA_FOLDER,
    Defaults,
    pod_hash,
    stateful_set,
)
from ibrik_operator.desired.common import stamped
from ibrik_operator.desired.config import CONFIG_FILE, config_map, service_account
from ibrik_operator.desired.network import (
    client_service,
    disruption_budget,
    headless_service,
    network_policy,
)
from ibrik_operator.desired.secrets import admin_secret, credentials_secret
from ibrik_spark.__main__ import app
from tests.support.pool_documents import pool

GOLDEN = Path(__file__).parent / "golden"
DEFAULTS = Defaults("ibrik/broker:1")

PLAIN = pool()
RICH = pool(
    "orders",
    replicas=3,
    image="registry.example/ibrik/broker:2",
    imagePullSecrets=[{"name": "pull"}],
    storage={"size": "100Gi", "storageClassName": "fast", "reclaim": "Delete"},
    metadata={"postgres": {"secretRef": {"name": "orders-db"}}},
    resources={"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
    listeners={"tcp": {"enabled": False}, "openRegistration": True},
    podTemplate={
        "labels": {"team": "shop", POOL_LABEL: "stolen"},
        "annotations": {"prometheus.io/scrape": "true", CONFIG_HASH: "stolen"},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "brokers", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "topologySpread": [
            {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}
        ],
        "priorityClassName": "high",
    },
    config={
        "minFreeBytes": "1Gi",
        "logLevel": "debug",
        "egress": {"allowPrivate": False, "allow": ["10.0.0.0/8", "*.shop.svc"]},
    },
)

MONITORING = {"kubernetes.io/metadata.name": "monitoring"}

Build = Callable[[dict[str, Any]], Mapping[str, Any]]
OPTIMIZE_SLOT = Slot(0, "@daily", "UTC", job=Job.OPTIMIZE)
QUALITY_SLOT, TRAFFIC_SLOT, AUDIT_SLOT = (
    Slot(0, "0 2 * * *", "UTC", ("orders",), job=job)
    for job in (Job.QUALITY, Job.TRAFFIC, Job.AUDIT)
)
SLOT = Slot(0, "0 * * * *", "UTC")
RICH_SLOT = Slot(2, "@every 30m", "Europe/Berlin", ("orders", "returns"), "0123456789abcdef", True)
LAKE = ({"size": "20Gi", "storageClassName": "fast"}, {"size": "20Gi"})
ARCHIVED = pool(archive={"target": {"claim": {}}})
WITH_EXECUTORS = {"executors": 2, "serviceAccountName": "spark-operator-spark"}
RICH_ARCHIVED = pool(
    "orders-of-the-whole-wide-world",
    image="registry.example/ibrik/broker:2",
    imagePullSecrets=[{"name": "pull"}],
    podTemplate={"tolerations": [{"key": "brokers", "operator": "Exists"}]},
    archive={
        "target": {"url": "s3://lake/orders", "secretRef": {"name": "s3"}},
        "image": "registry.example/ibrik/spark:2",
        "resources": {"requests": {"cpu": "500m"}, "limits": {"cpu": 2, "memory": "4Gi"}},
    },
)


def spread(slot: Slot) -> Build:
    """What several pods do with tables, on a claim and behind a URL."""

    def built(one: dict[str, Any]) -> dict[str, Any]:
        bucket = {"url": "s3://lake", "secretRef": {"name": "s3"}}
        target = {"claim": {}} if one is PLAIN else bucket
        of_it = pool(archive={"target": target, **WITH_EXECUTORS})
        return spark_schedule(of_it, slot, DEFAULTS)

    return built


def archived(build: Callable[..., dict[str, Any]]) -> Build:
    """Of pools that archive, each with a slot."""

    def built(one: dict[str, Any]) -> dict[str, Any]:
        is_plain = one is PLAIN
        return build(
            ARCHIVED if is_plain else RICH_ARCHIVED, SLOT if is_plain else RICH_SLOT, DEFAULTS
        )

    return built


BUILDERS: dict[str, Build] = {
    "stateful-set": lambda one: stateful_set(one, one["spec"].get("replicas", 1), DEFAULTS),
    "client-service": client_service,
    "headless-service": headless_service,
    "disruption-budget": disruption_budget,
    "config-map": config_map,
    "service-account": service_account,
    "network-policy": lambda one: network_policy(one, {}),
    "network-policy-metrics": lambda one: network_policy(one, MONITORING),
    "network-policy-archive": lambda one: network_policy(
        ARCHIVED if one is PLAIN else RICH_ARCHIVED, {}
    ),
    "spark-schedule": archived(spark_schedule),
    "spark-optimize": spread(OPTIMIZE_SLOT),
    "spark-traffic": lambda one: (
        spark_schedule(ARCHIVED, TRAFFIC_SLOT, DEFAULTS)
        if one is PLAIN
        else spread(TRAFFIC_SLOT)(one)
    ),
    "cron-quality": lambda one: cron_job(
        ARCHIVED if one is PLAIN else RICH_ARCHIVED, QUALITY_SLOT, DEFAULTS
    ),
    "spark-audit": lambda one: spark_schedule(
        ARCHIVED if one is PLAIN else RICH_ARCHIVED, AUDIT_SLOT, DEFAULTS
    ),
    "spark-run": archived(spark_run),
    "cron-job": archived(cron_job),
    "single-job": archived(single_job),
    "lake-claim": lambda one: lake_claim(
        one,
        1,
        Claim.parse({"size": "20Gi"} | ({} if one is PLAIN else {"storageClassName": "fast"})),
    ),
    "admin-secret": lambda one: admin_secret(one, {"current": "new", "previous": "old"}),
    "credentials-secret": lambda one: credentials_secret(one, {"shop_hook_token": b"\x00\xff"}),
}


@pytest.mark.parametrize("name", BUILDERS)
@pytest.mark.parametrize(("kind", "document"), [("plain", PLAIN), ("rich", RICH)])
def test_an_object_is_as_the_file_has_it(name: str, kind: str, document: dict[str, Any]) -> None:
    text = yaml.safe_dump(dict(BUILDERS[name](document)), sort_keys=False, width=100)
    golden = GOLDEN / f"{name}.{kind}.yaml"
    if os.environ.get("IBRIK_WRITE_GOLDEN"):
        golden.write_text(text, encoding="utf-8")
    known = golden.read_text("utf-8").splitlines()
    assert not list(difflib.unified_diff(known, text.splitlines(), n=1))


@pytest.mark.parametrize("slot", [RICH_SLOT, OPTIMIZE_SLOT, QUALITY_SLOT, TRAFFIC_SLOT, AUDIT_SLOT])
def test_a_job_knows_every_option_that_its_pod_gives(slot: Slot) -> None:
    template = cron_job(RICH_ARCHIVED, slot, DEFAULTS)["spec"]["jobTemplate"]["spec"]["template"]
    job, *options = template["spec"]["containers"][0]["args"]
    jobs = get_command(app)
    assert isinstance(jobs, TyperGroup)
    context = jobs.commands[job].make_context(job, options)
    assert tuple(context.params["topic"]) == slot.topics


@pytest.mark.parametrize("document", [PLAIN, RICH])
def test_the_broker_knows_every_setting_that_its_pod_gives(
    document: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = started(document, tmp_path, monkeypatch)
    spec = document["spec"]
    assert settings.namespace == "shop"
    assert settings.name == "the-pod"
    assert settings.data == Path(DATA_FOLDER)
    assert settings.credentials_folder == Path(CREDENTIALS_FOLDER)
    assert settings.admin.token_file == Path(ADMIN_FOLDER)
    hosts = {settings.http.host, settings.tcp.host, settings.admin.host}
    assert {str(host) for host in hosts} == {"0.0.0.0"}
    assert settings.http.open_registration is spec.get("listeners", {}).get(
        "openRegistration", False
    )
    assert settings.tcp.enabled is ("listeners" not in spec)
    assert settings.log.min_free_bytes == (2**30 if spec else 256 * 2**20)
    assert settings.logging.level == ("debug" if spec else "info")
    assert settings.egress.allow_private is False
    assert len(settings.egress.allow) == (2 if spec else 0)
    assert settings.metadata_url.startswith("postgresql" if spec else "sqlite")
    assert settings.pool.is_member is bool(spec)


def started(document: dict[str, Any], folder: Path, patch: pytest.MonkeyPatch) -> Settings:
    """The settings of a broker in such a pod."""
    for variable in [one for one in os.environ if one.startswith("IBRIK_")]:
        patch.delenv(variable)
    (folder / CONFIG_FILE).write_text(config_map(document)["data"][CONFIG_FILE])
    told = {
        "metadata.name": "the-pod",
        "status.podIP": "10.1.2.3",
        "orders-db": "postgresql://orders:secret@db/orders",
    }
    for one in _container(document)["env"]:
        source = one.get("valueFrom", {})
        field, secret = source.get("fieldRef"), source.get("secretKeyRef")
        if field is not None:
            value = told[field["fieldPath"]]
        elif secret is not None:
            value = told[secret["name"]]
        else:
            value = one["value"].replace(CONFIG_FOLDER, str(folder))
        patch.setenv(one["name"], value)
    return load_settings()


CHANGES: dict[str, dict[str, Any]] = {
    "another image": {"image": "ibrik/broker:2"},
    "other resources": {"resources": {"requests": {"cpu": 1}}},
    "a setting": {"config": {"logLevel": "debug"}},
    "a closed door": {"listeners": {"tcp": {"enabled": False}}},
    "a node selector": {"podTemplate": {"nodeSelector": {"disk": "fast"}}},
    "a label": {"podTemplate": {"labels": {"team": "shop"}}},
    "an annotation": {"podTemplate": {"annotations": {"prometheus.io/scrape": "true"}}},
}


@pytest.mark.parametrize("spec", CHANGES.values(), ids=CHANGES)
def test_what_a_pod_is_started_with_is_in_its_digest(spec: dict[str, Any]) -> None:
    assert pod_hash(pool(**spec), DEFAULTS) != pod_hash(PLAIN, DEFAULTS)


def test_another_address_of_the_database_is_another_pod() -> None:
    one, other = (pod_hash(RICH, DEFAULTS, database) for database in ("one", "other"))
    assert len({one, other, pod_hash(RICH, DEFAULTS)}) == 3
    template = stateful_set(RICH, 3, DEFAULTS, "one")["spec"]["template"]["metadata"]
    assert template["annotations"][DATABASE_HASH] == "one"
    assert template["annotations"][CONFIG_HASH] == one


def test_a_newer_operator_brings_a_newer_image() -> None:
    assert pod_hash(PLAIN, Defaults("ibrik/broker:2")) != pod_hash(PLAIN, DEFAULTS)
    named = pool(image="ibrik/broker:1")
    assert pod_hash(named, Defaults("ibrik/broker:2")) == pod_hash(named, DEFAULTS)


@pytest.mark.parametrize(
    "spec",
    [{"replicas": 3}, {"storage": {"size": "20Gi"}}, {"storage": {"reclaim": "Delete"}}],
    ids=["more brokers", "a larger volume", "another reclaim"],
)
def test_what_is_not_the_pods_restarts_none(spec: dict[str, Any]) -> None:
    assert pod_hash(pool(**spec), DEFAULTS) == pod_hash(PLAIN, DEFAULTS)


def test_a_pod_template_does_not_take_the_words_of_ibrik() -> None:
    template = stateful_set(RICH, 3, DEFAULTS)["spec"]["template"]
    assert template["metadata"]["labels"][POOL_LABEL] == "orders"
    assert template["metadata"]["labels"]["team"] == "shop"
    assert template["metadata"]["annotations"][CONFIG_HASH] == pod_hash(RICH, DEFAULTS)


def test_no_door_but_those_of_data_is_in_the_service_for_clients() -> None:
    assert [port["name"] for port in client_service(PLAIN)["spec"]["ports"]] == ["http", "tcp"]
    assert [port["name"] for port in client_service(RICH)["spec"]["ports"]] == ["http"]


def test_the_stamp_tells_wishes_apart() -> None:
    one, other = stamped(client_service(PLAIN)), stamped(client_service(RICH))
    assert one == stamped(client_service(pool()))
    assert one["metadata"]["annotations"] != other["metadata"]["annotations"]
    assert (
        stamped(headless_service(PLAIN))["metadata"]["annotations"]
        != one["metadata"]["annotations"]
    )


def _container(document: dict[str, Any]) -> dict[str, Any]:
    (container,) = stateful_set(document, 1, DEFAULTS)["spec"]["template"]["spec"]["containers"]
    assert isinstance(container, dict)
    return container
