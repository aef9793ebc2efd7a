"""Lease tokens: read back as signed, and nothing else is ever taken for one."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.leases import LeaseRef
from ibrik_broker.delivery.tokens import TOKEN_CHARACTERS, Tokens

KEY = bytes(range(32))
REF = LeaseRef(partition=3, offset=123_456_789, attempt=2, epoch=7)
REFS = st.builds(
    LeaseRef,
    partition=st.integers(0, 255),
    offset=st.integers(0, 2**63 - 1),
    attempt=st.integers(1, 2**32 - 1),
    epoch=st.integers(0, 2**32 - 1),
)


def refused(tokens: Tokens, token: str, subscription_id: str = "s") -> None:
    with pytest.raises(Refusal) as caught:
        tokens.read(subscription_id, token)
    assert caught.value.code == "invalid-lease"


@given(ref=REFS, subscription_id=st.text())
def test_a_token_is_read_as_it_was_signed(ref: LeaseRef, subscription_id: str) -> None:
    token = Tokens(KEY).sign(subscription_id, ref)
    assert Tokens(KEY).read(subscription_id, token) == ref
    assert len(token) == TOKEN_CHARACTERS
    assert token.isascii()
    assert token.replace("-", "").replace("_", "").isalnum()


def test_every_flipped_bit_is_refused() -> None:
    tokens = Tokens(KEY)
    token = tokens.sign("s", REF).encode()
    for place in range(len(token)):
        for bit in range(8):
            changed = bytearray(token)
            changed[place] ^= 1 << bit
            refused(tokens, changed.decode("latin-1"))


def test_a_token_has_one_spelling() -> None:
    tokens = Tokens(KEY)
    signed = [tokens.sign("s", REF._replace(offset=offset)) for offset in range(200)]
    for one, other in (("-", "+"), ("_", "/")):
        token = next(token for token in signed if one in token)
        refused(tokens, token.replace(one, other))
    for text in (signed[0] + "=", signed[0] + "\n", " " + signed[0], signed[0][:-4]):
        refused(tokens, text)


@given(st.text())
def test_garbage_is_refused(text: str) -> None:
    refused(Tokens(KEY), text)


@given(st.text("ABCdef012-_", min_size=TOKEN_CHARACTERS, max_size=TOKEN_CHARACTERS))
def test_garbage_of_the_right_length_is_refused(text: str) -> None:
    refused(Tokens(KEY), text)


def test_a_lease_of_another_subscription_or_key_is_refused() -> None:
    token = Tokens(KEY).sign("billing", REF)
    refused(Tokens(KEY), token, "shipping")
    refused(Tokens(os.urandom(32)), token, "billing")
