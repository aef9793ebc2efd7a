"""Replies leave in the order of the commands, whatever order they become known in."""

from ibrik_broker.tcp.pipeline import Pipeline
from ibrik_wire import Fetch, Target

FETCH = Fetch(Target("orders", None), 0)


def test_a_reply_waits_for_those_before_it() -> None:
    pipeline = Pipeline()
    first, second, third = pipeline.open(), pipeline.open(), pipeline.open()
    third.reply, second.reply = b"3", b"2"
    assert pipeline.take_replies() == b""
    first.reply = b"1"
    assert pipeline.take_replies() == b"123"
    assert not pipeline


def test_what_is_known_at_the_head_goes_out_joined_and_the_rest_stays() -> None:
    pipeline = Pipeline()
    pipeline.open(b"1")
    pipeline.open(b"2")
    pipeline.open()
    assert pipeline.has_reply
    assert pipeline.take_replies() == b"12"
    assert not pipeline.has_reply
    assert pipeline


def test_a_fetch_is_due_only_when_all_before_it_is_answered() -> None:
    pipeline = Pipeline()
    publish = pipeline.open()
    fetch = pipeline.open(fetch=FETCH)
    assert pipeline.next_fetch() is None
    publish.reply = b"OK 0\r\n"
    pipeline.take_replies()
    assert pipeline.next_fetch() is fetch
    fetch.reply = b"MSG"
    assert pipeline.next_fetch() is None


def test_nothing_waits_after_the_client_left() -> None:
    pipeline = Pipeline()
    slot = pipeline.open()
    pipeline.clear()
    slot.reply = b"late"
    assert pipeline.take_replies() == b""
