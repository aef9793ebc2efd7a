"""A pool of several brokers on one Postgres: grown, shrunk, renewed, cut off from its database."""

import base64
from collections.abc import Iterator

import pytest

from tests.support.cluster import Cluster, Document, condition
from tests.support.declared import POD, POOL, SECRET, SET, TOPIC, declared, is_so, pool, topic
from tests.support.postgres import Postgres, running_postgres
from tests.support.shop import Shop


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as postgres:
        yield postgres


@pytest.fixture
def shared(own_shop: Shop, postgres: Postgres) -> Shop:
    """The pool `default`, with two brokers that serve."""
    own_shop.apply(secret(postgres.new_database()))
    own_shop.apply(two())
    assert own_shop.ready(POOL, "default")["status"]["ready"] == "2/2"
    return own_shop


def secret(url: str) -> Document:
    document = declared(SECRET, "database", "")
    del document["spec"]
    return document | {"data": {"uri": base64.b64encode(url.encode()).decode()}}


def two(replicas: int = 2, **spec: object) -> Document:
    metadata = {"postgres": {"secretRef": {"name": "database"}}}
    return pool("default", "", replicas=replicas, metadata=metadata, **spec)


def test_a_broker_that_owns_topics_is_not_taken_away(shared: Shop) -> None:
    for name in ("clicks", "orders"):  # Each broker gets one.
        shared.apply(topic(name, "", deletionPolicy="Delete"))
        shared.ready(TOPIC, name)
    shared.apply(two(1))
    told = shared.wait(POOL, "default", is_so("Scaled", "False", "BrokerOwnsTopics"))
    sentence = condition(told, "Scaled")["message"]
    assert "broker ibrik-default-1 owns " in sentence
    assert "spec.replicas to 2" in sentence
    assert shared.get(SET, "ibrik-default")["spec"]["replicas"] == 2
    (owned,) = (name for name in ("clicks", "orders") if name in sentence)
    shared.delete(TOPIC, owned)
    shared.gone(POD, "ibrik-default-1")
    assert shared.ready(POOL, "default")["status"]["ready"] == "1/1"
    assert condition(shared.get(POOL, "default"), "Scaled")["status"] == "True"
    shared.apply(two())
    shared.wait(POOL, "default", lambda one: one["status"]["ready"] == "2/2")


def test_a_change_replaces_one_broker_after_the_other(shared: Shop, cluster: Cluster) -> None:
    before = {n: shared.get(POD, f"ibrik-default-{n}")["metadata"]["uid"] for n in (0, 1)}
    version = shared.get(POOL, "default")["metadata"]["resourceVersion"]
    shared.apply(two(config={"logLevel": "debug"}))
    shared.wait(POOL, "default", is_so("UpToDate"))
    told = shared.ready(POOL, "default")
    after = {n: shared.get(POD, f"ibrik-default-{n}")["metadata"]["uid"] for n in (0, 1)}
    assert not set(before.values()) & set(after.values())
    until = int(told["metadata"]["resourceVersion"])
    ready = []
    for _, seen in cluster.watch(POOL, shared.namespace, name="default", since=version):
        ready.append(seen["status"]["readyReplicas"])
        if int(seen["metadata"]["resourceVersion"]) >= until:
            break
    assert set(ready) == {1, 2}  # Never none.


def test_a_database_that_is_away_is_told_and_holds_back_what_restarts_brokers(
    shared: Shop, postgres: Postgres
) -> None:
    uids = {n: shared.get(POD, f"ibrik-default-{n}")["metadata"]["uid"] for n in (0, 1)}
    postgres.stop()
    try:
        assert "Check the database" in shared.not_ready(POOL, "default", "PostgresUnreachable")
        shared.apply(two(config={"logLevel": "debug"}))
        shared.wait(POOL, "default", is_so("UpToDate", "False", "RollWaits"))
        assert {n: shared.get(POD, f"ibrik-default-{n}")["metadata"]["uid"] for n in (0, 1)} == uids
    finally:
        postgres.start()
    shared.wait(POOL, "default", is_so("UpToDate"))
    shared.ready(POOL, "default")


def test_another_address_in_the_secret_restarts_the_brokers(
    own_shop: Shop, postgres: Postgres
) -> None:
    url = postgres.new_database()
    own_shop.apply(secret(url))
    own_shop.apply(two())
    own_shop.ready(POOL, "default")
    before = {n: own_shop.get(POD, f"ibrik-default-{n}")["metadata"]["uid"] for n in (0, 1)}
    own_shop.apply(secret(url + ("&" if "?" in url else "?") + "prepared_statement_cache_size=50"))
    for n in (0, 1):
        own_shop.wait(
            POD, f"ibrik-default-{n}", lambda one, n=n: one["metadata"]["uid"] != before[n]
        )
    own_shop.wait(POOL, "default", is_so("UpToDate"))
