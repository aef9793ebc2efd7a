"""The sink counts what it answers, keeps a latency by `ce-time`, and lets /hang wait for ever."""

import socket
import time
from collections.abc import Iterator

import pytest

from bench.bare_client import headers
from bench.sink import Sink, running_sink
from ibrik_api.timestamps import format_timestamp


@pytest.fixture
def sink() -> Iterator[Sink]:
    with running_sink() as running:
        yield running


def request(path: str, *headers: str, body: bytes = b"") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: sink", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def test_each_whole_request_is_answered_and_counted(sink: Sink) -> None:
    whole = request("/taken", body=b"x" * 1024)
    with socket.create_connection(("127.0.0.1", sink.port)) as client:
        client.sendall(whole + whole + whole[:100])
        answers = b""
        while answers.count(b"\r\n\r\n") < 2:
            answers += client.recv(4_096)
        assert sink.look().taken == 2
        client.sendall(whole[100:])
        assert client.recv(4_096) == b"HTTP/1.1 204 No Content\r\n\r\n"
    seen = sink.look()
    assert (seen.taken, seen.held, seen.timed) == (3, 0, 0)
    assert 0 < seen.first_s <= seen.last_s <= time.monotonic()
    sink.reset()
    assert sink.look().taken == 0


def test_a_latency_counts_from_the_time_of_the_event(sink: Sink) -> None:
    ago = format_timestamp(time.time_ns() // 10**6 - 2_000)
    with socket.create_connection(("127.0.0.1", sink.port)) as client:
        client.sendall(request("/taken", f"ce-time: {ago}"))
        client.recv(4_096)
    seen = sink.look()
    assert seen.timed == 1
    assert 2_000 <= seen.p50_ms == seen.p99_ms < 7_000


def test_what_hangs_is_read_and_not_answered(sink: Sink) -> None:
    with socket.create_connection(("127.0.0.1", sink.port)) as client:
        client.sendall(request("/hang/1", body=b"x"))
        while not (seen := sink.look()).held:
            pass
        assert (seen.taken, seen.held) == (0, 1)
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(1)


def test_the_bare_client_sends_the_headers_of_a_delivery() -> None:
    names = {name.lower() for name in headers()}
    assert {"webhook-id", "ce-time", "ibrik-offset", "idempotency-key", "user-agent"} <= names
