"""Postgres goes away while a pool runs, and comes back: real brokers, a Postgres of its own."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.pool import PoolOfBrokers, resource, running_pool
from tests.support.postgres import running_postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PATIENCE_S = 60.0
LEASE = "/v1/subscriptions/workers:lease"


def test_topics_go_on_without_their_database_and_everything_else_goes_on_with_it(
    tmp_path: Path,
) -> None:
    with (
        running_postgres() as postgres,
        running_pool(tmp_path, postgres.new_database(), 2) as pool,
    ):
        for name in ("source", "copies"):
            assert pool.topic(0, name).status == 201
        _subscribe(pool)
        pool.publish(0, "source", b"before")
        _until(lambda: pool.values(1, "copies") == ["before"])
        assert pool.request(1, "POST", LEASE, {"max": 1}).status == 200
        postgres.stop()
        _topics_go_on(pool)
        _the_rest_says_why_it_does_not(pool)
        postgres.start()
        _until(lambda: pool.topic(0, "afterwards").status in (200, 201))
        _until(lambda: pool.publish(1, "afterwards", b"x").status == 201)
        # Nothing is lost, and the topic knows what came twice.
        everything = ["before", "meanwhile 0", "meanwhile 1"]
        _until(lambda: pool.values(0, "copies") == everything)
        _until(lambda: pool.request(0, "POST", LEASE, {"max": 1}).status == 200)


def _subscribe(pool: PoolOfBrokers) -> None:
    copying = resource(
        "Subscription",
        "copying",
        topicRef={"name": "source"},
        mode="push",
        push={"topic": {"name": "copies"}},
    )
    workers = resource("Subscription", "workers", topicRef={"name": "source"}, mode="pull")
    for wish in (copying, workers):
        assert pool.request(0, "POST", "/v1/subscriptions", wish).status == 201


def _topics_go_on(pool: PoolOfBrokers) -> None:
    for number in (0, 1):
        assert pool.publish(number, "source", f"meanwhile {number}".encode()).status == 201
    for number in (0, 1):
        assert pool.values(number, "source") == ["before", "meanwhile 0", "meanwhile 1"]
        assert pool.request(number, "GET", "/readyz", is_admin=True).status == 200


def _the_rest_says_why_it_does_not(pool: PoolOfBrokers) -> None:
    for number in (0, 1):
        refused = [
            pool.topic(number, "new"),
            pool.request(number, "POST", LEASE, {"max": 1}),
            pool.request(number, "PUT", "/v1/clients/till", {"name": "till"}),
        ]
        assert [answer.status for answer in refused] == [503] * 3, refused
        assert {answer.json["code"] for answer in refused} == {"metadata-unavailable"}


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, "it does not come back"
