"""The connections of all HTTP destinations, and one exchange on one of them.

The parts are aiohttp's: its connector, request and response. What its session does around them is
what a delivery may not have (redirects, cookies, a second try of what was lost, timers), and
looking for it in each request was a fifth of what a delivery costs (docs/adr/0139).
"""

import asyncio
import io
import weakref
from ssl import SSLContext
from typing import Any, NamedTuple

import aiohttp
from aiohttp import ClientRequest, ClientResponse, hdrs
from aiohttp.helpers import TimerNoop
from yarl import URL

from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.resolver import AddressInfo
from ibrik_broker.delivery.senders.headers import Headers

ANSWER_BYTES_MAX = 64 * 1024
"""So much of an answer is read; a longer one ends the connection."""
HEADER_LINE_BYTES_MAX = 8_190
HEADERS_MAX = 64
KEEPALIVE_S = 30.0
IDLE_CONNECTIONS_MAX = 512
"""Above it requests ask for the connection to be closed after them."""
DNS_CACHE_S = 10
INLINE_BODY_BYTES_MAX = 1024 * 1024
"""A larger body is written in pieces, so that others get their turn in between."""

# One attempt has one limit, which is ours: the client would set a timer for each.
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)
_NO_TIMER = TimerNoop()


class Route(NamedTuple):
    """Where the requests of one destination go, and over whose connections."""

    connector: aiohttp.TCPConnector
    method: str
    url: URL


class HttpClient:
    """The connections of all HTTP destinations of one broker."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.in_flight = 0
        self._loop = asyncio.get_running_loop()
        self._sockets: weakref.WeakSet[Any] = weakref.WeakSet()
        # Apart, since a service may be at an address that the same name over http may not.
        self._http = self._connector()
        self._service = self._connector()

    def route(self, method: str, url: URL, *, is_service: bool) -> Route:
        return Route(self._service if is_service else self._http, method, url)

    async def exchange(
        self, route: Route, headers: Headers, value: bytes | None, tls: SSLContext | None
    ) -> tuple[ClientResponse, bytes]:
        """Send one request, once: the answer, and its body as far as it is read.

        Raises what connecting and reading raise; `failures` says what they mean.
        """
        request = ClientRequest(
            route.method,
            route.url,
            data=_body(value),
            loop=self._loop,
            timer=_NO_TIMER,
            ssl=True if tls is None else tls,
        )
        request.headers.update(headers)  # given above they would be copied one by one
        if self._is_crowded:
            request.headers[hdrs.CONNECTION] = "close"
        connection = await route.connector.connect(request, [], _NO_TIMEOUT)
        try:
            assert connection.protocol is not None
            connection.protocol.set_response_params(
                timer=_NO_TIMER,
                read_until_eof=True,
                auto_decompress=False,
                read_bufsize=ANSWER_BYTES_MAX // 4,
                max_line_size=HEADER_LINE_BYTES_MAX,
                max_field_size=HEADER_LINE_BYTES_MAX,
                max_headers=HEADERS_MAX,
            )
            response = await request.send(connection)
        except BaseException:
            connection.close()
            raise
        try:
            await response.start(connection)
            return response, await _read(response)
        finally:
            response.close()  # of a whole answer the connection is back in the pool already

    async def close(self) -> None:
        await self._http.close()
        await self._service.close()

    @property
    def _is_crowded(self) -> bool:
        """Whether more connections than are worth it wait for their next request."""
        return len(self._sockets) - self.in_flight > IDLE_CONNECTIONS_MAX

    def _connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(
            limit=0,  # how much is under way is decided by each channel's concurrency
            keepalive_timeout=KEEPALIVE_S,
            ttl_dns_cache=DNS_CACHE_S,
            resolver=self.guard.resolver,
            socket_factory=self._open_socket,
        )

    def _open_socket(self, info: AddressInfo) -> Any:
        opened = self.guard.open_socket(info)
        self._sockets.add(opened)
        return opened


def _body(value: bytes | None) -> bytes | io.BytesIO | None:
    if not value:
        return None
    return value if len(value) <= INLINE_BODY_BYTES_MAX else io.BytesIO(value)


async def _read(response: ClientResponse) -> bytes:
    """The body as far as it is read; the time limit of the request runs on meanwhile."""
    content = response.content
    if content.at_eof():
        return b""
    parts, size = [], 0
    while size <= ANSWER_BYTES_MAX and not content.at_eof():
        part = await content.readany()
        parts.append(part)
        size += len(part)
    return b"".join(parts)
