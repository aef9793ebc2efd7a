"""The StatefulSet of a pool: one restricted pod and one volume for each broker. Pure."""

from dataclasses import dataclass
from typing import Any

from ibrik_api.kubernetes import (
    ADMIN_PORT,
    CONFIG_HASH,
    DATA_VOLUME,
    DATABASE_HASH,
    HTTP_PORT,
    TCP_PORT,
    admin_secret_name,
    credentials_secret_name,
    headless_service_name,
    object_name,
    pod_selector,
    pool_labels,
)
from ibrik_api.quantities import format_quantity
from ibrik_api.resources.pool import BrokerPoolSpec
from ibrik_operator.desired.common import CONTAINER_SECURITY, POD_SECURITY, child
from ibrik_operator.desired.config import CONFIG_FILE, settings_of
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.documents import digest
from ibrik_operator.keys import Document

DATA_FOLDER = "/var/lib/ibrik"
CONFIG_FOLDER, ADMIN_FOLDER, CREDENTIALS_FOLDER = (
    "/etc/ibrik/config",
    "/etc/ibrik/admin",
    "/etc/ibrik/credentials",
)
GRACE_S, LEAVE_S = 60, 5
"""A pod leaves its Services first, then has time to answer, flush and mark."""
SPREAD_KEYS = ("topology.kubernetes.io/zone", "kubernetes.io/hostname")


@dataclass(frozen=True, slots=True)
class Defaults:
    """What the operator came with, for pools that do not say."""

    image: str
    image_pull_secrets: tuple[str, ...] = ()
    spark_image: str = "ibrik/spark:dev"
    """Image of the jobs, for pools that archive."""


def stateful_set(
    pool: Document, replicas: int, defaults: Defaults, database: str = ""
) -> dict[str, Any]:
    """`replicas` may be more than wished while a broker that would go still owns topics.

    `database` is the digest of the address in the Secret of Postgres.
    """
    name, spec = pool["metadata"]["name"], pool_spec(pool)
    return {
        **child(pool, "apps/v1", "StatefulSet", object_name(name)),
        "spec": {
            "replicas": replicas,
            "serviceName": headless_service_name(name),
            "podManagementPolicy": "Parallel",
            "updateStrategy": {"type": "OnDelete"},
            "persistentVolumeClaimRetentionPolicy": {
                "whenDeleted": spec.storage.reclaim.value,
                "whenScaled": "Retain",
            },
            "selector": {"matchLabels": pod_selector(name)},
            "template": _template(pool, spec, defaults, database),
            "volumeClaimTemplates": [_claim(pool, spec)],
        },
    }


def pod_hash(pool: Document, defaults: Defaults, database: str = "") -> str:
    """Digest of all that a pod is made of; a pod with another one is out of date."""
    spec = pool_spec(pool)
    parts = [_metadata(pool, spec), _pod(pool, spec, defaults), settings_of(pool)]
    return digest([*parts, database] if database else parts)


def _template(
    pool: Document, spec: BrokerPoolSpec, defaults: Defaults, database: str
) -> dict[str, Any]:
    metadata = _metadata(pool, spec)
    annotations = {**metadata["annotations"], CONFIG_HASH: pod_hash(pool, defaults, database)}
    if database:
        annotations[DATABASE_HASH] = database
    return {
        "metadata": {**metadata, "annotations": annotations},
        "spec": _pod(pool, spec, defaults),
    }


def _metadata(pool: Document, spec: BrokerPoolSpec) -> dict[str, Any]:
    """What a person wishes on the pods besides; the words of Ibrik are not theirs to change."""
    own = spec.pod_template
    return {
        "labels": {**own.labels, **pool_labels(pool["metadata"]["name"])},
        "annotations": dict(own.annotations),
    }


def _pod(pool: Document, spec: BrokerPoolSpec, defaults: Defaults) -> dict[str, Any]:
    name, own = pool["metadata"]["name"], spec.pod_template
    pull = [one.name for one in spec.image_pull_secrets] or list(defaults.image_pull_secrets)
    optional = {
        "imagePullSecrets": [{"name": one} for one in pull],
        "nodeSelector": own.node_selector,
        "affinity": own.affinity,
        "tolerations": own.tolerations,
        "priorityClassName": own.priority_class_name,
    }
    return {
        "serviceAccountName": object_name(name),
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": GRACE_S,
        "securityContext": POD_SECURITY,
        "topologySpreadConstraints": own.topology_spread or _spread(name),
        "containers": [_container(pool, spec, defaults)],
        "volumes": _volumes(name),
        **{key: value for key, value in optional.items() if value},
    }


