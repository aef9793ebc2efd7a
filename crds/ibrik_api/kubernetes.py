"""Names, labels, annotations and ports of the Kubernetes objects of Ibrik.

The operator makes the objects, the command line looks for them; both take the words from here.
"""

from collections.abc import Mapping

GROUP, VERSION = "ibrik.dev", "v1beta1"

FIELD_MANAGER = "ibrik-operator"
FINALIZER = "ibrik.dev/protect"

# --- annotations ----------------------------------------------------------------------------------

PAUSED = "ibrik.dev/paused"
"""`true` on a resource: the operator observes it and changes nothing."""
FORCE_DELETE = "ibrik.dev/force-delete"
"""`true` on a resource: its finalizer is released without the brokers' word."""
ROTATE_ADMIN_TOKEN = "ibrik.dev/rotate-admin-token"  # noqa: S105 - a name, not a secret
"""On a BrokerPool, any new value: a new admin token; the one before stays valid until the next."""
DETACH_ABSENT = "ibrik.dev/detach-absent"
"""On a BrokerPool, a number: so many absent resources may be detached at once, also when they are
more than half of all."""
DESIRED_HASH = "ibrik.dev/desired-hash"
"""On what the operator applied: digest of the desired object, to see a difference by."""
CONFIG_HASH = "ibrik.dev/config-hash"
"""On a pod: digest of the configuration that it was started with."""
DATABASE_HASH = "ibrik.dev/database-hash"
"""On a pod: digest of the database's address that it was started with."""
ARCHIVE_NOW = "ibrik.dev/archive-now"
"""On a Topic, any new value: its archive job runs once more, now. On a schedule: what was asked for
last."""
WATCH_LABEL = "ibrik.dev/watch"
"""`true` on a Secret: a change of it is noticed at once; of others at the next resync."""

# --- labels ---------------------------------------------------------------------------------------

MANAGED_BY = "ibrik-operator"
POOL_LABEL = "ibrik.dev/pool"
ARCHIVE_LABEL = "ibrik.dev/archive"
"""Name of the pool, on what archives it. Pods of jobs have this one and not that of the pool, whose
pods are brokers."""
ORDINAL_LABEL = "ibrik.dev/ordinal"
"""Number of the broker that an object of the archive is for."""
JOB_LABEL = "ibrik.dev/job"
"""What a pod of the archive does."""


def pool_labels(pool: str) -> dict[str, str]:
    """Labels of every object of a pool."""
    return {
        "app.kubernetes.io/name": "ibrik",
        "app.kubernetes.io/component": "broker",
        "app.kubernetes.io/instance": object_name(pool),
        "app.kubernetes.io/managed-by": MANAGED_BY,
        "app.kubernetes.io/part-of": "ibrik",
        POOL_LABEL: pool,
    }


def pod_selector(pool: str) -> dict[str, str]:
    """Labels that select the brokers' pods; they never change, since a StatefulSet's cannot."""
    return {
        "app.kubernetes.io/name": "ibrik",
        "app.kubernetes.io/component": "broker",
        POOL_LABEL: pool,
    }


def archive_selector(pool: str) -> dict[str, str]:
    """Labels that select the pods of archive jobs."""
    return {
        "app.kubernetes.io/name": "ibrik",
        "app.kubernetes.io/component": "archive",
        ARCHIVE_LABEL: pool,
    }


def archive_labels(pool: str, ordinal: int) -> dict[str, str]:
    """Labels of every object that archives what one broker of a pool has."""
    return {
        **archive_selector(pool),
        "app.kubernetes.io/instance": object_name(pool),
        "app.kubernetes.io/managed-by": MANAGED_BY,
        "app.kubernetes.io/part-of": "ibrik",
        ORDINAL_LABEL: str(ordinal),
    }


def selector_text(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


# --- names ----------------------------------------------------------------------------------------

DEFAULT_POOL = "default"
DATA_VOLUME = "data"
HTTP_PORT, TCP_PORT, ADMIN_PORT = 8080, 7070, 8081


def object_name(pool: str) -> str:
    """Of the StatefulSet, the client Service, the ConfigMap, the budget and the ServiceAccount."""
    return f"ibrik-{pool}"


def headless_service_name(pool: str) -> str:
    return f"ibrik-{pool}-brokers"


def admin_secret_name(pool: str) -> str:
    """Keys `current` and, after a rotation, `previous`; each an admin token.

    Where the pool archives also `archive`, the token of its jobs.
    """
    return f"ibrik-{pool}-admin"


def credentials_secret_name(pool: str) -> str:
    """The secrets that channels name; keys are as `credential_key` says."""
    return f"ibrik-{pool}-credentials"


def credential_key(namespace: str, secret: str, key: str) -> str:
    """File of one key of a Secret in the brokers' folder of credentials.

    Names of Secrets and their keys may hold dots, so a dot cannot stand between them. No namespace
    and no Secret has an underscore in its name: the first two are the borders.
    """
    return f"{namespace}_{secret}_{key}"


def pod_name(pool: str, ordinal: int) -> str:
    return f"{object_name(pool)}-{ordinal}"


def claim_name(pool: str, ordinal: int) -> str:
    return f"{DATA_VOLUME}-{pod_name(pool, ordinal)}"


def lake_claim_name(pool: str, ordinal: int) -> str:
    """Of the volume with the tables of one broker."""
    return f"lake-{pod_name(pool, ordinal)}"


def ordinal_of(pod: str) -> int:
    """The number at the end of a pod's or a claim's name."""
    return int(pod.rpartition("-")[2])
