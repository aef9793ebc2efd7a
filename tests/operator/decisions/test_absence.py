"""What is gone detaches after two full lists some time apart; a doubtful list detaches nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.observed import ObservedResource
from ibrik_operator.decisions.absence import APART_S, FEW, Absences, allowed_of
from tests.support.resources import pool


def served(*names: str, uid: str = "one") -> list[ObservedResource]:
    return [
        ObservedResource(kind="Topic", namespace="shop", name=name, uid=uid, generation=1)
        for name in names
    ]


MANY = served(*"abcdefgh")


def test_the_first_list_detaches_nothing() -> None:
    assert Absences().judge(MANY, MANY[:1], 1_000.0) == []


def test_two_lists_too_close_detach_nothing() -> None:
    absences = Absences()
    absences.judge(MANY, MANY[:1], 1_000.0)
    assert absences.judge(MANY, MANY[:1], 1_000.0 + APART_S - 1) == []
    assert absences.judge(MANY, MANY[:1], 1_000.0 + APART_S) == MANY[:1]


def test_one_that_came_back_between_begins_anew() -> None:
    absences = Absences()
    absences.judge(MANY, MANY[:1], 1_000.0)
    absences.judge(MANY, [], 1_000.0 + APART_S)
    assert absences.judge(MANY, MANY[:1], 1_000.0 + 2 * APART_S) == []


def test_another_incarnation_begins_anew() -> None:
    absences = Absences()
    absences.judge(MANY, MANY[:1], 1_000.0)
    other = served("a", uid="two")
    assert absences.judge([*other, *MANY[1:]], other, 1_000.0 + APART_S) == []


def test_more_than_half_at_once_stops_everything() -> None:
    absences = Absences()
    absences.judge(MANY, MANY[:5], 1_000.0)
    assert absences.is_stopped
    assert absences.judge(MANY, MANY[:5], 1_000.0 + APART_S) == []
    assert absences.judge(MANY, MANY[:4], 1_000.0 + 2 * APART_S) == MANY[:4]
    assert not absences.is_stopped, "half came back: the rest is what was meant"


def test_a_few_may_always_go() -> None:
    absences, few = Absences(), served("a", "b")
    absences.judge(few, few, 1_000.0)
    assert absences.judge(few, few, 1_000.0 + APART_S) == few


@pytest.mark.parametrize(
    ("annotations", "allowed"),
    [
        (None, FEW),
        ({"ibrik.dev/detach-absent": "5"}, 5),
        ({"ibrik.dev/detach-absent": "0"}, FEW),
        ({"ibrik.dev/detach-absent": "all"}, FEW),
        ({"ibrik.dev/detach-absent": "-9"}, FEW),
    ],
)
def test_a_person_says_how_many_may_go(annotations: dict[str, str] | None, allowed: int) -> None:
    assert allowed_of(pool(annotations=annotations)) == allowed


@pytest.mark.parametrize(("absent", "gone"), [(5, 5), (6, 0)])
def test_no_more_go_than_a_person_said(absent: int, gone: int) -> None:
    absences = Absences()
    absences.judge(MANY, MANY[:absent], 1_000.0, allowed=5)
    assert len(absences.judge(MANY, MANY[:absent], 1_000.0 + APART_S, allowed=5)) == gone


@given(
    st.lists(st.tuples(st.floats(0.1, 60.0), st.sets(st.integers(0, 7))), min_size=1, max_size=12)
)
def test_nothing_goes_that_was_not_absent_all_the_time(
    lists: list[tuple[float, set[int]]],
) -> None:
    absences, now_s, since = Absences(), 1_000.0, dict[int, float]()
    for pause_s, absent in lists:
        now_s += pause_s
        since = {one: since.get(one, now_s) for one in absent}
        going = absences.judge(MANY, [MANY[one] for one in sorted(absent)], now_s)
        assert {MANY.index(one) for one in going} <= {
            one for one in absent if now_s - since[one] >= APART_S
        }
        assert not going or len(absent) <= max(FEW, len(MANY) // 2)
