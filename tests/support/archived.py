"""Topics that are archived, and the objects that archive them, for tests with an API server."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.cluster import Cluster, Document, documents_of
from tests.support.declared import pool, topic
from tests.support.definitions import DEFINITION, establish
from tests.support.shop import Shop

CRON_JOB, JOB = "batch/v1/CronJob", "batch/v1/Job"
SCHEDULE = "sparkoperator.k8s.io/v1beta2/ScheduledSparkApplication"
RUN = "sparkoperator.k8s.io/v1beta2/SparkApplication"
CHART = "SPARK_OPERATOR_CHART"
PATIENCE = {
    "IBRIK_OPERATOR_RESYNC_MS": "1000",
    "IBRIK_OPERATOR_ARCHIVE__UNHEARD_MS": "3000",
    "IBRIK_OPERATOR_ARCHIVE__START_MS": "3000",
}
"""A clock that runs faster than that of a cluster."""


def archiving_pool() -> Document:
    return pool("default", "", archive={"target": {"claim": {"size": "1Gi"}}})


def archived_topic(name: str = "orders", **archive: object) -> Document:
    return topic(name, "", archive={"enabled": True, **archive})


def only(shop: Shop, kind: str) -> Document:
    """The only object of a kind, once there is exactly one."""
    shop.eventually(lambda: len(shop.cluster.objects(kind, shop.namespace)) == 1)
    return shop.cluster.objects(kind, shop.namespace)[0]


def none(shop: Shop, kind: str) -> None:
    shop.eventually(lambda: not shop.cluster.objects(kind, shop.namespace))


@contextmanager
def spark_definitions(cluster: Cluster) -> Iterator[None]:
    """The kinds of the Spark operator from its chart; its program does not run."""
    definitions = [
        document
        for path in sorted((Path(os.environ[CHART]) / "crds").glob("*sparkapplications.yaml"))
        for document in documents_of(path)
    ]
    for definition in definitions:
        establish(cluster, definition)
    try:
        yield
    finally:
        for definition in definitions:
            cluster.delete(DEFINITION, definition["metadata"]["name"])
            cluster.wait_gone(DEFINITION, definition["metadata"]["name"], "")
