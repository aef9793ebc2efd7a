"""Which messages a filter wants, what it refuses, and that nothing makes it slow."""

import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.filters import MAX_SEEN_BYTES, compile_filter
from ibrik_log.record import StoredRecord

GUIDE = Path(__file__).resolve().parents[3] / "docs" / "guides" / "filters.md"
LONG_S = 10.0
"""Far above what anything here takes, far below what an unbounded evaluation would."""

ORDER = {
    "total": 120,
    "rate": 0.5,
    "paid": True,
    "customer": {"country": "DE", "tags": ["new", "vip"]},
    "items": [{"sku": "a-1", "tags": ["x"]}, {"sku": "b-2", "tags": ["y", "z"]}],
    "note": None,
}
HEADERS: list[tuple[str, bytes | None]] = [
    ("content-type", b"application/json"),
    ("ce_type", b"order.paid"),
    ("ce_source", b"/shop"),
    ("ce_subject", "bücher".encode()),
    ("ce_region", b"eu"),
    ("tenant", b"first"),
    ("tenant", b"acme"),
    ("nothing", None),
    ("binary", b"\xff"),
]


def record(
    value: Any = ORDER,
    key: bytes | None = b"7",
    headers: list[tuple[str, bytes | None]] = HEADERS,
) -> StoredRecord:
    payload = value if value is None or isinstance(value, bytes) else msgspec.json.encode(value)
    return StoredRecord(0, 0, key, payload, headers)


def matches(text: str, message: StoredRecord | None = None) -> bool:
    return compile_filter(text).matches(message or record())


def refused(text: str) -> Refusal:
    with pytest.raises(Refusal) as caught:
        compile_filter(text)
    assert caught.value.code == "invalid-filter"
    return caught.value


@pytest.mark.parametrize(
    "text",
    [
        'event.type == "order.paid"',
        'event["type"] == "order.paid" && event.region == "eu"',
        'event.type.startsWith("order.") || event.type.endsWith(".x")',
        'event.source in ["/shop", "/till"]',
        'event.subject == "bücher"',
        'event.datacontenttype == "application/json"',
        'headers["tenant"] == "acme"',  # the last of its name
        '"tenant" in headers && !("ce_type" in headers)',
        'key == "7"',
        'event.type.matches("^order\\\\.(paid|sent)$")',
        "data.total > 100 && data.rate < 1.0 && data.paid",
        "data.total == 120.0",
        'data.customer.country == "DE" && "vip" in data.customer.tags',
        'data.items.exists(item, item.sku == "b-2")',
        'data.items.all(item, item.sku.contains("-"))',
        'data.items.exists_one(item, item.tags.exists(tag, tag == "z"))',
        'data["items"][0].tags.all(tag, tag != "y")',
        "data.note == null && !has(data.coupon)",
        "size(data.items) == 2",
        "true",
    ],
)
def test_a_filter_sees_attributes_headers_key_and_payload(text: str) -> None:
    wanted = compile_filter(text)
    assert wanted.matches(record())
    assert wanted.error_count == 0


@pytest.mark.parametrize(
    "text",
    [
        'event.type == "order.sent"',
        'headers["tenant"] == "first"',
        'key == ""',
        "data.total > 120",
        "!data.paid",
        'data.items.exists(item, item.sku == "c")',
        "false",
    ],
)
def test_what_is_not_so_does_not_match_and_is_no_error(text: str) -> None:
    wanted = compile_filter(text)
    assert not wanted.matches(record())
    assert wanted.error_count == 0


@pytest.mark.parametrize(
    "text",
    [
        'event.nothing == "x"',
        'event.nothing != "x"',
        '!(headers["nothing"] == "x")',
        'headers["binary"] == ""',
        "data.coupon == null",
        "!(data.total == data.coupon)",
        "data.customer > 3",
        "data.customer.country.name == 1",
        "data.total",  # not true or false
        "data.items[9].sku == 1",
        "data.items.all(item, item.price > 3)",
    ],
)
def test_what_is_not_there_does_not_match_and_is_counted(text: str) -> None:
    wanted = compile_filter(text)
    assert not wanted.matches(record())
    assert not wanted.matches(record())
    assert wanted.error_count == 2


@pytest.mark.parametrize(
    "value",
    [b"", None, b"no json", b"{", b"\xff", b'"\\ud800"', b"[" * 5_000, b"1e400", b"NaN"],
)
def test_a_payload_that_is_no_json_is_not_there(value: bytes | None) -> None:
    wanted = compile_filter("data == data || true == data")
    assert not wanted.matches(record(value))
    assert wanted.error_count == 1
    assert matches('event.type == "order.paid" || data.total > 3', record(value))
    assert matches('event.type == "order.paid"', record(value))


