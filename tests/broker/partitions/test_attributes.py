"""Headers of records as headers of HTTP: what is escaped, what is left out."""

import pytest

from ibrik_broker.partitions.attributes import identity, passed_on, quoted, quoted_attribute


@pytest.mark.parametrize(
    ("content", "header", "attribute"),
    [
        (b"plain/1;x=y", "plain/1;x=y", "plain/1;x=y"),
        (b'a "b"', 'a "b"', "a%20%22b%22"),
        (b"100%", "100%25", "100%25"),
        ("café".encode(), "caf%C3%A9", "caf%C3%A9"),
        (b"a\r\nb\0", "a%0D%0Ab%00", "a%0D%0Ab%00"),
        (b"", "", ""),
    ],
)
def test_bytes_are_escaped_as_their_place_asks(content: bytes, header: str, attribute: str) -> None:
    assert (quoted(content), quoted_attribute(content)) == (header, attribute)


def test_headers_go_out_under_names_that_publishing_understands() -> None:
    headers = {
        "ce_subject": b"a b",
        "traceparent": b"00",
        "tracestate": b"x=1",
        "content-type": b"text/plain",
        "ibrik-id": b"1",
        "bad name": b"1",
        "nothing": None,
    }
    assert list(passed_on(headers, frozenset({"traceparent"}))) == [
        ("ce-subject", "a%20b"),
        ("traceparent", "00"),
        ("Ibrik-Meta-tracestate", "x=1"),
    ]


def test_the_id_is_the_clients_own_else_the_place() -> None:
    assert identity("t", 1, 2, {"ibrik-id": b"a", "ce_id": b"b"}) == "a"
    assert identity("t", 1, 2, {"ce_id": b"b"}) == "b"
    assert identity("t", 1, 2, {"ibrik-id": b""}) == "t-1-2"
