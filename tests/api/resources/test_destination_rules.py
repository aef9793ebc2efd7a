"""What may be delivered to, and how a destination is told."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.resources.destination import Destination
from ibrik_api.resources.destination_rules import (
    check_destination,
    describe_destination,
    destination_endpoint,
)

URL = "https://api.example.com/hooks"
HTTP = {"http": {"url": URL}}
SERVICE = {"service": {"name": "orders"}}
TCP = {"tcp": {"host": "sink", "port": 7000}}
TOPIC = {"topic": {"name": "copies"}}
SECRET = {"secretRef": {"file": "token"}}


def findings(document: dict[str, Any], pointer: str = "/spec") -> list[tuple[str, str]]:
    errors = check_destination(Destination.parse(document), pointer)
    assert all(error["code"] == "invalid-destination" for error in errors)
    return [(error["pointer"], error["detail"]) for error in errors]


def url_fault(url: str) -> str | None:
    found = findings({"http": {"url": url}})
    assert all(pointer == "/spec/http/url" for pointer, _ in found)
    return found[0][1] if found else None


def header_fault(name: str, value: str = "x") -> str | None:
    found = findings({"http": {"url": URL, "headers": {name: value}}})
    return found[0][1] if found else None


@pytest.mark.parametrize("document", [HTTP, SERVICE, TCP, TOPIC])
def test_each_kind_alone_is_fine(document: dict[str, Any]) -> None:
    assert findings(document) == []


@pytest.mark.parametrize(
    ("document", "told"), [({}, "there is none"), (HTTP | TOPIC, "there is http and topic")]
)
def test_exactly_one_kind_is_needed(document: dict[str, Any], told: str) -> None:
    ((pointer, detail),) = findings(document, "/spec/push")
    assert pointer == "/spec/push"
    assert told in detail


@pytest.mark.parametrize(
    "url",
    [
        "http://a",
        "HTTP://A/",
        "http://localhost:8080/x?y=1&z=%20",
        "http://10.0.0.1:1/",
        "http://[::1]:65535/",
        "http://my_service.ns.svc.cluster.local/",
        "https://bücher.example/ü?ä=ö",
        "http://example.com./",
        "http://host/a@b",
        "http://" + "a" * 63 + ".example",
    ],
)
def test_an_http_url_with_a_host_is_fine(url: str) -> None:
    assert url_fault(url) is None


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("ftp://host/", "begin with http"),
        ("file:///etc/passwd", "begin with http"),
        ("//host/path", "begin with http"),
        ("http:host/path", "begin with http"),
        ("https:/host/path", "begin with http"),
        ("http:///path", "no host"),
        ("http://:80/", "host"),
        ("http://user@host/", "user or a password"),
        ("http://user:word@host/", "user or a password"),
        ("http://:word@host/", "user or a password"),
        ("http://@host/", "user or a password"),
        ("http://host/#part", "fragment"),
        ("http://host/#", "fragment"),
        ("http://host:0/", "1 to 65535"),
        ("http://host:65536/", "no URL"),
        ("http://host:-1/", "no URL"),
        ("http://host:port/", "no URL"),
        ("http://[::1/", "no URL"),
        ("http://[fe80::1%25eth0]/", ""),
        ("http://[fe80::1%eth0]/", ""),
        ("http://ho st/", "space"),
        ("http://host/a b", "space"),
        ("http://host/\r\nX: y", "control character"),
        ("http://host/\x00", "control character"),
        ("http://host\\@other/", "backslash"),
        ("http://host%2f@other/", "user or a password"),
        ("http://ho%73t/", ""),
        ("http://" + "a" * 64 + ".example", "1 to 63"),
        ("http://" + "a." * 130 + "a", "253"),
        ("http://a..b/", "1 to 63"),
        ("http://*.example/", "no name"),
        ("http://a,b/", "no name"),
        ("http://\u200b/", "no URL"),
    ],
)
def test_a_url_that_cannot_be_delivered_to_is_refused(url: str, told: str) -> None:
    fault = url_fault(url)
    assert fault is not None
    assert told in fault


@given(st.text(max_size=60), st.text(max_size=40))
def test_any_text_is_judged_and_an_accepted_url_has_host_and_port(host: str, path: str) -> None:
    destination = Destination.parse({"http": {"url": f"http://{host}/{path}"}})
    if not check_destination(destination):
        name, port = destination_endpoint(destination)
        assert name
        assert port is not None
        assert 1 <= port <= 65_535
        assert "\n" not in describe_destination(destination)


@pytest.mark.parametrize(
    "name", ["X-Tenant", "user-agent", "accept", "x.y_z!", "X-Webhook-Id", "Access-Token"]
)
def test_headers_of_ones_own_are_fine(name: str) -> None:
    assert header_fault(name) is None


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("Host", "host of the url"),
        ("content-length", "HTTP sets it"),
        ("Transfer-Encoding", "HTTP sets it"),
        ("CONNECTION", "HTTP sets it"),
        ("upgrade", "HTTP sets it"),
        ("Expect", "HTTP sets it"),
        ("TE", "HTTP sets it"),
        ("Trailer", "HTTP sets it"),
        ("Keep-Alive", "HTTP sets it"),
        ("Proxy-Authorization", "no proxy"),
        ("proxy-connection", "no proxy"),
        ("Content-Type", "comes from the message"),
        ("content-encoding", "comes from the message"),
        ("Authorization", "with auth"),
        ("Cookie", "with auth"),
        ("ce-type", "comes from the message"),
        ("Webhook-Signature", "Ibrik sets it"),
        ("IBRIK-Attempt", "Ibrik sets it"),
        ("traceparent", "comes from the message"),
        ("TraceState", "comes from the message"),
        ("Idempotency-Key", "Ibrik sets it"),
        ("X Y", "no header name"),
        ("X:Y", "no header name"),
        ("X\r\nY", "no header name"),
        ("é", "no header name"),
    ],
)
def test_a_header_that_is_not_ones_own_is_refused(name: str, told: str) -> None:
    fault = header_fault(name)
    assert fault is not None
    assert told in fault


@pytest.mark.parametrize("value", ["a\r\nb", "a\nb", "a\x00b", "a\x7f", "é"])
def test_a_header_value_holds_printable_ascii_only(value: str) -> None:
    assert "printable ASCII" in (header_fault("X-A", value) or "")


def test_a_header_in_two_spellings_is_refused_once_by_its_pointer() -> None:
    found = findings({"http": {"url": URL, "headers": {"X-A": "1", "x-a": "2", "x/~": "3"}}})
    assert [pointer for pointer, _ in found] == [
        "/spec/http/headers/x-a",
        "/spec/http/headers/x~1~0",
    ]
    assert "two spellings" in found[0][1]


@pytest.mark.parametrize("name", ["orders.other-namespace", "1orders", "a_b", "a" * 64])
def test_a_service_stays_in_its_namespace(name: str) -> None:
    ((pointer, detail),) = findings({"service": {"name": name}})
    assert pointer == "/spec/service/name"
    assert "no name of a Service" in detail


@pytest.mark.parametrize("path", ["/a b", "/a#b", "/a\r\nb", "/\\b"])
def test_a_path_of_a_service_is_sent_as_it_is(path: str) -> None:
    ((pointer, _),) = findings({"service": {"name": "orders", "path": path}})
    assert pointer == "/spec/service/path"


@pytest.mark.parametrize("host", ["sink", "10.0.0.1", "::1", "sink.ns.svc", "bücher.example"])
def test_a_tcp_host_is_a_name_or_an_address(host: str) -> None:
    assert findings({"tcp": {"host": host, "port": 1}}) == []


@pytest.mark.parametrize(
    "host", ["sink:80", "a b", "a/b", "user@sink", "[::1]", "fe80::1%eth0", "a\n", "a" * 64, "."]
)
def test_a_tcp_host_with_anything_else_is_refused(host: str) -> None:
    ((pointer, _),) = findings({"tcp": {"host": host, "port": 1}})
    assert pointer == "/spec/tcp/host"


@pytest.mark.parametrize("document", [TCP, TOPIC])
def test_only_requests_have_authorization_and_signatures(document: dict[str, Any]) -> None:
    assert [p for p, _ in findings(document | {"auth": {"bearer": SECRET}})] == ["/spec/auth"]
    assert [p for p, _ in findings(document | {"signing": SECRET})] == ["/spec/signing"]


@pytest.mark.parametrize("document", [HTTP, SERVICE])
def test_a_request_has_one_authorization_and_a_signature(document: dict[str, Any]) -> None:
    bearer, basic = {"bearer": SECRET}, {"basic": SECRET | {"username": "me"}}
    assert findings(document | {"auth": bearer, "signing": SECRET}) == []
    assert findings(document | {"auth": basic}) == []
    ((pointer, detail),) = findings(document | {"auth": bearer | basic})
    assert pointer == "/spec/auth"
    assert "keep one" in detail


@pytest.mark.parametrize("username", ["a:b", "a\nb", "\x7f"])
def test_a_user_name_fits_into_basic_authorization(username: str) -> None:
    ((pointer, _),) = findings(HTTP | {"auth": {"basic": SECRET | {"username": username}}})
    assert pointer == "/spec/auth/basic/username"


@pytest.mark.parametrize(
    ("document", "is_fine"),
    [
        (HTTP, True),
        ({"tcp": {"host": "sink", "port": 1, "tls": True}}, True),
        ({"http": {"url": "http://host/"}}, False),
        (TCP, False),
        (SERVICE, False),
        (TOPIC, False),
    ],
)
def test_certificates_are_for_encrypted_connections(
    document: dict[str, Any], is_fine: bool
) -> None:
    found = findings(document | {"tls": {"caSecretRef": {"file": "ca.pem"}}})
    assert [pointer for pointer, _ in found] == ([] if is_fine else ["/spec/tls"])


@pytest.mark.parametrize(
    ("reference", "is_fine"),
    [
        ({"file": "a"}, True),
        ({"env": "IBRIK_SECRET_A"}, True),
        ({"name": "a", "key": "b"}, True),
        ({}, False),
        ({"name": "a"}, False),
        ({"key": "b"}, False),
        ({"file": "a", "env": "IBRIK_SECRET_A"}, False),
        ({"file": "a", "key": "b"}, False),
        ({"file": "a", "name": "a", "key": "b"}, False),
    ],
)
def test_a_secret_is_named_in_exactly_one_way(reference: dict[str, str], is_fine: bool) -> None:
    ref = {"secretRef": reference}
    for extra, pointer in (
        ({"auth": {"bearer": ref}}, "/spec/auth/bearer/secretRef"),
        ({"auth": {"basic": ref | {"username": "me"}}}, "/spec/auth/basic/secretRef"),
        ({"signing": ref}, "/spec/signing/secretRef"),
        ({"tls": {"caSecretRef": reference}}, "/spec/tls/caSecretRef"),
    ):
        assert [p for p, _ in findings(HTTP | extra)] == ([] if is_fine else [pointer])


@pytest.mark.parametrize(
    ("document", "endpoint", "told"),
    [
        (HTTP, ("api.example.com", 443), "POST https://api.example.com/hooks"),
        (
            {"http": {"url": "http://h:81/x?token=s", "method": "PUT"}},
            ("h", 81),
            "PUT http://h:81/x",
        ),
        ({"http": {"url": "http://[::1]:81/"}}, ("::1", 81), "POST http://[::1]:81/"),
        (SERVICE, ("orders", 80), "POST http://orders:80/"),
        (TCP, ("sink", 7000), "tcp sink:7000"),
        ({"tcp": {"host": "::1", "port": 7, "tls": True}}, ("::1", 7), "tcp+tls [::1]:7"),
        (TOPIC, ("copies", None), "topic copies"),
    ],
)
def test_a_destination_is_told_in_one_line(
    document: dict[str, Any], endpoint: tuple[str, int | None], told: str
) -> None:
    destination = Destination.parse(document)
    assert destination_endpoint(destination) == endpoint
    assert describe_destination(destination) == told
