"""Credentials are valid when every broker sees exactly what the Secrets hold."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.kubernetes import credential_key
from ibrik_api.observed import ObservedBroker, content_fingerprint
from ibrik_operator.credentials import (
    Credentials,
    PoolCredentials,
    fault_of,
    missing_key,
    missing_secret,
)
from ibrik_operator.keys import Key

TOKEN = ("shop", "token", "value")
OTHER = ("shop", "other", "value")
NAMESPACES = st.from_regex(r"[ab]-?[ab]", fullmatch=True)
SECRETS = st.from_regex(r"[ab]([ab.-]{0,3}[ab])?", fullmatch=True)
KEYS = st.from_regex(r"[abA._-]{1,4}", fullmatch=True)
"""Few letters, so that borders that can be mistaken are mistaken soon."""
POOL = Key("BrokerPool", "shop", "default")


def known(content: bytes = b"one") -> PoolCredentials:
    digest = hashlib.sha256(content).hexdigest()
    return PoolCredentials({"shop_token_value": digest}, {}, frozenset([TOKEN]))


def broker(**files: bytes) -> ObservedBroker:
    return ObservedBroker(
        id="volume",
        name="ibrik-default-0",
        cluster_id="cluster",
        version="0.1.0",
        metadata_store="sqlite",
        is_metadata_ready=True,
        is_storage_low=False,
        free_bytes=1,
        capacity_bytes=2,
        min_free_bytes=0,
        credentials={f"shop_{name}_value": content_fingerprint(c) for name, c in files.items()},
    )


@pytest.mark.parametrize(
    ("credentials", "brokers", "reason"),
    [
        (known(), [broker(token=b"one")], None),
        (known(), [broker(token=b"one"), broker(token=b"one")], None),
        (known(), [broker(token=b"one"), broker(token=b"old")], "CredentialsPending"),
        (known(), [broker(token=b"one"), broker()], "CredentialsPending"),
        (known(), [], "CredentialsPending"),
        (None, [broker(token=b"one")], "CredentialsPending"),
        # Not read since the reference came.
        (PoolCredentials(), [broker(token=b"one")], "CredentialsPending"),
        (
            PoolCredentials({}, {TOKEN: missing_secret("shop", "token")}, frozenset([TOKEN])),
            [broker()],
            "SecretMissing",
        ),
        (
            PoolCredentials({}, {TOKEN: missing_key("shop", "token", "value")}, frozenset([TOKEN])),
            [broker()],
            "KeyMissing",
        ),
        # What another channel lacks is not our fault.
        (
            PoolCredentials(known().digests, {OTHER: missing_secret("shop", "other")}),
            [broker(token=b"one")],
            None,
        ),
    ],
)
def test_the_fault_is(
    credentials: PoolCredentials | None, brokers: list[ObservedBroker], reason: str | None
) -> None:
    found = fault_of([TOKEN], credentials, brokers)
    assert (None if found is None else found.reason) == reason


@given(st.lists(st.tuples(NAMESPACES, SECRETS, KEYS), min_size=2, max_size=2, unique=True))
def test_no_two_keys_of_secrets_share_a_file(references: list[tuple[str, str, str]]) -> None:
    one, other = (credential_key(*reference) for reference in references)
    assert one != other


def test_who_needs_no_secret_has_no_fault() -> None:
    assert fault_of([], None, []) is None


def test_only_news_is_news() -> None:
    credentials = Credentials()
    assert credentials.of(POOL) is None
    assert credentials.note(POOL, known())
    assert not credentials.note(POOL, known())
    assert credentials.note(POOL, known(b"two"))


def test_sentences_name_the_secret_and_the_step() -> None:
    assert missing_secret("shop", "token").message == (
        "there is no Secret 'token' in namespace 'shop'. Create it, or name another."
    )
    assert missing_key("shop", "token", "value").message == (
        "Secret 'token' in namespace 'shop' has no key 'value'. Add it, or name another."
    )
