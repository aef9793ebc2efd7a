"""`ibrik metadata copy`: a broker goes on where it was, on another database."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibrik_cli.main import run
from tests.cli.conftest import IBRIK
from tests.support.broker import Broker, running_broker
from tests.support.postgres import Postgres, running_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with running_postgres() as server:
        yield server


def ibrik(*arguments: str, given: str = "", **env: str) -> "subprocess.CompletedProcess[str]":
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    return subprocess.run(
        [IBRIK, *arguments],
        input=given,
        env=inherited | env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def at(broker: Broker, *arguments: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    return ibrik(*arguments, given=given, IBRIK_SERVER=broker.http_url)


def values(done: "subprocess.CompletedProcess[str]") -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_a_broker_on_the_copy_goes_on_delivering(tmp_path: Path, postgres: Postgres) -> None:
    uri = postgres.new_database()
    file = f"sqlite:///{tmp_path}/data/metadata.db"
    (tmp_path / "uri").write_text(f"{uri}\n")
    take = ("consume", "--subscription", "packing", "--format", "value", "--max")
    with running_broker(tmp_path) as broker:
        at(broker, "topic", "create", "orders")
        at(broker, "subscription", "create", "packing", "--topic", "orders", "--pull")
        at(broker, "produce", "orders", given="1\n2\n3\n4\n")
        assert values(at(broker, *take, "2")) == ["1", "2"]
        refused = ibrik("metadata", "copy", "--from", file, "--to-file", str(tmp_path / "uri"))
        assert refused.returncode == 1
        assert f"in use by process {broker.process.pid}" in refused.stderr
        broker.terminate()
    copied = ibrik(
        "metadata", "copy", "--to-file", str(tmp_path / "uri"), "-o", "json", IBRIK_COPY_FROM=file
    )
    assert copied.returncode == 0, copied.stderr
    rows = {t["table"]: t["rows"] for t in json.loads(copied.stdout)["tables"]}
    assert (rows["topics"], rows["subscriptions"], rows["cursors"]) == (1, 1, 1)
    assert "compared them. Next: set metadata.url" in copied.stderr
    with running_broker(tmp_path, IBRIK_METADATA__URL=uri) as broker:
        assert values(at(broker, *take, "1")) == ["3"]
        broker.terminate()
    (tmp_path / "data/metadata.db").rename(tmp_path / "before.db")
    back = ibrik("metadata", "copy", "--to", file, IBRIK_COPY_FROM=uri)
    assert back.returncode == 0, back.stderr
    with running_broker(tmp_path) as broker:
        assert values(at(broker, *take, "1")) == ["4"]
        broker.terminate()


def test_a_password_is_no_argument(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metadata", "copy", "--from=sqlite:///a.db", "--to=postgresql://u:pw@h/d"]) == 2
    errors = capsys.readouterr().err
    assert errors.startswith("error: --to has a password in it")
    assert "pw@" not in errors


def test_a_database_that_is_not_named_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["metadata", "copy", "--from=sqlite:///a.db"]) == 2
    assert capsys.readouterr().err == (
        "error: name the database: --to, --to-file or IBRIK_COPY_TO\n"
    )


@pytest.mark.slow
def test_the_data_folder_of_another_cluster_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        with running_broker(tmp_path / name) as broker:
            broker.terminate()
    source = f"sqlite:///{tmp_path}/one/data/metadata.db"
    (tmp_path / "two/data/metadata.db").unlink()
    done = ibrik(
        "metadata", "copy", "--from", source, "--to", f"sqlite:///{tmp_path}/two/data/metadata.db"
    )
    assert done.returncode == 1
    assert done.stderr.startswith("error: the data folders are of two clusters")
    assert not (tmp_path / "two/data/metadata.db").exists()
