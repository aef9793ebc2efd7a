"""The end of a broker: no acknowledgement fails on SIGTERM, none is given after a failed write."""

import asyncio
import json
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ibrik_wire import Failed, Published, Reply, ReplyParser, encode_fetch, encode_publish
from tests.support.broker import STOP_TIMEOUT_S, Broker, running_broker

pytestmark = pytest.mark.slow

FILE_BYTES_MAX = 2 * 2**20


class Producer(asyncio.Protocol):
    """Keeps `window` publishes in flight until the broker ends the stream."""

    def __init__(self, window: int, enough: int) -> None:
        self.replies: list[Reply] = []
        self.has_enough = asyncio.Event()
        self.ended: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        self._window = window
        self._enough = enough
        self._parser = ReplyParser()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(encode_publish("orders", b"x" * 100) * self._window)

    def data_received(self, data: bytes) -> None:
        replies = self._parser.feed(data)
        self.replies += replies
        self._transport.write(encode_publish("orders", b"x" * 100) * len(replies))
        if len(self.replies) >= self._enough:
            self.has_enough.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(exc)


async def test_sigterm_under_load_fails_no_acknowledgement(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_DEV="true") as broker:
        loop = asyncio.get_running_loop()
        producers = []
        for _ in range(4):
            _, producer = await loop.create_connection(
                lambda: Producer(window=64, enough=2_000), *broker.tcp_address
            )
            producers.append(producer)
        for producer in producers:
            await producer.has_enough.wait()
        broker.process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(STOP_TIMEOUT_S):
            for producer in producers:
                assert await producer.ended is None, "the stream ended in order, not by a reset"
        assert await asyncio.to_thread(broker.process.wait, STOP_TIMEOUT_S) == 0
    offsets = []
    for producer in producers:
        own = [reply.offset for reply in producer.replies if isinstance(reply, Published)]
        assert own == sorted(own)
        offsets += own
        failures = {reply.code for reply in producer.replies if isinstance(reply, Failed)}
        assert failures <= {"shutting-down"}
    with running_broker(tmp_path) as broker:
        kept = end_of_log(broker)
    # Every acknowledged offset is kept, and nothing is kept that was not acknowledged.
    assert sorted(offsets) == list(range(kept))


def end_of_log(broker: Broker) -> int:
    """The offset after the last record, as the broker names it."""
    (reply,) = converse(broker, encode_fetch("orders", 2**62))
    assert isinstance(reply, Failed)
    return int(reply.text.split()[1])


def converse(broker: Broker, stream: bytes) -> Iterator[Reply]:
    parser = ReplyParser()
    with socket.create_connection(broker.tcp_address, timeout=STOP_TIMEOUT_S) as connection:
        connection.sendall(stream)
        with suppress(OSError):  # The broker may be gone already, and have answered before.
            connection.shutdown(socket.SHUT_WR)
        while received := connection.recv(65_536):
            yield from parser.feed(received)


def test_a_clean_stop_leaves_nothing_to_recover(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_DEV="true") as broker:
        list(converse(broker, encode_publish("orders", b"x") * 100))
        assert broker.terminate() == 0
    assert list((tmp_path / "data" / "topics").glob("*/0/clean"))


def test_an_idle_client_does_not_hold_the_stop_up(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_SHUTDOWN__DRAIN_MS="60s") as broker:
        with socket.create_connection(broker.tcp_address, timeout=STOP_TIMEOUT_S) as idle:
            broker.process.send_signal(signal.SIGTERM)
            assert idle.recv(1) == b"", "the broker ends its half of an idle stream"
            idle.close()
        assert broker.process.wait(STOP_TIMEOUT_S) == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with (
        running_broker(tmp_path, IBRIK_DEV="true", IBRIK_SHUTDOWN__DRAIN_MS="60s") as broker,
        socket.create_connection(broker.tcp_address, timeout=STOP_TIMEOUT_S) as stubborn,
        socket.create_connection(broker.tcp_address, timeout=STOP_TIMEOUT_S) as idle,
    ):
        # More answers than all buffers hold, and nobody reads them: draining cannot end.
        stubborn.sendall(encode_publish("orders", b"x" * 1_000_000))
        stubborn.sendall(encode_fetch("orders", 0) * 100)
        assert stubborn.recv(6) == b"OK 0\r\n"
        broker.process.send_signal(signal.SIGTERM)
        assert idle.recv(1) == b"", "draining has begun"
        broker.process.send_signal(signal.SIGINT)
        assert broker.process.wait(STOP_TIMEOUT_S) == 128 + signal.SIGINT


def test_a_write_that_fails_ends_the_broker_and_is_never_acknowledged(tmp_path: Path) -> None:
    """The kernel refuses to let a file grow beyond the limit: EFBIG, which no retry can mend."""
    limited = (
        sys.executable,
        "-c",
        "import os, resource, sys;"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({FILE_BYTES_MAX}, {FILE_BYTES_MAX}));"
        "os.execv(sys.executable, [sys.executable, '-m', 'ibrik_broker'])",
    )
    message = encode_publish("orders", b"x" * 100_000)
    with running_broker(tmp_path, limited, IBRIK_DEV="true") as broker:
        published, refused = 0, 0
        for reply in (each for _ in range(40) for each in converse_if_there(broker, message)):
            if isinstance(reply, Published):
                assert refused == 0, "nothing is acknowledged after the failure"
                published += 1
            else:
                assert isinstance(reply, Failed)
                # The first answer names the failure; later ones may come before the doors close.
                assert reply.code in {"storage-failed", "shutting-down" if refused else ""}
                refused += 1
        assert broker.process.wait(STOP_TIMEOUT_S) == 74
    lines = [json.loads(line) for line in broker.errors.read_text().splitlines()]
    assert any(line["message"] == "storage failed" for line in lines)
    assert published > 0
    with running_broker(tmp_path) as broker:
        assert end_of_log(broker) >= published


def converse_if_there(broker: Broker, stream: bytes) -> list[Reply]:
    try:
        return list(converse(broker, stream))
    except ConnectionError:
        return []
