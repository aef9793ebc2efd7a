"""Delivery over TCP: one message, one answer; anything else ends the connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from ibrik_broker.delivery.egress import Egress
from tests.broker.delivery.senders.rig import Names, parcel, tcp_sender


@dataclass
class Program:
    """Reads messages and answers each with the next of `replies`; `{}` stands for its offset."""

    replies: list[bytes]
    messages: list[tuple[int, bytes]] = field(default_factory=list)
    connection_count: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        try:
            while line := await reader.readline():
                verb, offset, size = line.split()
                assert verb == b"MSG"
                payload = await reader.readexactly(int(size) + 2)
                assert payload.endswith(b"\r\n")
                self.messages.append((int(offset), payload[:-2]))
                reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
                if not reply:
                    break
                writer.write(reply.replace(b"{}", offset))
        except (ConnectionError, asyncio.CancelledError, asyncio.IncompleteReadError):
            pass
        writer.close()


@asynccontextmanager
async def program(*replies: bytes) -> AsyncIterator[Program]:
    running = Program(list(replies or (b"OK {}\r\n",)))
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()


async def test_messages_arrive_byte_for_byte_over_one_connection() -> None:
    bodies = [b"\r\nOK 1\r\n", b"", bytes(range(256)) * 1000]
    async with program() as target, tcp_sender(target.port) as sender:
        for offset, body in enumerate(bodies):
            answer = await sender.send(parcel(body, offset=offset))
            assert (answer.status, answer.error) == (None, None)
    assert target.messages == list(enumerate(bodies))
    assert target.connection_count == 1


async def test_a_message_without_a_value_is_empty() -> None:
    async with program() as target, tcp_sender(target.port) as sender:
        assert (await sender.send(parcel(None))).error is None
    assert target.messages == [(42, b"")]


async def test_messages_at_once_have_a_connection_each() -> None:
    async with program() as target, tcp_sender(target.port) as sender:
        answers = await asyncio.gather(*(sender.send(parcel(offset=n)) for n in range(5)))
        await sender.send(parcel())
    assert [answer.error for answer in answers] == [None] * 5
    assert target.connection_count == 5


async def test_an_error_of_the_program_is_passed_on_and_the_connection_goes_on() -> None:
    async with (
        program(b"ERR no-stock the \x1b[31mshelf is empty\r\n", b"OK {}\r\n") as target,
        tcp_sender(target.port) as sender,
    ):
        answer = await sender.send(parcel())
        assert (await sender.send(parcel())).error is None
    assert answer.error == "refused"
    assert answer.detail == "answered ERR no-stock: the ?[31mshelf is empty"
    assert target.connection_count == 1


@pytest.mark.parametrize(
    "reply",
    [b"OK 7\r\n", b"junk\r\n", b"PONG\r\n", b"MSG 42 3\r\nabc\r\n", b"x" * 5_000, b"OK\r\n", b"\n"],
)
async def test_another_answer_ends_the_connection(reply: bytes) -> None:
    async with program(reply, b"OK {}\r\n") as target, tcp_sender(target.port) as sender:
        assert (await sender.send(parcel())).error == "broken-answer"
        assert (await sender.send(parcel())).error is None
    assert target.connection_count == 2


async def test_a_program_that_hangs_ends_at_the_timeout() -> None:
    async with (
        program(b"OK") as target,
        tcp_sender(target.port, timeout="1s") as sender,
    ):
        answer = await sender.send(parcel())
    assert answer.error == "timeout"
    assert 950 <= answer.duration_ms < 1_900


async def test_a_program_that_hangs_up_is_a_lost_connection() -> None:
    async with program(b"", b"OK {}\r\n") as target, tcp_sender(target.port) as sender:
        assert (await sender.send(parcel())).error == "connect-failed"
        assert (await sender.send(parcel())).error is None


async def test_a_connection_that_was_closed_meanwhile_is_not_used() -> None:
    async with program() as target, tcp_sender(target.port) as sender:
        await sender.send(parcel())
        (idle,) = sender._idle
        idle.reader.feed_eof()
        assert (await sender.send(parcel())).error is None
    assert target.connection_count == 2


async def test_a_closed_port_and_an_unknown_name_are_told_apart() -> None:
    async with program() as target:
        port = target.port
    async with tcp_sender(port) as sender:
        assert (await sender.send(parcel())).error == "connect-failed"
    async with tcp_sender(port, host="nowhere", names=Names()) as sender:
        assert (await sender.send(parcel())).error == "dns-failed"


async def test_the_guard_judges_each_connection() -> None:
    names = Names(rebinding=["127.0.0.1", "169.254.169.254"])
    async with (
        program(b"junk\r\n") as target,
        tcp_sender(
            target.port, host="rebinding", names=names, policy=Egress(allow_loopback=True)
        ) as sender,
    ):
        assert (await sender.send(parcel())).error == "broken-answer"
        answer = await sender.send(parcel())
    assert (answer.error, target.connection_count) == ("egress-denied", 1)
    assert "metadata" in answer.detail