@pytest.mark.parametrize("value", [True, {"a": 2**63}, {"a": -(2**63)}, [], "text", 3, None])
def test_any_json_is_a_payload(value: Any) -> None:
    wanted = compile_filter("data == data")
    assert wanted.matches(record(msgspec.json.encode(value)))


def test_a_payload_with_a_whole_number_beyond_64_bits_is_not_there() -> None:
    message = record(b'{"a": 99999999999999999999, "b": 1}')
    assert not matches("data.b == 1", message)
    assert matches('event.type == "order.paid" || data.b == 1', message)
    assert matches("data.a == 18446744073709551615u", record(b'{"a": 18446744073709551615}'))


def test_a_key_is_text_and_empty_when_there_is_none() -> None:
    assert matches('key == ""', record(key=None))
    assert matches('key == "é"', record(key="é".encode()))
    assert not matches('key != "x"', record(key=b"\xff"))


def test_what_a_plain_message_does_not_say_can_be_given() -> None:
    wanted = compile_filter('event.type == "ibrik.message" && event.source == "/topics/orders"')
    defaults = {"type": "ibrik.message", "source": "/topics/orders"}
    assert wanted.matches(record(headers=[]), defaults)
    assert not wanted.matches(record(headers=[("ce_type", b"order.paid")]), defaults)
    assert not wanted.matches(record(headers=[]))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is empty"),
        (" \n", "it is empty"),
        ("a" * 4_097, "4097 characters, at most 4096"),
        ("type == 'x'", "no matching overload"),
        ("topic == 'x'", "line 1, column 1: undeclared reference to 'topic'. Correct"),
        ("true &&\n  event.type = 'x'", "line 2, column 14: Syntax error"),
        ("key == 1", "line 1, column 5: found no matching overload"),
        ("key", "it gives STRING, not true or false: compare it"),
        ("[data.total]", "it gives"),
        ("'\ud800' == key", "characters that are no text"),
        ("key == '\\ud800'", "Unicode value"),
        ("data.items.map(i, i.sku) == []", r"map\(\) and filter\(\) are not served: use exists\("),
        ("data.items.filter(i, i.sku == 'a') == []", r"use exists\(\) or all\("),
        ("data.items.exists(i, i.sku == key)", "'key' stands inside a loop.*with a literal"),
        ("data.a.exists(i, data.b.exists(j, i == j))", "'data' stands inside a loop"),
        ("data.a.all(i, i.b.all(j, j == i))", "'i' stands inside a loop"),
        ("[data, data].all(x, true)", "a loop goes over a part of the message"),
        ("key.contains(event.type)", r"contains\(\) needs a literal text"),
        ("key.matches(event.type)", r"matches\(\) needs a literal text"),
        ("matches(key, event.type)", r"matches\(\) needs a literal text"),
    ],
)
def test_a_filter_that_cannot_be_used_is_refused_with_place_and_next_step(
    text: str, told: str
) -> None:
    refusal = refused(text)
    assert re.search(told, refusal.detail)
    assert "event, headers, key and data are known" in refusal.detail


def test_the_place_of_a_mistake_is_a_fact_for_programs() -> None:
    facts = refused("true &&\n  event.type = 'x'").facts
    assert facts == {"line": 2, "column": 14}


@given(st.text(max_size=40))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    try:
        wanted = compile_filter(text)
    except Refusal as refusal:
        code = refusal.code
    else:
        code = None
        assert wanted.matches(record()) in (True, False)
    assert code in (None, "invalid-filter")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["items", "sku", "total"]), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(JSON, st.binary(max_size=8))
def test_any_message_is_a_yes_or_a_no(value: Any, key: bytes) -> None:
    text = 'data.items.exists(i, i.sku == "a") || data.total > 3 || key == "k"'
    message = record(value, key, [("ce_type", key)])
    assert matches(text, message) in (True, False)


# --- what tries to be slow ------------------------------------------------------------------


def seconds_of(work: Callable[[], object]) -> float:
    started_s = time.thread_time()
    work()
    return time.thread_time() - started_s


@pytest.mark.parametrize(
    "text",
    [
        "(" * 1_000 + "true" + ")" * 1_000,
        "[" * 1_000 + "]" * 1_000 + " == []",
        "data" + ".a" * 1_000 + " == 1",
        "data" + "[0]" * 1_000 + " == 1",
        "-(" * 1_000 + "1" + ")" * 1_000 + " == 1",
        "key == " + "+".join(["key"] * 1_000),
        "data.a.all(a, a.all(b, b.all(c, c.all(d, " + "d.all(d, " * 40 + "true" + ")" * 44,
        " || ".join(["key == 'a'"] * 33),
        "data == data && " * 40 + "true",
        "key.matches('" + "a" * 129 + "')",
        "key.matches('(.{1,500}){1,2}z')",
        "key.matches('(?:(?:x?){10}){100}z')",
        "key.matches('(x{0,333}|y){0,3}z')",
        "key.matches('((a{1,10}){1,10}){1,10}')",
        r"key.matches('(\\pL|\\pN)*z')",
        " || ".join(["key.matches('a')"] * 3),
        "[" + "data, " * 40 + "data] == []",
        "{" + "'a': data, " * 40 + "'b': data} == data",
        "data.a.all(x, [x, x, x].all(y, [y, y, y].all(z, z == z)))",
    ],
)
def test_an_expression_that_could_be_slow_is_refused(text: str) -> None:
    assert seconds_of(lambda: refused(text)) < LONG_S


