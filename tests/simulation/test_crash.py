"""Lives of a log on the simulated disk: nothing acknowledged is lost, moved or doubled."""

import pytest

from tests.simulation import crash
from tests.simulation.crash import run_crash
from tests.simulation.disk import SimulatedDisk


@pytest.mark.parametrize("decade", range(20))
def test_no_crash_loses_an_acknowledged_record(decade: int) -> None:
    for seed in range(decade * 10, decade * 10 + 10):
        result = run_crash(seed)
        assert result.problems == [], f"seed {seed}"
        assert (result.lost, result.reordered) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("hundred", range(20))
def test_no_crash_of_many_loses_an_acknowledged_record(hundred: int) -> None:
    for seed in range(10_000 + hundred * 100, 10_100 + hundred * 100):
        assert run_crash(seed).problems == [], f"seed {seed}"


@pytest.mark.parametrize("seed", [172, 510, 910, 1004, 1099, 1141, 1665])
def test_a_crash_that_once_lost_records_loses_none(seed: int) -> None:
    """A folder whose name was not durable; a lineage cut above frames that are walked over."""
    assert run_crash(seed).problems == []


def test_lives_are_worth_their_name() -> None:
    results = [run_crash(seed) for seed in range(50)]
    assert all(result.crashes == crash.CRASHES for result in results)
    assert sum(result.acknowledged for result in results) > 500


@pytest.mark.parametrize("operation", ["flush", "flush_folder"])
def test_a_disk_that_lies_about_flushes_is_found_out(
    operation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without flushes records are lost, and the judge says so."""
    monkeypatch.setattr(SimulatedDisk, operation, lambda *_: None)
    assert sum(run_crash(seed).lost for seed in range(40)) > 0
