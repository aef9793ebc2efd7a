"""Names: what is one, and what a person is told about what is none."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.errors import Refusal
from ibrik_api.names import NAME_PATTERN, check_name, is_name, message_id


@pytest.mark.parametrize("name", ["a", "7", "orders", "a.b_c-d", "a" * 253, "a..b"])
def test_a_name_is_accepted(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is empty"),
        ("Orders", "write it in lower case"),
        ("a/b", "it has '/'"),
        ("ä", "it has 'ä'"),
        ("a\n", "it has '\\n'"),
        ("..", "must begin and end with a letter or a digit"),
        ("-a", "must begin and end"),
        ("a" * 254, "254 characters, at most 253"),
        ("a b\x00", "only a-z 0-9 . _ - are allowed"),
    ],
)
def test_what_is_no_name_is_refused_with_the_fault(text: str, told: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_name(text)
    assert refused.value.code == "invalid-name"
    assert told in refused.value.detail
    assert len(refused.value.detail) < 200


@given(st.text(max_size=300))
def test_the_pattern_of_the_schema_and_the_check_agree(text: str) -> None:
    matches = re.search(NAME_PATTERN.replace("$", r"\Z"), text) is not None
    assert is_name(text) == (matches and len(text) <= 253)


@given(st.from_regex(re.compile(r"\A[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?\Z")))
def test_every_text_of_the_pattern_is_a_name(text: str) -> None:
    assert is_name(text)


def test_the_id_of_a_message_is_computed() -> None:
    assert message_id("3f", 2, 17) == "3f-2-17"
