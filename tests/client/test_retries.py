"""Trying again: when it helps, as long as the caller waits, never doubling."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

import ibrik_client
from ibrik_client import InvalidRequest, RetryPolicy, Unavailable
from ibrik_client.retry import NO_RETRY, with_retries
from tests.client.scripted import Reply, Script, scripted_server

FAST = RetryPolicy(deadline_s=5, first_wait_s=0.001, longest_wait_s=0.01)
PROBLEM = {"Content-Type": "application/problem+json"}
FULL = Reply(
    429,
    b'{"status":429,"code":"buffer-full","detail":"full","retryable":true,"retry_after_ms":1}',
    PROBLEM,
)
PLACED = Reply(
    201,
    b'{"topic":"t","partition":1,"offset":7,"id":"x","timestamp":"","durability":"flushed"}',
)


@asynccontextmanager
async def scripted_client(
    replies: Sequence[Reply], retry: RetryPolicy
) -> AsyncIterator[tuple[Script, ibrik_client.Client]]:
    async with (
        scripted_server(replies) as server,
        ibrik_client.connect(server.url, retry=retry) as ibrik,
    ):
        yield server, ibrik


async def test_a_publish_is_repeated_with_the_same_id_until_it_is_taken() -> None:
    async with scripted_client([FULL, Reply(503, b"<html>"), PLACED], FAST) as (server, ibrik):
        ack = await ibrik.publish("t", {"n": 1}, key="ä b")
    assert (ack.partition, ack.offset) == (1, 7)
    assert len(server.requests) == 3
    assert len({headers["Idempotency-Key"] for _, _, headers, _ in server.requests}) == 1
    assert {headers["Ibrik-Key"] for _, _, headers, _ in server.requests} == {"%C3%A4%20b"}


async def test_what_cannot_help_is_not_repeated() -> None:
    refusal = Reply(
        400, b'{"status":400,"code":"invalid-request","detail":"no","retryable":false}', PROBLEM
    )
    async with scripted_client([refusal], FAST) as (server, ibrik):
        with pytest.raises(InvalidRequest, match="no"):
            await ibrik.publish("t", b"x")
    assert len(server.requests) == 1


async def test_a_wait_beyond_the_deadline_is_not_waited_for() -> None:
    later = Reply(
        429, b'{"status":429,"code":"buffer-full","retryable":true}', {"Retry-After": "99"}
    )
    async with scripted_client([later], FAST) as (_server, ibrik):
        with pytest.raises(Unavailable) as caught:
            await ibrik.publish("t", b"x")
    assert caught.value.code == "buffer-full"
    assert caught.value.retry_after_s is not None


async def test_after_the_deadline_the_last_reason_is_raised() -> None:
    policy = RetryPolicy(deadline_s=1, first_wait_s=0.001, longest_wait_s=0.005)
    async with scripted_client([FULL, Reply(is_silent=True)], policy) as (server, ibrik):
        with pytest.raises(Unavailable, match="full"):
            await ibrik.publish("t", b"x")
    assert len(server.requests) == 2


async def test_nobody_there_is_unavailable_and_names_the_address() -> None:
    async with scripted_server([PLACED]) as server:
        url = server.url
    async with ibrik_client.connect(url, retry=NO_RETRY) as ibrik:
        with pytest.raises(Unavailable, match=url):
            await ibrik.publish("t", b"x")


async def test_an_answer_cut_short_is_asked_for_again() -> None:
    cut = Reply(201, b'{"topic"', {"Content-Length": "500"}, is_cut=True)
    async with scripted_client([cut, PLACED], FAST) as (server, ibrik):
        assert (await ibrik.publish("t", b"x")).offset == 7
    assert len(server.requests) == 2


async def test_only_messages_that_may_succeed_are_sent_again() -> None:
    first = Reply(
        200,
        b'{"topic":"t","durability":"flushed","count":3,"messages":['
        b'{"index":0,"partition":0,"offset":4},'
        b'{"index":1,"code":"buffer-full","detail":"full"},'
        b'{"index":2,"code":"message-too-large","detail":"too large"}]}',
    )
    second = Reply(
        200,
        b'{"topic":"t","durability":"flushed","count":1,'
        b'"messages":[{"index":0,"partition":0,"offset":5}]}',
    )
    async with scripted_client([first, second], FAST) as (server, ibrik):
        with pytest.raises(InvalidRequest, match="too large"):
            async with ibrik.publisher("t") as publisher:
                futures = [await publisher.send({"n": n}) for n in range(3)]
    assert [f.result().offset for f in futures[:2]] == [4, 5]
    assert isinstance(futures[2].exception(), InvalidRequest)
    sent = [body.split(b"\n") for _, _, _, body in server.requests]
    assert sent[1] == sent[0][1:2]


async def test_an_answer_for_another_batch_is_never_taken_for_ours() -> None:
    short = Reply(200, b'{"topic":"t","durability":"flushed","count":0,"messages":[]}')
    async with scripted_client([short], FAST) as (_server, ibrik):
        with pytest.raises(ibrik_client.ServerFailed, match="0 results"):
            await ibrik.publish_many("t", [b"x"])


async def test_a_follower_resumes_after_a_cut_and_gives_no_message_twice() -> None:
    first = Reply(
        200,
        b'id: c0\n\ndata: {"partition":0,"offset":0,"value":1}\n\n'
        b'data: {"partition":0,"offset":1,"value":2}\nid: c2\n\n'
        b'data: {"partition":0,"offset":2,"value":3}\n\n',
        {"Content-Type": "text/event-stream"},
        is_cut=True,
    )
    second = Reply(
        200,
        b'data: {"partition":0,"offset":2,"value":3}\n\n'
        b'data: {"partition":0,"offset":3,"value":4}\nid: c4\n\n',
        {"Content-Type": "text/event-stream"},
    )
    found = []
    async with scripted_client([first, second], FAST) as (server, ibrik):
        async for message in ibrik.follow("t", "earliest"):
            found.append(message.offset)
            if message.offset == 3:
                break
    assert found == [0, 1, 2, 3]
    assert "from=earliest" in server.requests[0][1]
    assert server.requests[1][2]["Last-Event-ID"] == "c2"
    assert "?" not in server.requests[1][1]


async def test_cancelling_stops_a_wait_at_once() -> None:
    never = RetryPolicy(deadline_s=60, first_wait_s=30, longest_wait_s=30)
    started = asyncio.Event()

    async def attempt() -> None:
        started.set()
        raise Unavailable("later")

    async with asyncio.TaskGroup() as tasks:
        waiting = tasks.create_task(with_retries(never, attempt))
        await started.wait()
        waiting.cancel()
    assert waiting.cancelled()
