"""A pool on Postgres grows, and refuses to shrink while a broker owns topics."""

from e2e.support.cluster import Cluster, Document, until
from e2e.support.pods import Client, wait_ready
from e2e.support.resources import pool, topic

PASSWORD = "only-in-this-test"


def postgres() -> list[Document]:
    container = {
        "name": "postgres",
        "image": "postgres:17",
        "imagePullPolicy": "IfNotPresent",
        "env": [
            {"name": "POSTGRES_USER", "value": "ibrik"},
            {"name": "POSTGRES_DB", "value": "ibrik"},
            {"name": "POSTGRES_PASSWORD", "value": PASSWORD},
        ],
        "readinessProbe": {
            "exec": {"command": ["pg_isready", "--host=127.0.0.1", "--username=ibrik"]},
            "periodSeconds": 1,
        },
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "postgres", "labels": {"app": "postgres"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "postgres"},
        "spec": {"selector": {"app": "postgres"}, "ports": [{"port": 5432}]},
    }
    return [pod, service]


def test_a_pool_grows_to_three_and_refuses_to_shrink_under_its_topics(
    installed: Cluster, namespace: str, client: Client
) -> None:
    database = installed.new_namespace(f"{namespace}-db", restricted=False)
    try:
        installed.load("postgres:17")
        installed.apply(*postgres(), namespace=database)
        wait_ready(installed, "postgres", database)
        uri = f"postgresql://ibrik:{PASSWORD}@postgres.{database}.svc/ibrik"
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "metadata"},
            "stringData": {"uri": uri},
        }
        store = {"postgres": {"secretRef": {"name": "metadata"}}}
        installed.apply(secret, pool(metadata=store), namespace=namespace)
        installed.wait_condition("brokerpools.ibrik.dev", "default", namespace, "Ready=True")
        scale(installed, namespace, 3)
        until(
            "three brokers are ready",
            lambda: ready_brokers(installed, namespace) == "3/3",
        )
        names = [f"orders-{number}" for number in range(3)]
        installed.apply(*(topic(name) for name in names), namespace=namespace)
        for name in names:
            installed.wait_condition("topics.ibrik.dev", name, namespace, "Ready=True")
            client.publish(name, 0, 10)
            assert client.read(name) == list(range(10))
        scale(installed, namespace, 1)
        refused = installed.wait_condition(
            "brokerpools.ibrik.dev", "default", namespace, "Scaled=False"
        )
        sentence = next(
            one["message"] for one in refused["status"]["conditions"] if one["type"] == "Scaled"
        )
        assert "orders-" in sentence
        assert len(installed.objects("pods", namespace, "ibrik.dev/pool=default")) == 3
    finally:
        installed.kubectl("delete", "namespace", database, "--wait=false")


def scale(cluster: Cluster, namespace: str, replicas: int) -> None:
    cluster.kubectl(
        "scale", "brokerpools.ibrik.dev/default", "--namespace", namespace,
        f"--replicas={replicas}",
    )  # fmt: skip


def ready_brokers(cluster: Cluster, namespace: str) -> str:
    pool_now = cluster.find("brokerpools.ibrik.dev", "default", namespace)
    assert pool_now is not None
    return str(pool_now.get("status", {}).get("ready"))