def _container(pool: Document, spec: BrokerPoolSpec, defaults: Defaults) -> dict[str, Any]:
    ports = {"http": HTTP_PORT, "tcp": TCP_PORT, "admin": ADMIN_PORT}
    mounts = {
        DATA_VOLUME: DATA_FOLDER,
        "config": CONFIG_FOLDER,
        "admin": ADMIN_FOLDER,
        "credentials": CREDENTIALS_FOLDER,
        "tmp": "/tmp",  # noqa: S108 - a volume of the pod's own
    }
    return {
        "name": "broker",
        "image": spec.image or defaults.image,
        "ports": [
            {"name": name, "containerPort": number, "protocol": "TCP"}
            for name, number in ports.items()
        ],
        "env": _environment(pool, spec),
        "resources": spec.resources.document(),
        "securityContext": CONTAINER_SECURITY,
        "startupProbe": _probe("/healthz", every_s=2, failures=150),
        "livenessProbe": _probe("/healthz", every_s=10, failures=6),
        "readinessProbe": _probe("/readyz", every_s=3, failures=2),
        # New requests go elsewhere before the broker closes its doors.
        "lifecycle": {"preStop": {"sleep": {"seconds": LEAVE_S}}},
        "volumeMounts": [
            {"name": name, "mountPath": path, **({} if name in {DATA_VOLUME, "tmp"} else _READ)}
            for name, path in mounts.items()
        ],
    }


_READ = {"readOnly": True}


def _environment(pool: Document, spec: BrokerPoolSpec) -> list[dict[str, Any]]:
    """What belongs to a pod and not to the pool's settings."""
    values = {
        "IBRIK_CONFIG": f"{CONFIG_FOLDER}/{CONFIG_FILE}",
        "IBRIK_DATA": DATA_FOLDER,
        "IBRIK_NAMESPACE": pool["metadata"]["namespace"],
        "IBRIK_HTTP__HOST": "0.0.0.0",  # noqa: S104 - a pod's own address
        "IBRIK_TCP__HOST": "0.0.0.0",  # noqa: S104
        "IBRIK_ADMIN__HOST": "0.0.0.0",  # noqa: S104
        "IBRIK_ADMIN__TOKEN_FILE": ADMIN_FOLDER,
        "IBRIK_CREDENTIALS__FOLDER": CREDENTIALS_FOLDER,
    }
    environment: list[dict[str, Any]] = [
        {"name": "IBRIK_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        *({"name": name, "value": value} for name, value in values.items()),
    ]
    postgres = spec.metadata.postgres
    if postgres is not None:
        address = {"name": postgres.secret_ref.name, "key": postgres.secret_ref.key}
        environment += [
            {"name": "IBRIK_METADATA__URL", "valueFrom": {"secretKeyRef": address}},
            {
                "name": "IBRIK_POOL__ADVERTISE_HOST",
                "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}},
            },
        ]
    return environment


def _volumes(name: str) -> list[dict[str, Any]]:
    credentials = {"secretName": credentials_secret_name(name), "optional": True}
    return [
        {"name": "config", "configMap": {"name": object_name(name)}},
        {"name": "admin", "secret": {"secretName": admin_secret_name(name)}},
        {"name": "credentials", "secret": credentials},
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
    ]


def _claim(pool: Document, spec: BrokerPoolSpec) -> dict[str, Any]:
    storage = spec.storage
    named = (
        {}
        if storage.storage_class_name is None
        else {"storageClassName": storage.storage_class_name}
    )
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": DATA_VOLUME, "labels": pool_labels(pool["metadata"]["name"])},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": format_quantity(storage.size)}},
            **named,
        },
    }


def _spread(name: str) -> list[dict[str, Any]]:
    """Over zones and nodes as far as there are some."""
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": pod_selector(name)},
        }
        for key in SPREAD_KEYS
    ]


def _probe(path: str, *, every_s: int, failures: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "admin"},
        "periodSeconds": every_s,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
    }
