"""Our finalizer is only where deleting deletes data, and never keeps a namespace from going."""

from typing import Any

import pytest

from ibrik_operator.decisions.finalizers import (
    has_finalizer,
    is_paused,
    is_released_unasked,
    wished,
    without_ours,
)
from ibrik_operator.keys import Document
from tests.support.resources import LATER, pool, topic

OURS, THEIRS = "ibrik.dev/protect", "example.com/theirs"


@pytest.mark.parametrize(
    ("policy", "has", "wish"),
    [
        (None, [], []),
        ("Retain", [], []),
        ("Retain", [OURS, THEIRS], [THEIRS]),
        ("Delete", [], [OURS]),
        ("Delete", [THEIRS], [THEIRS, OURS]),
        ("Delete", [THEIRS, OURS], [THEIRS, OURS]),
        ("DeleteIfEmpty", [], [OURS]),
    ],
)
def test_the_policy_says_whether_it_is_there(
    policy: str | None, has: list[str], wish: list[str]
) -> None:
    spec = {} if policy is None else {"deletionPolicy": policy}
    one = topic(spec=spec, finalizers=has)
    assert wished(one) == wish
    assert wished(topic(spec=spec, finalizers=wish)) == wish, "asked again, it changes nothing"


def test_releasing_keeps_those_of_others() -> None:
    one = topic(finalizers=[OURS, THEIRS])
    assert has_finalizer(one)
    assert without_ours(one) == [THEIRS]
    assert not has_finalizer(topic(finalizers=[THEIRS]))


@pytest.mark.parametrize(
    ("annotations", "pool_there", "is_terminating", "is_released"),
    [
        ({}, pool(), False, False),
        ({"ibrik.dev/force-delete": "true"}, pool(), False, True),
        ({"ibrik.dev/force-delete": "false"}, pool(), False, False),
        ({}, None, False, True),
        ({}, pool(deletionTimestamp=LATER), False, True),
        ({}, pool(), True, True),
    ],
)
def test_it_goes_unasked_when_forced_or_when_all_goes(
    annotations: dict[str, str],
    pool_there: Document | None,
    is_terminating: bool,
    is_released: bool,
) -> None:
    one = topic(annotations=annotations, deletionTimestamp=LATER)
    released = is_released_unasked(one, pool=pool_there, is_namespace_terminating=is_terminating)
    assert released is is_released


@pytest.mark.parametrize(
    ("metadata", "is_held"),
    [
        ({}, False),
        ({"annotations": None}, False),
        ({"annotations": {"ibrik.dev/paused": "true"}}, True),
        ({"annotations": {"ibrik.dev/paused": "false"}}, False),
    ],
)
def test_only_true_pauses(metadata: dict[str, Any], is_held: bool) -> None:
    assert is_paused(topic(**metadata)) is is_held
