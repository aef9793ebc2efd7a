"""Brokers that come and go: real processes, a real Postgres."""

import time
from pathlib import Path

import pytest

from ibrik_cli.main import run
from tests.support.broker import START_TIMEOUT_S
from tests.support.pool import PoolOfBrokers, running_pool
from tests.support.postgres import Postgres

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_three_brokers_that_start_at_once_on_an_empty_database_are_one_pool(
    postgres: Postgres, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with running_pool(tmp_path, postgres.new_database()) as pool:
        folders = [tmp_path / f"broker-{n}" / "data" for n in range(3)]
        assert len({(folder / "CLUSTER_ID").read_text() for folder in folders}) == 1
        assert len({(folder / "VOLUME_ID").read_text() for folder in folders}) == 3
        assert pool.topic(0, "orders").status == 201
        assert [pool.publish(n, "orders", b"x").status for n in range(3)] == [201] * 3
        _an_owner_goes_and_comes_back(pool, capsys)
        _a_fourth_joins_and_gets_the_next_topics(pool)


def _an_owner_goes_and_comes_back(pool: PoolOfBrokers, capsys: pytest.CaptureFixture[str]) -> None:
    owner = pool.owner("orders")
    away = (owner + 1) % 3
    before = pool.values(away, "orders")
    pool.brokers[owner].kill()
    refused = pool.publish(away, "orders", b"y")
    assert (refused.status, refused.json["code"]) == (503, "owner-unavailable")
    assert f"Broker {pool.name(owner)} " in refused.json["detail"]
    assert refused.headers["Retry-After"] == "2"
    assert pool.request(away, "GET", "/v1/topics/orders").status == 503
    # Everything else goes on, and new topics go to brokers that are there.
    names = [f"meanwhile-{n}" for n in range(4)]
    assert [pool.topic(away, name).status for name in names] == [201] * 4
    assert owner not in map(pool.owner, names)
    _the_others_are_listed(pool, away, names, capsys)
    pool.start(owner)
    assert pool.values(away, "orders") == before
    deadline = time.monotonic() + START_TIMEOUT_S
    while pool.publish(away, "orders", b"y").status != 201:
        assert time.monotonic() < deadline


def _the_others_are_listed(
    pool: PoolOfBrokers, number: int, names: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    url = pool.brokers[number].http_url
    assert run(["topic", "ls", "--server", url]) == 0
    printed = capsys.readouterr()
    rows = {row[0]: row[1:] for row in map(str.split, printed.out.splitlines()[1:])}
    assert rows["orders"][:3] == ["1", "-", "-"]
    assert [rows[name][:2] for name in names] == [["1", "0"]] * len(names)
    assert "orders: Broker " in printed.err


def _a_fourth_joins_and_gets_the_next_topics(pool: PoolOfBrokers) -> None:
    pool.start(3)
    names = [f"next-{n}" for n in range(3)]
    assert [pool.topic(0, name).status for name in names] == [201] * 3
    name = next(name for name in names if pool.owner(name) == 3)
    assert pool.publish(1, name, b"x").status == 201