BIG_LIST = b"[" + b",".join([b"1"] * 100_000) + b"]"
WIDE = b'{"a":[' + b",".join([b"[%b]" % b",".join([b"1"] * 300)] * 300) + b"]}"


@pytest.mark.parametrize(
    "text",
    [
        "data.all(x, x == 1)",
        "data.all(x, true) && data.all(x, true)",
        "data.a.all(x, x.all(y, y == 1))",
        "data.a.all(x, x == x && x == x && x == x)",
        " && ".join(["data == data"] * 32),
        " || ".join(["2 in data"] * 32),
    ],
)
@pytest.mark.parametrize("payload", [BIG_LIST, WIDE])
def test_loops_and_comparisons_over_a_large_payload_end(text: str, payload: bytes) -> None:
    assert len(payload) <= MAX_SEEN_BYTES
    wanted = compile_filter(text)
    assert seconds_of(lambda: wanted.matches(record(payload))) < LONG_S


def test_a_loop_that_turns_too_often_is_stopped_and_counted() -> None:
    wanted = compile_filter("data.all(x, x == 1)")
    assert wanted.matches(record([1] * 9_000))
    assert not wanted.matches(record([1] * 11_000))
    assert wanted.error_count == 1


@pytest.mark.parametrize(
    "pattern",
    ["(x+x+)+y", "(x*)*(x*)*z", ".*" * 60 + "z", "[xy]*x" + "." * 100 + "z", "[^a]*x.{0,64}z"],
)
def test_a_pattern_that_backtracks_elsewhere_ends(pattern: str) -> None:
    wanted = compile_filter(f"key.matches('{pattern}')")
    for text in (b"x" * MAX_SEEN_BYTES, b"xyyxx" * (MAX_SEEN_BYTES // 5)):
        message = record(key=text)
        assert seconds_of(lambda message=message: wanted.matches(message)) < LONG_S


def test_a_search_for_a_long_text_in_a_long_text_ends() -> None:
    wanted = compile_filter(f"key.contains('{'x' * 4_000}y')")
    assert seconds_of(lambda: wanted.matches(record(key=b"x" * MAX_SEEN_BYTES))) < LONG_S


def test_what_is_too_large_is_not_there() -> None:
    padded = msgspec.json.encode({"a": 1, "pad": "x" * MAX_SEEN_BYTES})
    assert not matches("data.a == 1", record(padded))
    assert matches('event.type == "order.paid"', record(padded))
    assert not matches('key != ""', record(key=b"x" * (MAX_SEEN_BYTES + 1)))
    many: list[tuple[str, bytes | None]] = [(f"h{n}", b"x") for n in range(1_000)]
    assert matches('"h255" in headers && !("h256" in headers)', record(headers=many))
    assert matches("size(headers) == 0", record(headers=[("h", b"x" * 9_000)]))


def test_one_filter_serves_several_threads() -> None:
    wanted = compile_filter('data.items.exists(i, i.sku == "b-2") && event.type == "order.paid"')
    other = record({"items": []})
    with ThreadPoolExecutor(4) as pool:
        good = [pool.submit(wanted.matches, record()) for _ in range(300)]
        bad = [pool.submit(wanted.matches, other) for _ in range(300)]
    assert all(future.result() for future in good)
    assert not any(future.result() for future in bad)
    assert wanted.error_count == 0


# --- the guide ------------------------------------------------------------------------------


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)


def test_the_example_of_the_guide_matches_every_expression_beside_it() -> None:
    (event,) = (msgspec.json.decode(block) for block in blocks("json"))
    message = record(event.pop("data"), event.pop("partitionkey").encode(), [("tenant", b"acme")])
    message.headers.extend((f"ce_{name}", value.encode()) for name, value in event.items())
    expressions = [line for block in blocks("cel") for line in block.splitlines() if line]
    assert len(expressions) > 5
    for text in expressions:
        assert matches(text, message), text


def test_the_subscriptions_of_the_guide_have_filters_that_compile() -> None:
    (document,) = (yaml.safe_load(block) for block in blocks("yaml"))
    assert compile_filter(document["spec"]["filter"])
