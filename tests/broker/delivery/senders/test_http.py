"""One attempt over HTTP: what goes out, what each answer becomes, what ends it."""

import asyncio
import gzip
from pathlib import Path

import pytest

from ibrik_broker.delivery.senders import http_client
from tests.broker.delivery.senders.rig import (
    NOW_MS,
    OK,
    Names,
    endpoint,
    forever,
    http_sender,
    parcel,
)


def reply(status: int, headers: str = "", body: bytes = b"") -> bytes:
    return f"HTTP/1.1 {status} X\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def test_the_body_goes_out_byte_for_byte() -> None:
    body = bytes(range(256)) * 4
    async with endpoint() as target, http_sender(target) as sender:
        answer = await sender.send(parcel(body))
    (request,) = target.requests
    assert (answer.status, answer.error) == (204, None)
    assert request.line == "POST /hook HTTP/1.1"
    assert request.body == body
    assert request.headers["host"] == f"127.0.0.1:{target.port}"
    assert request.headers["content-type"] == "application/octet-stream"
    assert request.headers["accept-encoding"] == "identity"
    assert "cookie" not in request.headers


@pytest.mark.parametrize("value", [None, b""])
async def test_a_message_without_a_value_has_an_empty_body(value: bytes | None) -> None:
    async with endpoint() as target, http_sender(target) as sender:
        assert (await sender.send(parcel(value))).error is None
    assert target.requests[0].headers["content-length"] == "0"


async def test_a_body_of_megabytes_arrives_whole() -> None:
    body = b"0123456789abcdef" * 200_000
    async with endpoint() as target, http_sender(target) as sender:
        assert (await sender.send(parcel(body))).error is None
    assert target.requests[0].body == body


async def test_method_and_headers_are_those_of_the_destination() -> None:
    http = {"method": "PATCH", "headers": {"X-Shop": "1", "Host": "evil", "ce-id": "evil"}}
    async with endpoint() as target, http_sender(target, path="/a?b=c%20d", http=http) as sender:
        await sender.send(parcel())
    (request,) = target.requests
    assert request.line == "PATCH /a?b=c%20d HTTP/1.1"
    assert request.headers["x-shop"] == "1"
    assert request.headers["host"] == f"127.0.0.1:{target.port}"
    assert request.headers["ce-id"] == "0b5b8e4c-0000-4000-8000-000000000001-3-42"


async def test_a_service_is_called_by_its_name() -> None:
    async with endpoint() as target:
        service = {"name": "erp", "port": target.port, "path": "/in", "method": "PUT"}
        names = Names(erp=["127.0.0.1"])
        async with http_sender("", names=names, service=service) as sender:
            assert (await sender.send(parcel())).error is None
    assert target.requests[0].line == "PUT /in HTTP/1.1"
    assert target.requests[0].headers["host"] == f"erp:{target.port}"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_every_2xx_is_taken(status: int) -> None:
    async with endpoint(reply(status)) as target, http_sender(target) as sender:
        answer = await sender.send(parcel())
    assert (answer.status, answer.error) == (status, None)


@pytest.mark.parametrize("status", [400, 404, 410, 429, 500, 503])
async def test_other_statuses_are_errors_with_what_was_said(status: int) -> None:
    async with endpoint(reply(status, body=b"no")) as target, http_sender(target) as sender:
        answer = await sender.send(parcel())
    assert (answer.status, answer.error, answer.body) == (status, "status", b"no")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_never_followed(status: int) -> None:
    async with endpoint() as other:
        location = f"Location: http://127.0.0.1:{other.port}/login?next=x\r\n"
        async with endpoint(reply(status, location)) as target, http_sender(target) as sender:
            answer = await sender.send(parcel())
    assert (answer.status, answer.error) == (status, "redirect")
    assert "/login'" in answer.detail, "where it leads, without the query"
    assert (len(target.requests), other.connection_count) == (1, 0)


