"""The broker's parser: what lines mean, what survives, and that chunking never matters."""

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ibrik_wire import (
    Command,
    CommandParser,
    Fetch,
    Invalid,
    Ping,
    Publish,
    Target,
    encode_fetch,
    encode_publish,
)
from ibrik_wire.commands import LINE_BYTES_MAX
from ibrik_wire.parser import INVALID_LINES_MAX, KNOWN_LINES_MAX, SKIPPED_BYTES_MAX

ORDERS = Target("orders", None)
PAYLOAD_BYTES_MAX = 4_096


def parse(*chunks: bytes) -> list[Command]:
    parser = CommandParser(payload_bytes_max=PAYLOAD_BYTES_MAX)
    return [command for chunk in chunks for command in parser.feed(chunk)]


def test_a_publish_carries_its_payload() -> None:
    assert parse(b"PUB orders 5\r\nhello") == [Publish(ORDERS, [b"hello"])]


def test_a_partition_may_be_named() -> None:
    assert parse(b"PUB orders/3 1\r\nx") == [Publish(Target("orders", 3), [b"x"])]
    assert parse(b"FETCH orders/3 17\r\n") == [Fetch(Target("orders", 3), 17)]


def test_consecutive_publishes_to_one_target_become_one_command_whatever_their_sizes() -> None:
    stream = b"".join(encode_publish("orders", b"x" * size) for size in (1, 2, 3, 1, 2))
    assert parse(stream) == [Publish(ORDERS, [b"x", b"xx", b"xxx", b"x", b"xx"])]


def test_another_target_or_command_ends_a_run() -> None:
    stream = b"PUB a 1\r\n1PUB b 1\r\n2PUB a 1\r\n3PING\r\nPUB a 1\r\n4"
    a, b = Target("a", None), Target("b", None)
    assert parse(stream) == [
        Publish(a, [b"1"]),
        Publish(b, [b"2"]),
        Publish(a, [b"3"]),
        Ping(),
        Publish(a, [b"4"]),
    ]


def test_a_person_may_press_return_after_the_payload() -> None:
    assert parse(b"PUB orders 2\r\nhi\r\nPUB orders 2\r\nho\r\n") == [
        Publish(ORDERS, [b"hi", b"ho"])
    ]


def test_a_person_may_type_small_letters_and_a_bare_newline() -> None:
    assert parse(b"pub orders 2\nhi\nfetch orders 0\nping\n") == [
        Publish(ORDERS, [b"hi"]),
        Fetch(ORDERS, 0),
        Ping(),
    ]


def test_a_payload_may_hold_anything_and_nothing() -> None:
    payload = bytes(range(256)) + b"\r\nPUB orders 3\r\nabc"
    assert parse(encode_publish("orders", payload)) == [Publish(ORDERS, [payload])]
    assert parse(b"PUB orders 0\r\nPING\r\n") == [Publish(ORDERS, [b""]), Ping()]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"HELP", "unknown-command"),
        (b"PING now", "invalid-request"),
        (b"FETCH orders", "invalid-request"),
        (b"FETCH orders -1", "invalid-request"),
        (b"FETCH orders +1", "invalid-request"),
        (b"FETCH orders 1_0", "invalid-request"),
        (b"FETCH orders 9223372036854775808", "invalid-request"),
        (b"FETCH orders 1 2", "invalid-request"),
        (b"FETCH Orders 1", "invalid-name"),
        (b"FETCH ../etc 1", "invalid-name"),
        (b"FETCH -a 1", "invalid-name"),
        (b"FETCH %b 1" % (b"a" * 254), "invalid-name"),
        (b"FETCH orders/x 1", "unknown-partition"),
        (b"FETCH orders/ 1", "unknown-partition"),
        (b"FETCH orders/4294967296 1", "unknown-partition"),
    ],
)
def test_a_wrong_line_without_a_payload_keeps_the_connection(line: bytes, code: str) -> None:
    invalid, following = parse(line + b"\r\nPING\r\n")
    assert isinstance(invalid, Invalid)
    assert (invalid.code, invalid.is_fatal) == (code, False)
    assert following == Ping()


def test_a_publish_to_a_wrong_name_is_refused_and_its_payload_skipped() -> None:
    invalid, following = parse(b"PUB Orders! 6\r\nPING\r\nPING\r\n")
    assert isinstance(invalid, Invalid)
    assert invalid.code == "invalid-name"
    assert following == Ping()


@pytest.mark.parametrize(
    "line", [b"PUB orders", b"PUB orders x", b"PUB orders -5", b"PUB", b"PUB orders 5 5"]
)
def test_a_publish_without_a_size_ends_the_connection(line: bytes) -> None:
    (invalid,) = parse(line + b"\r\nPUB orders 1\r\nx")
    assert isinstance(invalid, Invalid)
    assert invalid.is_fatal


@pytest.mark.parametrize(
    "line",
    [b"POST /v1/topics/x/messages HTTP/1.1", b"GET / HTTP/1.1", b"Host: localhost",
     b"PRI * HTTP/2.0", b"\x16\x03\x01\x02\x00\x01", b"\xff\xfe"],
)  # fmt: skip
def test_another_protocol_is_cut_off_before_its_body_can_pass_for_commands(line: bytes) -> None:
    (invalid,) = parse(line + b"\r\n\r\nPUB orders 4\r\nevil")
    assert isinstance(invalid, Invalid)
    assert invalid.is_fatal


