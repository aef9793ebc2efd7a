"""A benchmark's figure is a median of alternating rounds, and its bar decides the verdict."""

from bench.framework import Bench, Row, Verdict, unmeasured


def test_peers_alternate_round_by_round_and_the_median_counts() -> None:
    order: list[str] = []
    ours, theirs = iter((3.0, 1.0, 2.0)), iter((30.0, 10.0, 20.0))

    def measure_ours() -> float:
        order.append("ours")
        return next(ours)

    def measure_theirs() -> float:
        order.append("theirs")
        return next(theirs)

    assert Bench().alternate(measure_ours, measure_theirs) == [2.0, 20.0]
    assert order == ["ours", "theirs"] * 3


def test_a_row_without_a_bar_is_only_reported() -> None:
    row = Row("rate", "1/s")
    assert row.verdict is Verdict.REPORTED
    assert row.judged("≥ 1/s", is_met=True).verdict is Verdict.MET
    assert row.judged("≥ 2/s", is_met=False).verdict is Verdict.MISSED
    assert unmeasured("rate", "≥ 1/s", "needs wrk").verdict is Verdict.NOT_MEASURED
