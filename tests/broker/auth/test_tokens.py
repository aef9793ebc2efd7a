"""Tokens of publishers: how they look, how they are read, and what is kept of them."""

import os

import pytest

from ibrik_broker.auth.tokens import bearer_token, new_token, token_hash


def test_a_token_has_256_random_bits_and_a_prefix() -> None:
    assert new_token(lambda count: b"\xff" * count) == "ibp_" + "_" * 42 + "8"
    assert len(new_token(os.urandom)) == 4 + 43
    assert new_token(os.urandom) != new_token(os.urandom)


def test_what_is_kept_is_a_sha_256() -> None:
    assert token_hash("abc").hex().startswith("ba7816bf8f01cfea")
    assert token_hash("\udc80") != token_hash("")


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer ibp_x", "ibp_x"),
        ("bearer   ibp_x ", "ibp_x"),
        ("Basic ibp_x", ""),
        ("ibp_x", ""),
        ("Bearer", ""),
        ("", ""),
    ],
)
def test_a_token_is_read_from_the_header(header: str, token: str) -> None:
    assert bearer_token(header) == token
