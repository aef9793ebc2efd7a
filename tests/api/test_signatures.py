"""Signatures of Standard Webhooks, against the reference library and vectors of our own."""

import base64
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook, WebhookVerificationError

from ibrik_api.signatures import InvalidSecret, parse_secrets, sign, verify, webhook_id

KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
OTHER = bytes(range(100, 124))
NOW_S = 1_795_000_000


def is_good(signature: str, body: bytes = b"hello", **changes: object) -> bool:
    given: dict[str, object] = {
        "message_id": "m-1",
        "timestamp": str(NOW_S),
        "now_s": NOW_S,
    } | changes
    return verify([KEY], signature=signature, body=body, **given)  # type: ignore[arg-type]


# What openssl makes of the same: printf 'm-1.1795000000.' | cat - body | openssl dgst -sha256 -hmac
VECTORS = [
    (b"", "v1,uPUdXlFpFID3cEGFKyJbbHbzdVIdaXFJk190AJH8WEA="),
    (b"hello", "v1,Tj7Nsuesf1woP01NHizySo785TJgmS/po1y0MdpzPiY="),
    (b"\x00\xff\xfe\r\n.\x80", "v1,OXA/FfostBJCZXpDkYZUAMVBE2472izIT6jVz9AHQ58="),
]


@pytest.mark.parametrize(("body", "signature"), VECTORS)
def test_a_body_of_any_bytes_has_the_signature_that_openssl_makes(
    body: bytes, signature: str
) -> None:
    assert sign([KEY], "m-1", NOW_S, body) == signature
    assert is_good(signature, body)


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.from_regex(r"[A-Za-z0-9_-]{1,40}", fullmatch=True),
)
def test_the_reference_library_signs_text_the_same_way(body: str, message_id: str) -> None:
    theirs = Webhook(SECRET).sign(message_id, datetime.fromtimestamp(NOW_S, UTC), body)
    assert sign([KEY], message_id, NOW_S, body.encode()) == theirs


def test_the_reference_library_accepts_either_of_two_secrets() -> None:
    timestamp_s = int(time.time())  # the library reads the clock itself
    headers = {
        "webhook-id": "m-1",
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign([OTHER, KEY], "m-1", timestamp_s, b'{"a": 1}'),
    }
    assert Webhook(SECRET).verify('{"a": 1}', headers) == {"a": 1}
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify('{"a": 2}', headers)


def test_what_the_reference_library_signs_is_verified() -> None:
    signed = Webhook(SECRET).sign("m-1", datetime.fromtimestamp(NOW_S, UTC), "hello")
    assert is_good(f"v1a,AAAA {signed}")
    late = datetime.fromtimestamp(NOW_S, UTC) + timedelta(seconds=1)
    assert not is_good(Webhook(SECRET).sign("m-1", late, "hello"))


@pytest.mark.parametrize(
    "changes",
    [
        {"message_id": "m-2"},
        {"body": b"hello!"},
        {"timestamp": str(NOW_S + 1)},
        {"now_s": NOW_S + 301},
        {"now_s": NOW_S - 301},
        {"timestamp": ""},
        {"timestamp": f"{NOW_S}.0"},
        {"timestamp": f" {NOW_S}"},
        {"timestamp": "9" * 5_000},
        {"timestamp": "١٧٩٥٠٠٠٠٠٠"},
    ],
)
def test_anything_that_was_changed_or_is_old_is_not_verified(changes: dict[str, object]) -> None:
    signature = sign([KEY], "m-1", NOW_S, b"hello")
    assert is_good(signature)
    assert not is_good(signature, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "signature", ["", " ", "v1,", "v1", "v1,é", "v1,\udc80", "v2,AAAA", "x" * 9_000]
)
def test_a_signature_that_is_garbage_is_not_verified(signature: str) -> None:
    assert not is_good(signature)


def test_a_signature_by_another_secret_is_not_verified() -> None:
    assert not is_good(sign([OTHER], "m-1", NOW_S, b"hello"))
    assert not verify([], message_id="", timestamp=str(NOW_S), signature="", body=b"", now_s=NOW_S)


def test_secrets_stand_one_a_line() -> None:
    other = "whsec_" + base64.b64encode(OTHER).decode()
    assert parse_secrets(SECRET) == [KEY]
    assert parse_secrets(f"\n  {other}\r\n\n{SECRET}\n") == [OTHER, KEY]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "there is no secret"),
        (" \n ", "there is no secret"),
        ("a-plain-text-of-more-than-24-bytes", "line 1 does not begin with whsec_"),
        (f"{SECRET}\nwhsk_AAAA", "line 2 does not begin with whsec_"),
        ("whsec_", "this one 0"),
        ("whsec_" + base64.b64encode(b"x" * 23).decode(), "24 to 64 bytes, this one 23"),
        ("whsec_" + base64.b64encode(b"x" * 65).decode(), "24 to 64 bytes, this one 65"),
        ("whsec_" + "A" * 33, "no base64"),
        ("whsec_" + "-" * 32, "no base64"),
        ("whsec_" + "é" * 32, "no base64"),
        (f"{SECRET}\n" * 9, "9 secrets, at most 8"),
    ],
)
def test_a_secret_that_is_none_is_refused_without_showing_it(text: str, told: str) -> None:
    with pytest.raises(InvalidSecret) as refused:
        parse_secrets(text)
    assert told in str(refused.value)
    assert all(line[6:] not in str(refused.value) for line in text.split() if len(line) > 6)


@pytest.mark.parametrize("identity", ["a", "01J-x_9", "topic-3-17", "x" * 128])
def test_an_id_that_is_safe_stays(identity: str) -> None:
    assert webhook_id(identity) == identity


def test_an_id_with_a_dot_becomes_a_digest_that_stays_the_same() -> None:
    assert webhook_id("order.1") == "sha256-yDCCbEU45bsPyxY8TwivqpzRLZ2fTBL5ZLLMubzQkR0"


@given(st.text(max_size=300), st.text(max_size=300))
def test_ids_are_safe_and_as_different_as_the_identities(one: str, other: str) -> None:
    ids = webhook_id(one), webhook_id(other)
    assert all(0 < len(i) <= 128 and i.isascii() and not set(i) & set(". \r\n,") for i in ids)
    assert (ids[0] == ids[1]) is (one == other)
