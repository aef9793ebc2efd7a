"""The load generators count what a server answered, and refuse to report what went wrong."""

import asyncio
import contextlib
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.load import Load, Shape, _generate, parse_wrk, run_generator

WRK = """\
Running 3s test @ http://127.0.0.1:8080/v1/topics/t/messages
  1 threads and 32 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency     1.90ms    1.11ms  30.17ms   97.00%
    Req/Sec    17.63k     1.03k   18.94k    80.00%
  Latency Distribution
     50%    1.76ms
     75%    1.95ms
     90%  950.00us
     99%    3.95ms
  52809 requests in 3.00s, 14.10MB read
Requests/sec:  17603.11
Transfer/sec:      4.70MB
"""


@contextmanager
def line_server(reply: bytes) -> Iterator[int]:
    """Answers each line with `reply`, in a thread of its own; yields its port."""

    class Lines(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            # A generator ends by closing its connections, read or unread.
            with contextlib.suppress(ConnectionError):
                while received := self.request.recv(1 << 16):
                    self.request.sendall(reply * received.count(b"\n"))

        def finish(self) -> None:
            with contextlib.suppress(ConnectionError):
                super().finish()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Lines) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def test_the_asyncio_generator_counts_replies() -> None:
    with line_server(b"OK 1\r\n") as port:
        load = asyncio.run(_generate(port, [b"PUB\n"], Shape(2, 4, 0.2, 0.05), 1))
    assert_plausible(load)


def test_the_generator_counts_replies_of_several_lines() -> None:
    with line_server(b"$3\r\n1-1\r\n") as port:
        load = run_generator(port, [b"XADD\n"], Shape(2, 4, 0.2, 0.05), newlines_per_reply=2)
    assert_plausible(load)


def test_a_refusal_under_load_is_no_result() -> None:
    with (
        line_server(b"ERR buffer-full\r\n") as port,
        pytest.raises(AssertionError, match="refusals under load"),
    ):
        run_generator(port, [b"PUB\n"], Shape(1, 1, 0.1, 0.0))


def assert_plausible(load: Load) -> None:
    assert load.replies > 10
    assert load.rate == pytest.approx(load.replies / 0.2, rel=0.5)
    assert 0 <= load.p50_ms <= load.p99_ms <= load.p999_ms


def test_the_report_of_wrk_is_read() -> None:
    load = parse_wrk(WRK)
    assert (load.rate, load.replies) == (17603.11, 52809)
    assert (load.p50_ms, load.p99_ms) == (1.76, 3.95)
    assert load.bytes_per_second == 4.70 * 2**20


@pytest.mark.parametrize(
    "trouble", ["Non-2xx or 3xx responses: 7", "Socket errors: connect 0, read 3, write 0"]
)
def test_trouble_that_wrk_met_is_no_result(trouble: str) -> None:
    with pytest.raises(RuntimeError, match=trouble.split(":", maxsplit=1)[0]):
        parse_wrk(f"{WRK}  {trouble}\n")
