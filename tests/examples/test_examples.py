"""The examples run to their end, their files are served, and their checks can fail."""

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from ibrik_api.resources.channel import Channel
from ibrik_api.resources.destination_rules import check_destination
from ibrik_api.resources.subscription import Subscription
from ibrik_api.resources.subscription_rules import check_subscription
from ibrik_broker.delivery.filters import compile_filter

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def documents(kind: str) -> list[Any]:
    found = [
        document
        for path in sorted(EXAMPLES.glob("*/*.yaml"))
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8"))
    ]
    return [
        pytest.param(document, id=document["metadata"]["name"])
        for document in found
        if document.get("kind") == kind
    ]


def run(program: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(EXAMPLES / program), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def modules() -> Iterator[Any]:
    """Modules of one example, which import each other by their bare names."""
    known, path = set(sys.modules), list(sys.path)

    def load(example: str, *names: str) -> list[ModuleType]:
        sys.path.insert(0, str(EXAMPLES / example))
        return [importlib.import_module(name) for name in names]

    yield load
    sys.path[:] = path
    for name in set(sys.modules) - known:
        origin = getattr(sys.modules[name], "__file__", None) or ""
        if origin.startswith(str(EXAMPLES)):
            del sys.modules[name]


@pytest.mark.parametrize("document", documents("Channel"))
def test_the_channels_of_an_example_are_served(document: Any) -> None:
    assert check_destination(Channel.parse(document).spec, "/spec") == []


@pytest.mark.parametrize("document", documents("Subscription"))
def test_the_subscriptions_of_an_example_are_served(document: Any) -> None:
    spec = Subscription.parse(document).spec
    check_subscription(spec)
    if spec.filter is not None:
        compile_filter(spec.filter)


def test_webhooks_that_are_not_the_pinned_ones_are_refused(modules: Any, tmp_path: Path) -> None:
    [payloads] = modules("webhooks", "payloads")
    (tmp_path / payloads.ARCHIVE).write_bytes(b"something else")
    with pytest.raises(payloads.WrongArchive):
        payloads.fetch(tmp_path / "no.lock", tmp_path)


class Group:
    """Flights that `north` took, who was killed, and `east`, who lived."""

    def __init__(self, load: Any, folder: Path) -> None:
        self.ledger, self.accounts = load("shared-group", "ledger", "accounts")
        self.folder = folder
        self.published = [self.done(offset) for offset in range(2)]
        for name in ("north", "east"):
            (folder / name).touch()

    def done(self, offset: int, attempt: int = 1, checksum: int = 7) -> Any:
        return self.ledger.Done(0, offset, attempt, checksum, "UA", 100)

    def write(self, name: str, took: int, *done: Any, acked: bool, torn: bytes = b"") -> None:
        with (self.folder / name).open("ab") as file:
            self.ledger.write_took(file, took)
            self.ledger.write_done(file, done)
            if acked:
                self.ledger.write_acked(file)
            file.write(torn)

    def settle(self) -> Any:
        ledgers = {name: self.ledger.read(self.folder / name) for name in ("north", "east")}
        expected = {d.place: self.accounts.Expected(d[3], d[4], d[5]) for d in self.published}
        return self.accounts.settle(expected, ledgers, ["north"])


@pytest.fixture
def group(modules: Any, tmp_path: Path) -> Group:
    return Group(modules, tmp_path)


def test_a_flight_that_a_killed_worker_had_in_hand_may_be_done_twice(group: Group) -> None:
    group.write("north", 2, group.done(0), acked=False, torn=b"did 0 1 1 7 U")
    group.write("east", 2, group.done(0, attempt=2), group.done(1, attempt=2), acked=True)
    found = group.settle()
    assert found.faults == []
    assert (found.in_hand, found.untouched, found.again, found.twice) == (2, 1, 2, 1)
    assert (found.carriers, found.distance) == ({"UA": 2}, 200)


def test_a_flight_that_was_done_twice_by_workers_that_lived_is_a_fault(group: Group) -> None:
    group.write("north", 1, group.done(0), acked=True)
    group.write("east", 2, group.done(0), group.done(1), acked=True)
    assert group.settle().faults == ["1 places were done twice by workers that lived"]


def test_a_flight_that_nobody_did_is_a_fault(group: Group) -> None:
    group.write("north", 1, group.done(0), acked=True)
    [fault] = group.settle().faults
    assert fault == "1 places are missing or were never published, such as [(0, 1)]"


def test_a_flight_that_a_living_worker_left_open_is_a_fault(group: Group) -> None:
    group.write("east", 2, group.done(0), group.done(1), acked=False)
    [fault] = group.settle().faults
    assert fault == "a worker that was not killed left flights without an acknowledgement"


def test_a_flight_that_came_again_though_nobody_had_it_is_a_fault(group: Group) -> None:
    group.write("east", 2, group.done(0), group.done(1, attempt=2), acked=True)
    [fault] = group.settle().faults
    assert fault.startswith("1 flights were handed out again; the killed workers had taken 0")


def test_another_flight_than_was_published_is_a_fault(group: Group) -> None:
    group.write("east", 2, group.done(0), group.done(1, checksum=8), acked=True)
    [fault] = group.settle().faults
    assert fault == "a worker saw another flight than was published there"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_webhooks_come_out_exactly(tmp_path: Path) -> None:
    done = run("webhooks/demo.py", "--folder", str(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "99 deliveries, each signed, each exactly once" in done.stdout
    assert "4 dead letters" in done.stdout


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_shared_group_accounts_for_every_flight_over_two_kills(tmp_path: Path) -> None:
    done = run("shared-group/demo.py", "--folder", str(tmp_path), "--flights", "20000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20,000 flights, 15 carriers, 20,224,334 miles" in done.stdout
    assert done.stdout.count("SIGKILL to") == 2


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_lake_has_every_flight_once_over_three_kills(tmp_path: Path) -> None:
    done = run("lake/demo.py", "--folder", str(tmp_path), "--flights", "5000")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 runs killed" in done.stdout
    assert "5,000 flights, 15 carriers, 5,276,585 miles" in done.stdout
