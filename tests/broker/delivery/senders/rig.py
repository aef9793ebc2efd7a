"""Endpoints that behave as badly as a test asks, senders that speak to them, names that change."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ibrik_api.resources.destination import Destination
from ibrik_broker.delivery.credentials import Credentials
from ibrik_broker.delivery.egress import Egress
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.resolver import AddressInfo, Resolver
from ibrik_broker.delivery.senders.http import HttpSender
from ibrik_broker.delivery.senders.http_client import HttpClient
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.delivery.senders.tcp import TcpSender
from ibrik_log.record import Headers, StoredRecord

NOW_MS = 1_700_000_000_999
ON_LOOPBACK = Egress(allow_loopback=True, allow_private=True)
OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Request(NamedTuple):
    line: str
    headers: dict[str, str]
    body: bytes


Behave = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Endpoint:
    """A server on a free port: what it answers, what it got, how many connections it saw."""

    answer: bytes | Behave = OK
    requests: list[Request] = field(default_factory=list)
    connection_count: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connection_count += 1
        try:
            while (request := await _read_request(reader)) is not None:
                self.requests.append(request)
                if isinstance(self.answer, bytes):
                    writer.write(self.answer)
                    await writer.drain()
                else:
                    await self.answer(reader, writer)
                    break
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()


async def _read_request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    line, *lines = head.decode("latin-1").split("\r\n")[:-2]
    headers = {name.lower(): value for name, value in (each.split(": ", 1) for each in lines)}
    if "content-length" in headers:
        body = await reader.readexactly(int(headers["content-length"]))
    else:
        body = b""
    return Request(line, headers, body)


@asynccontextmanager
async def endpoint(answer: bytes | Behave = OK, tls: Any = None) -> AsyncIterator[Endpoint]:
    running = Endpoint(answer)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0, ssl=tls, limit=2**22)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()


async def forever(_reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


class Names(Resolver):
    """A DNS that a test writes: each lookup of a name takes the next of its answers."""

    def __init__(self, **names: Sequence[str]) -> None:
        super().__init__()
        self._names = {name: list(addresses) for name, addresses in names.items()}

    async def lookup(
        self, host: str, port: int, family: int = socket.AF_UNSPEC
    ) -> Sequence[AddressInfo]:
        known = self._names.get(host)
        if not known:
            raise socket.gaierror(socket.EAI_NONAME, "no such name")
        address = known.pop(0) if len(known) > 1 else known[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return [(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port))]


@asynccontextmanager
async def http_sender(
    target: Endpoint | str,
    *,
    path: str = "/hook",
    policy: Egress = ON_LOOPBACK,
    names: Names | None = None,
    folder: Path = Path("/nonexistent"),
    now_ms: Callable[[], int] = lambda: NOW_MS,
    **fields: Any,
) -> AsyncIterator[HttpSender]:
    """A sender to an endpoint; `fields` are those of the destination."""
    url = target if isinstance(target, str) else f"http://127.0.0.1:{target.port}{path}"
    if "service" not in fields:
        fields["http"] = {"url": url, **fields.pop("http", {})}
    destination = Destination.model_validate(fields)
    client = HttpClient(Guard(policy, resolver=names))
    sender = HttpSender(
        destination,
        client=client,
        credentials=Credentials(folder, {}),
        namespace="shop",
        clock_ms=now_ms,
    )
    try:
        yield sender
    finally:
        await sender.close()
        await client.close()
        await client.guard.close()


@asynccontextmanager
async def tcp_sender(
    port: int,
    *,
    host: str = "127.0.0.1",
    policy: Egress = ON_LOOPBACK,
    names: Names | None = None,
    folder: Path = Path("/nonexistent"),
    tls: bool = False,
    **fields: Any,
) -> AsyncIterator[TcpSender]:
    destination = {
        "tcp": {"host": host, "port": port, "tls": tls},
        "tls": fields.pop("tls_trust", {}),
        **fields,
    }
    sender = TcpSender(
        Destination.model_validate(destination),
        guard=Guard(policy, resolver=names),
        credentials=Credentials(folder, {}),
        namespace="shop",
        clock_ms=lambda: NOW_MS,
    )
    try:
        yield sender
    finally:
        await sender.close()


def parcel(
    value: bytes | None = b'{"id":1}',
    *,
    offset: int = 42,
    key: bytes | None = None,
    headers: Headers | None = None,
    **fields: Any,
) -> Parcel:
    record = StoredRecord(offset, 1_699_999_999_123, key, value, headers or [])
    given = {"subscription": "billing", "channel": "erp", "max_attempts": 12} | fields
    return Parcel("orders", "0b5b8e4c-0000-4000-8000-000000000001", 3, record, **given)
