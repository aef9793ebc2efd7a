"""The list of reasons is closed, and each says what it means and what to do."""

import re

from ibrik_operator.conditions.reasons import REASONS, Reason


def test_every_reason_is_explained() -> None:
    assert set(REASONS) == set(Reason)
    for entry in REASONS.values():
        assert entry.meaning.endswith(".")
        assert entry.next_step.endswith(".")


def test_a_reason_is_one_word_as_the_api_wants_it() -> None:
    assert [one for one in Reason if not re.fullmatch(r"[A-Z][A-Za-z]{1,40}", one)] == []