def test_an_oversized_payload_is_skipped_in_any_chunks_and_the_connection_goes_on() -> None:
    payload = b"PING\r\n" * 1_000
    stream = encode_publish("orders", payload) + b"PING\r\n"
    for size in (1, 7, 1_000, len(stream)):
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        invalid, following = parse(*chunks)
        assert isinstance(invalid, Invalid)
        assert (invalid.code, invalid.is_fatal) == ("message-too-large", False)
        assert following == Ping()


def test_a_payload_too_large_to_skip_ends_the_connection() -> None:
    (invalid,) = parse(b"PUB orders %d\r\n" % (SKIPPED_BYTES_MAX + 1), b"PING\r\n")
    assert isinstance(invalid, Invalid)
    assert invalid.is_fatal


def test_a_line_without_an_end_is_cut_at_its_limit() -> None:
    parser = CommandParser(payload_bytes_max=PAYLOAD_BYTES_MAX)
    assert parser.feed(b"A" * (LINE_BYTES_MAX - 1)) == []
    (invalid,) = parser.feed(b"A")
    assert isinstance(invalid, Invalid)
    assert (invalid.code, invalid.is_fatal) == ("invalid-request", True)
    assert parser.feed(b"\r\nPING\r\n") == []
    assert parser.pending_bytes == 0


def test_a_stream_of_nonsense_ends_after_a_few_lines() -> None:
    invalid = parse(b"?\r\n" * 1_000)
    assert len(invalid) == INVALID_LINES_MAX + 1
    assert isinstance(invalid[-1], Invalid)
    assert (invalid[-1].code, invalid[-1].is_fatal) == ("invalid-request", True)


def test_wrong_lines_between_good_ones_never_add_up() -> None:
    commands = parse(*[b"?\r\nPUB orders 1\r\nx"] * 100)
    assert len(commands) == 200
    assert len(parse(b"?\r\nPUB orders 1\r\nx" * 100)) == 200


def test_what_is_shown_of_a_wrong_line_is_short_and_printable() -> None:
    (invalid,) = parse(b"\x1b[2J" + b"z" * 500 + b"\r\n")
    assert isinstance(invalid, Invalid)
    assert invalid.text.isprintable()
    assert len(invalid.text) < 200


def test_remembered_lines_stay_few_with_ever_new_topics_and_sizes() -> None:
    parser = CommandParser(payload_bytes_max=PAYLOAD_BYTES_MAX)
    for index in range(2_000):
        (publish,) = parser.feed(encode_publish(f"t{index}", b"x" * (index % 700)))
        assert isinstance(publish, Publish)
        assert publish.target.topic == f"t{index}"
    assert len(parser._known) <= KNOWN_LINES_MAX


def test_equal_lines_of_two_partitions_are_never_mixed_up() -> None:
    stream = b"PUB a/0 1\r\n0PUB a/1 1\r\n1PUB a 1\r\n2" * 3
    assert parse(stream) == [
        Publish(Target("a", partition), [payload])
        for _ in range(3)
        for partition, payload in ((0, b"0"), (1, b"1"), (None, b"2"))
    ]


def cut(stream: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted(at % (len(stream) + 1) for at in cuts), len(stream)]
    return [stream[a:b] for a, b in pairwise(edges)]


def flat(commands: list[Command]) -> list[object]:
    """One entry per message: where a chunk ends decides how long runs are, and nothing else."""
    entries: list[object] = []
    for command in commands:
        if isinstance(command, Publish):
            entries += [(command.target, payload) for payload in command.payloads]
        else:
            entries.append(command)
    return entries


topics = st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,20}[a-z0-9])?", fullmatch=True)
partitions = st.none() | st.integers(0, 2**31 - 1)
well_formed = st.one_of(
    st.builds(encode_publish, topics, st.binary(max_size=300), partitions),
    st.builds(encode_fetch, topics, st.integers(0, 2**63 - 1), partitions),
    st.sampled_from([b"PING\r\n", b"\r\n", b"\n"]),
)
noise = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"PUB ", b"FETCH a ", b"PUB a 99999\r\n", b"PUB A 3\r\nabc"]),
    st.sampled_from([b"\r", b"A" * 1_100, b"?\r\n"]),
)


@pytest.mark.slow
@settings(max_examples=1_000, deadline=None)
@given(
    st.lists(well_formed | noise, max_size=24).map(b"".join),
    st.lists(st.integers(0), max_size=8),
)
@example(b"PUB a 3\r\nabcPUB a 3\r\nabc", list(range(22)))
def test_any_bytes_in_any_chunks_give_the_same_commands(stream: bytes, cuts: list[int]) -> None:
    assert flat(parse(*cut(stream, cuts))) == flat(parse(stream))
    assert flat(parse(*(stream[at : at + 1] for at in range(len(stream))))) == flat(parse(stream))


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.lists(st.binary(max_size=5_000), max_size=20))
def test_no_bytes_raise_or_are_held_beyond_the_limits(chunks: list[bytes]) -> None:
    parser = CommandParser(payload_bytes_max=PAYLOAD_BYTES_MAX)
    for chunk in chunks:
        parser.feed(chunk)
        assert parser.pending_bytes <= LINE_BYTES_MAX + PAYLOAD_BYTES_MAX


@given(st.lists(st.tuples(topics, partitions, st.binary(max_size=200)), max_size=10))
def test_what_is_encoded_is_parsed_back(messages: list[tuple[str, int | None, bytes]]) -> None:
    stream = b"".join(encode_publish(topic, payload, part) for topic, part, payload in messages)
    assert flat(parse(stream)) == [(Target(t, part), payload) for t, part, payload in messages]
