"""Replies: encoded by the broker, parsed by clients, in any chunks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibrik_wire import (
    Failed,
    Fetched,
    Pong,
    Published,
    Reply,
    ReplyParser,
    encode_failure,
    encode_fetched,
    encode_pong,
    encode_published,
)
from ibrik_wire.replies import LINE_BYTES_MAX


def parse(*chunks: bytes) -> list[Reply]:
    parser = ReplyParser()
    return [reply for chunk in chunks for reply in parser.feed(chunk)]


def test_replies_look_as_documented() -> None:
    assert encode_published(7, 2) == b"OK 7\r\nOK 8\r\n"
    assert encode_fetched(3, b"abc") == b"MSG 3 3\r\nabc\r\n"
    assert encode_failure("unknown-topic", "There is no topic.") == (
        b"ERR unknown-topic There is no topic.\r\n"
    )
    assert encode_pong() == b"PONG\r\n"


def test_replies_are_parsed_back_in_order() -> None:
    stream = b"OK 0\r\nOK 1\r\nMSG 5 4\r\n\r\nOKPONG\r\n".replace(b"OKPONG", b"OK\r\nPONG")
    stream += encode_failure("buffer-full", "Send again later.")
    assert parse(stream) == [
        Published(0),
        Published(1),
        Fetched(5, b"\r\nOK"),
        Pong(),
        Failed("buffer-full", "Send again later."),
    ]


def test_a_failure_is_one_line_whatever_its_text() -> None:
    line = encode_failure("internal", "a\r\nOK 7\r\n" + "ü" * 2_000)
    assert len(line) <= LINE_BYTES_MAX
    (failed,) = parse(line)
    assert isinstance(failed, Failed)
    assert failed.text.startswith("a OK 7 ü")


@pytest.mark.parametrize(
    "stream",
    [
        b"HTTP/1.1 400 Bad Request\r\n",
        b"OK\r\n",
        b"OK x\r\n",
        b"MSG 1\r\n",
        b"MSG 1 x\r\n",
        b"MSG 1 99999999999\r\n",
        b"\r\n",
        b"A" * 2_000,
    ],
)
def test_another_protocol_is_a_fatal_reply_and_then_silence(stream: bytes) -> None:
    parser = ReplyParser()
    (failed,) = parser.feed(stream)
    assert isinstance(failed, Failed)
    assert failed.is_fatal
    assert parser.feed(b"OK 1\r\n") == []


replies = st.one_of(
    st.builds(encode_published, st.integers(0, 2**62), st.integers(1, 5)),
    st.builds(encode_fetched, st.integers(0, 2**62), st.binary(max_size=100)),
    st.builds(encode_failure, st.just("internal"), st.text(max_size=50)),
    st.just(b"PONG\r\n"),
    st.binary(max_size=20),
)


@pytest.mark.slow
@settings(max_examples=500, deadline=None)
@given(st.lists(replies, max_size=10).map(b"".join), st.integers(1, 50))
def test_any_bytes_in_any_chunks_give_the_same_replies(stream: bytes, size: int) -> None:
    assert parse(*(stream[at : at + size] for at in range(0, len(stream), size))) == parse(stream)
