"""Payloads, keys and envelopes: what goes in comes out the same."""

import json

import msgspec
import pytest

from ibrik_client import InvalidRequest, RawJson, ServerFailed
from ibrik_client.messages import decode_envelope, encode_envelope, key_bytes, payload_of


def test_bytes_stay_text_becomes_utf8_the_rest_becomes_json() -> None:
    assert payload_of(b"\xff\x00") == (b"\xff\x00", None)
    assert payload_of("grün") == ("grün".encode(), "text/plain; charset=utf-8")
    assert payload_of({"a": [1, None]}) == (b'{"a":[1,null]}', "application/json")
    assert payload_of(RawJson(b"1.10")) == (b"1.10", "application/json")


def test_what_json_cannot_write_is_refused_at_once() -> None:
    with pytest.raises(InvalidRequest, match="JSON"):
        payload_of(object())


@pytest.mark.parametrize(
    ("key", "expected"),
    [(None, None), (b"\x00", b"\x00"), ("ü", "ü".encode()), (7, b"7"), (True, b"true")],
)
def test_keys_are_bytes(key: object, expected: bytes | None) -> None:
    assert key_bytes(key) == expected


def test_a_list_is_no_key() -> None:
    with pytest.raises(InvalidRequest, match="list"):
        key_bytes([1])


def test_json_travels_as_it_is_and_bytes_as_base64() -> None:
    as_json = json.loads(encode_envelope({"n": 1}, key="k", identity="i", partition=3))
    assert as_json == {"key": "k", "value": {"n": 1}, "id": "i", "partition": 3}
    as_bytes = json.loads(encode_envelope(b"\xff", key=b"\xfe"))
    assert as_bytes == {"key_base64": "/g==", "value_base64": "/w=="}
    assert json.loads(encode_envelope(None, key="gone")) == {"key": "gone"}


def test_text_says_that_it_is_text() -> None:
    envelope = json.loads(encode_envelope("hi", headers={"trace": "1"}))
    assert envelope["headers"] == {"content-type": "text/plain; charset=utf-8", "trace": "1"}


def test_a_message_has_the_very_bytes() -> None:
    line = b'{"offset":7,"timestamp":"2026-01-31T10:00:00.500Z","key":"k","value":{"x": 1.10}}'
    message = decode_envelope(line, "orders", 2)
    assert (message.partition, message.offset, message.key) == (2, 7, b"k")
    assert message.value == b'{"x": 1.10}'
    assert message.json() == {"x": 1.1}
    assert message.time.isoformat() == "2026-01-31T10:00:00.500000+00:00"
    both = decode_envelope(b'{"offset":7,"value":1,"value_base64":"MQo="}', "orders", 0)
    assert both.value == b"1\n"


def test_headers_that_are_no_text_stay_bytes() -> None:
    line = b'{"offset":0,"headers":{"a":"b","n":null},"headers_base64":{"raw":"/w=="}}'
    message = decode_envelope(line, "orders", 0)
    assert dict(message.headers) == {"a": "b", "n": None, "raw": b"\xff"}
    assert message.value is None


@pytest.mark.parametrize("line", [b"", b"[]", b'{"offset":"7"}', b'{"offset":1,"key_base64":"!"}'])
def test_an_answer_that_is_no_message_is_the_servers_failure(line: bytes) -> None:
    with pytest.raises(ServerFailed):
        decode_envelope(line, "orders", 0)


def test_numbers_are_not_rounded() -> None:
    digits = b'{"offset":1,"value":12345678901234567890.123456789}'
    assert decode_envelope(digits, "t", 0).value == b"12345678901234567890.123456789"
    assert msgspec.json.decode(
        encode_envelope(RawJson(b"1e400"), identity="x"), type=dict[str, msgspec.Raw]
    )["value"]
