"""Server-sent events: what the standard says, in any chunks."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_client.errors import ServerFailed
from ibrik_client.sse import MAX_EVENT_BYTES, Event, EventParser

STREAM = (
    b"id: a\n\n: heartbeat\n\ndata: 1\n\ndata: two\ndata: lines\r\nid: b\n\n"
    b'event: gap\ndata: {"from":1}\nid: c\n\nretry: 700\nevent: goodbye\ndata:\n\n'
)
EVENTS = [
    Event("message", "1", "a"),
    Event("message", "two\nlines", "b"),
    Event("gap", '{"from":1}', "c"),
    Event("goodbye", "", "c"),
]


def test_a_stream_becomes_events() -> None:
    parser = EventParser()
    assert list(parser.feed(STREAM)) == EVENTS
    assert parser.retry_ms == 700


@pytest.mark.slow
@given(st.lists(st.integers(0, len(STREAM)), max_size=12))
def test_chunks_do_not_matter(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    parser = EventParser()
    found = [e for a, b in pairwise(places) for e in parser.feed(STREAM[a:b])]
    assert found == EVENTS


def test_an_event_without_data_only_moves_the_last_id() -> None:
    parser = EventParser()
    assert list(parser.feed(b"id: 7\n\n")) == []
    assert parser.last_id == "7"


def test_a_torn_event_is_no_event() -> None:
    parser = EventParser()
    assert list(parser.feed(b"data: half")) == []
    assert list(parser.resumed().feed(b"\n\n")) == []


def test_an_endless_event_is_refused() -> None:
    parser = EventParser()
    with pytest.raises(ServerFailed, match="larger than"):
        list(parser.feed(b"data: " + b"x" * MAX_EVENT_BYTES))