async def test_retry_after_is_read() -> None:
    async with endpoint(reply(429, "Retry-After: 7\r\n")) as target, http_sender(target) as sender:
        assert (await sender.send(parcel())).retry_after_ms == 7_000


async def test_a_connection_is_used_again() -> None:
    async with endpoint(reply(200, body=b"done")) as target, http_sender(target) as sender:
        for offset in range(3):
            assert (await sender.send(parcel(offset=offset))).error is None
    assert (target.connection_count, len(target.requests)) == (1, 3)


async def test_too_many_idle_connections_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "IDLE_CONNECTIONS_MAX", 2)
    async with endpoint() as target, http_sender(target) as sender:
        await asyncio.gather(*(sender.send(parcel(offset=n)) for n in range(4)))
        await sender.send(parcel())
    assert target.requests[-1].headers["connection"] == "close"
    assert "connection" not in target.requests[0].headers


@pytest.mark.parametrize("start", [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\n\r\nsome"])
async def test_an_endpoint_that_hangs_ends_at_the_timeout(start: bytes) -> None:
    async def hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(start)
        await forever(reader, writer)

    async with endpoint(hang) as target, http_sender(target, timeout="1s") as sender:
        answer = await sender.send(parcel())
    assert (answer.error, answer.detail) == ("timeout", "no whole answer within 1 s")
    assert 950 <= answer.duration_ms < 1_900


async def test_a_dripping_answer_ends_at_the_timeout() -> None:
    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        tick = asyncio.Event()
        while not writer.is_closing():
            writer.write(b"x")
            asyncio.get_running_loop().call_later(0.05, tick.set)
            await tick.wait()
            tick.clear()

    async with endpoint(drip) as target, http_sender(target, timeout="1s") as sender:
        assert (await sender.send(parcel())).error == "timeout"


async def test_of_an_endless_answer_the_beginning_is_read() -> None:
    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()

    async with endpoint(pour) as target, http_sender(target) as sender:
        answer = await sender.send(parcel())
        assert (await sender.send(parcel())).error is None
    assert (answer.status, answer.error, answer.body) == (200, None, b"x" * 4096)
    assert target.connection_count == 2, "a connection with an unread answer is not used again"


async def test_a_compressed_answer_stays_compressed() -> None:
    bomb = gzip.compress(bytes(20_000_000))
    answer = reply(500, "Content-Encoding: gzip\r\n", bomb)
    async with endpoint(answer) as target, http_sender(target) as sender:
        got = await sender.send(parcel())
    assert (got.status, got.body) == (500, bomb[:4096])


@pytest.mark.parametrize(
    "answer",
    [
        b"junk\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
    ids=["junk", "long header", "many headers", "two lengths", "bad chunk"],
)
async def test_what_is_no_http_answer_is_called_so(answer: bytes) -> None:
    async with endpoint(answer) as target, http_sender(target, timeout="2s") as sender:
        assert (await sender.send(parcel())).error == "broken-answer"


async def test_an_answer_cut_short_is_no_success() -> None:
    async def cut(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        await writer.drain()
        writer.close()

    async with endpoint(cut) as target, http_sender(target) as sender:
        assert (await sender.send(parcel())).error == "broken-answer"


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_connection_reset_is_one_attempt(method: str) -> None:
    async def reset(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async with endpoint() as target, http_sender(target, http={"method": method}) as sender:
        assert (await sender.send(parcel())).error is None
        target.answer = reset
        # The open connection still answers; the one after it is reset, and not tried again.
        await sender.send(parcel())
        assert (await sender.send(parcel())).error == "connect-failed"
    assert len(target.requests) == 3


async def test_a_closed_port_and_an_unknown_name_are_told_apart() -> None:
    async with endpoint() as target:
        port = target.port
    async with http_sender(f"http://127.0.0.1:{port}/") as sender:
        answer = await sender.send(parcel())
    assert (answer.error, answer.status) == ("connect-failed", None)
    async with http_sender("http://nowhere/", names=Names()) as sender:
        answer = await sender.send(parcel())
    assert (answer.error, answer.detail) == ("dns-failed", "nowhere has no address")


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    async with endpoint() as target, http_sender(target) as sender:
        assert (await sender.send(parcel())).error is None


async def test_cookies_are_forgotten() -> None:
    async with (
        endpoint(reply(200, "Set-Cookie: a=b\r\n")) as target,
        http_sender(target) as sender,
    ):
        await sender.send(parcel())
        await sender.send(parcel())
    assert "cookie" not in target.requests[1].headers


# --- secrets --------------------------------------------------------------------------------------


async def test_secrets_are_sent_and_rotate_without_a_restart(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    now_ms = [NOW_MS]
    auth = {"bearer": {"secretRef": {"file": "token"}}}
    async with (
        endpoint() as target,
        http_sender(target, auth=auth, folder=tmp_path, now_ms=lambda: now_ms[0]) as sender,
    ):
        await sender.send(parcel())
        (tmp_path / "token").write_text("second")
        await sender.send(parcel())
        now_ms[0] += 5_000
        await sender.send(parcel())
    sent = [request.headers["authorization"] for request in target.requests]
    assert sent == ["Bearer first", "Bearer first", "Bearer second"]


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("first")
    auth = {"basic": {"username": "käthe", "secretRef": {"file": "password"}}}
    async with (
        endpoint(reply(401)) as target,
        http_sender(target, auth=auth, folder=tmp_path) as sender,
    ):
        await sender.send(parcel())
        (tmp_path / "password").write_text("second")
        await sender.send(parcel())
    assert [request.headers["authorization"] for request in target.requests] == [
        "Basic a8OkdGhlOmZpcnN0",
        "Basic a8OkdGhlOnNlY29uZA==",
    ]


async def test_a_missing_secret_sends_nothing_and_is_named(tmp_path: Path) -> None:
    auth = {"bearer": {"secretRef": {"name": "erp", "key": "token"}}}
    async with endpoint() as target, http_sender(target, auth=auth, folder=tmp_path) as sender:
        answer = await sender.send(parcel())
        assert answer.error == "credential-missing"
        assert "the key token of the Secret shop/erp" in answer.detail
        (tmp_path / "shop_erp_token").write_text("there now")
        assert (await sender.send(parcel())).error is None
    assert len(target.requests) == 1


@pytest.mark.parametrize("content", [b"two\nlines", b"caf\xc3\xa9", b"\xff"])
async def test_a_token_that_fits_no_header_is_not_sent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "token").write_bytes(content)
    auth = {"bearer": {"secretRef": {"file": "token"}}}
    async with endpoint() as target, http_sender(target, auth=auth, folder=tmp_path) as sender:
        answer = await sender.send(parcel())
    assert (answer.error, target.requests) == ("credential-missing", [])
    assert "lines" not in answer.detail


async def test_an_endpoint_that_repeats_our_secrets_does_not_publish_them(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hunter2")
    auth = {"bearer": {"secretRef": {"file": "token"}}}
    for status in (500, 302):
        echo = reply(status, "Location: /hunter2\r\n", b"you sent Bearer hunter2")
        async with (
            endpoint(echo) as target,
            http_sender(target, auth=auth, folder=tmp_path) as sender,
        ):
            answer = await sender.send(parcel())
        assert "hunter2" not in repr(answer)
        assert answer.body == b"you sent Bearer [secret]"


async def test_an_unforeseen_error_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    broken = parcel()
    broken.record = broken.record._replace(key="no bytes")  # type: ignore[arg-type]
    async with endpoint(OK) as target, http_sender(target) as sender:
        answer = await sender.send(broken)
    assert answer.error == "crashed"
    assert "sender broke" in caplog.text
