"""Headers of a push request: an event for the cloudevents package, signed for standardwebhooks."""

import base64
import time

import pytest
from cloudevents.core.bindings.http import HTTPMessage, from_binary_event
from standardwebhooks import Webhook

from ibrik_api.signatures import verify
from ibrik_broker.delivery.senders.headers import bearer, fixed_headers, push_headers
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_log.record import Headers
from tests.broker.delivery.senders.rig import NOW_MS, parcel

FIXED = fixed_headers({}, None)
EVENT: Headers = [
    ("content-type", b"application/json"),
    ("ce_specversion", b"1.0"),
    ("ce_id", b"e.1"),
    ("ce_source", b"/shop"),
    ("ce_type", b"order.created"),
    ("ce_subject", 'caf\u00e9 "no 1"'.encode()),
    ("ce_tenant", b"100%"),
]


def made(sent: Parcel, secrets: list[bytes] | None = None, now_ms: int = NOW_MS) -> dict[str, str]:
    headers = push_headers(FIXED, sent, now_ms, secrets)
    assert len(headers) == len(set(headers)), "no header twice"
    return dict(headers)


def test_plain_bytes_become_an_event_of_ours() -> None:
    headers = made(parcel(b"\x00", key=b"k 1", attempt=2))
    assert headers == {
        "User-Agent": headers["User-Agent"],
        "Accept-Encoding": "identity",
        "Content-Type": "application/octet-stream",
        "webhook-id": "0b5b8e4c-0000-4000-8000-000000000001-3-42",
        "webhook-timestamp": "1700000000",
        "Idempotency-Key": "0b5b8e4c-0000-4000-8000-000000000001-3-42",
        "Ibrik-Topic": "orders",
        "Ibrik-Partition": "3",
        "Ibrik-Offset": "42",
        "Ibrik-Attempt": "2",
        "Ibrik-Max-Attempts": "12",
        "Ibrik-Subscription": "billing",
        "Ibrik-Channel": "erp",
        "Ibrik-Key": "k 1",
        "ce-specversion": "1.0",
        "ce-id": "0b5b8e4c-0000-4000-8000-000000000001-3-42",
        "ce-source": "/topics/orders",
        "ce-type": "ibrik.message",
        "ce-time": "2023-11-14T22:13:19.123Z",
    }
    assert headers["User-Agent"].startswith("ibrik/")


def test_the_cloudevents_package_reads_the_event_as_it_was_published() -> None:
    event = from_binary_event(HTTPMessage(headers=made(parcel(headers=EVENT)), body=b'{"id":1}'))
    assert (event.get_id(), event.get_source(), event.get_type()) == (
        "e.1",
        "/shop",
        "order.created",
    )
    assert event.get_subject() == 'caf\u00e9 "no 1"'
    assert event.get_extension("tenant") == "100%"
    assert event.get_data() == {"id": 1}


def test_the_cloudevents_package_reads_plain_bytes_too() -> None:
    message = HTTPMessage(headers=made(parcel(b"\xff\x00")), body=b"\xff\x00")
    event = from_binary_event(message)
    assert (event.get_type(), event.get_source()) == ("ibrik.message", "/topics/orders")
    assert event.get_data() == b"\xff\x00"


@pytest.mark.parametrize("body", [b'{"id":1}', b"", "caf\u00e9".encode()])
def test_a_receiver_verifies_the_signature_with_any_of_the_secrets(body: bytes) -> None:
    secrets = [b"a" * 32, b"b" * 32]
    now_ms = int(time.time() * 1000)
    headers = made(parcel(body or None), secrets, now_ms)
    for secret in secrets:
        encoded = "whsec_" + base64.b64encode(secret).decode()
        Webhook(encoded).verify(body, headers, json_parse=False)
    with pytest.raises(Exception, match="signature"):
        Webhook(b"c" * 32).verify(body, headers, json_parse=False)


def test_a_body_of_any_bytes_is_signed() -> None:
    body = bytes(range(256))
    headers = made(parcel(body), [b"a" * 32])
    assert verify(
        [b"a" * 32],
        message_id=headers["webhook-id"],
        timestamp=headers["webhook-timestamp"],
        signature=headers["webhook-signature"],
        body=body,
        now_s=NOW_MS / 1_000,
    )


def test_the_id_stays_over_retries_and_replays_and_the_timestamp_moves() -> None:
    first = made(parcel(headers=EVENT))
    again = made(
        parcel(headers=EVENT, attempt=5, subscription="", replay="r1"), None, NOW_MS + 9_000
    )
    assert first["webhook-id"] == again["webhook-id"]
    assert "." not in first["webhook-id"], "a dot would make the signed text ambiguous"
    assert int(again["webhook-timestamp"]) - int(first["webhook-timestamp"]) == 9
    assert (again["Ibrik-Replay"], again.get("Ibrik-Subscription")) == ("r1", None)


def test_an_idempotency_key_is_the_id() -> None:
    assert made(parcel(headers=[("ibrik-id", b"order-7")]))["webhook-id"] == "order-7"


def test_trace_context_and_own_headers_are_carried_through() -> None:
    headers = made(
        parcel(
            headers=[
                ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01"),
                ("tracestate", b"vendor=1"),
                ("region", "z\u00fcrich".encode()),
                ("nothing", None),
                ("bad name", b"x"),
                ("x" * 300, b"long"),
            ]
        )
    )
    assert headers["traceparent"] == "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    assert headers["tracestate"] == "vendor=1"
    assert headers["Ibrik-Meta-region"] == "z%C3%BCrich"
    assert headers["Ibrik-Meta-" + "x" * 300] == "long"
    assert not any("nothing" in name or " " in name for name in headers)


def test_headers_of_strangers_cannot_add_lines() -> None:
    evil = b"a\r\nX-Evil: 1"
    headers = made(
        parcel(key=evil, headers=[("a", evil), ("ce_subject", evil), ("content-type", evil)])
    )
    assert not any("\r" in value or "\n" in value for value in headers.values())
    assert headers["Content-Type"] == "application/octet-stream"


def test_a_record_cannot_pose_as_the_broker() -> None:
    headers = made(parcel(headers=[("Ibrik-Topic", b"x"), ("webhook-id", b"x"), ("host", b"x")]))
    assert headers["Ibrik-Topic"] == "orders"
    assert headers["Ibrik-Meta-host"] == "x"
    assert "host" not in headers


def test_headers_of_the_destination_give_way_to_those_of_the_message() -> None:
    fixed = fixed_headers(
        {"content-type": "text/plain", "Webhook-Id": "x", "Transfer-Encoding": "chunked", "A": "1"},
        bearer("t"),
    )
    assert fixed["A"] == "1"
    assert fixed["Authorization"] == "Bearer t"
    assert {"webhook-id", "transfer-encoding"}.isdisjoint(name.lower() for name in fixed)
    plain = push_headers(fixed, parcel(), NOW_MS, None)
    typed = push_headers(fixed, parcel(headers=EVENT), NOW_MS, None)
    assert plain.getall("content-type") == ["text/plain"]
    assert typed.getall("content-type") == ["application/json"]
