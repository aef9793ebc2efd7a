"""Delivery over HTTP: one request a message, one answer, nothing followed and nothing repeated.

`HttpClient` owns the connections of all destinations; `HttpSender` speaks to one of them. Headers
are made in `headers`, addresses are judged in `guard`, what an answer means is said in `answers`.
"""

import asyncio
import io
import weakref
from collections.abc import Callable
from typing import Any

import aiohttp
from aiohttp import ClientHandlerType, ClientRequest, ClientResponse, hdrs
from yarl import URL

from ibrik_api.resources.destination import Destination
from ibrik_broker.delivery.answers import (
    MAX_BODY_BYTES,
    Answer,
    answered,
    failed,
    is_success,
    parse_retry_after,
)
from ibrik_broker.delivery.credentials import CredentialMissing, Credentials
from ibrik_broker.delivery.guard import Guard
from ibrik_broker.delivery.resolver import AddressInfo
from ibrik_broker.delivery.senders.dressing import Dressing, Wardrobe
from ibrik_broker.delivery.senders.failures import failure
from ibrik_broker.delivery.senders.headers import Headers, push_headers
from ibrik_broker.delivery.senders.parcel import Parcel
from ibrik_broker.partitions.deadlines import Deadlines

ANSWER_BYTES_MAX = 64 * 1024
"""So much of an answer is read; a longer one ends the connection."""
LOCATION_BYTES_SHOWN = 200
HEADER_LINE_BYTES_MAX = 8_190
HEADERS_MAX = 64
KEEPALIVE_S = 30.0
IDLE_CONNECTIONS_MAX = 512
"""Above it requests ask for the connection to be closed after them."""
DNS_CACHE_S = 10
INLINE_BODY_BYTES_MAX = 1024 * 1024
"""A larger body is written in pieces, so that others get their turn in between."""

NO_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=None)
"""One attempt has one limit, which is ours: the client would set a timer for each."""


class HttpClient:
    """The connections of all HTTP destinations of one broker."""

    def __init__(self, guard: Guard) -> None:
        self.guard = guard
        self.in_flight = 0
        self._sockets: weakref.WeakSet[Any] = weakref.WeakSet()
        # Apart, since a service may be at an address that the same name over http may not.
        self._http = self._session()
        self._service = self._session()

    def session(self, *, is_service: bool) -> aiohttp.ClientSession:
        return self._service if is_service else self._http

    @property
    def is_crowded(self) -> bool:
        """Whether more connections than are worth it wait for their next request."""
        return len(self._sockets) - self.in_flight > IDLE_CONNECTIONS_MAX

    def _session(self) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0,  # how much is under way is decided by each channel's concurrency
            keepalive_timeout=KEEPALIVE_S,
            ttl_dns_cache=DNS_CACHE_S,
            resolver=self.guard.resolver,
            socket_factory=self._open_socket,
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
            auto_decompress=False,
            read_bufsize=ANSWER_BYTES_MAX // 4,
            max_line_size=HEADER_LINE_BYTES_MAX,
            max_field_size=HEADER_LINE_BYTES_MAX,
            max_headers=HEADERS_MAX,
        )

    def _open_socket(self, info: AddressInfo) -> Any:
        opened = self.guard.open_socket(info)
        self._sockets.add(opened)
        return opened

    async def close(self) -> None:
        await self._http.close()
        await self._service.close()


class HttpSender:
    """One HTTP destination, or a Kubernetes Service."""

    def __init__(
        self,
        destination: Destination,
        *,
        client: HttpClient,
        credentials: Credentials,
        namespace: str,
        clock_ms: Callable[[], int],
        domain: str = "",
    ) -> None:
        """`domain` follows the name of a Service, when it is not beside the broker."""
        self._client = client
        self._clock_ms = clock_ms
        self._wardrobe = Wardrobe(destination, namespace, credentials, clock_ms)
        # A Service's name is one word; one with dots would be looked up anywhere.
        is_service = destination.service is not None and "." not in destination.service.name
        self._method, self._url = _address(destination, domain)
        self._host = self._url.raw_host or ""
        self._session = client.session(is_service=is_service)
        self._target = (self._host, is_service)
        self._timeout_s = destination.timeout_ms / 1_000
        self._deadlines = Deadlines(destination.timeout_ms)
        self._options: dict[str, Any] = {"allow_redirects": False, "timeout": NO_TIMEOUT}

    async def send(self, parcel: Parcel) -> Answer:
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        self._client.in_flight += 1
        try:
            dressing = await self._wardrobe.dressing()
            response, body = await self._deadlines.wait(self._exchange(parcel, dressing))
        except CredentialMissing as missing:
            error, detail = "credential-missing", str(missing)
        except Exception as raised:  # noqa: BLE001 - a message never ends a flow
            error, detail = failure(raised, self._host, self._timeout_s)
        else:
            duration_ms = round((loop.time() - started_s) * 1_000)
            return self._answer(response, body, dressing.spoken, duration_ms)
        finally:
            self._client.in_flight -= 1
        return failed(error, detail, duration_ms=round((loop.time() - started_s) * 1_000))

    async def _exchange(self, parcel: Parcel, dressing: Dressing) -> tuple[ClientResponse, bytes]:
        """The answer, and its body as far as it is read."""
        headers = push_headers(dressing.headers, parcel, self._clock_ms(), dressing.signing_secrets)
        if self._client.is_crowded:
            headers[hdrs.CONNECTION] = "close"
        options = self._options
        if dressing.tls is not None:
            options = options | {"ssl": dressing.tls}
        self._client.guard.aim(self._target)
        response = await self._session.request(
            self._method,
            self._url,
            data=_body(parcel.record.value),
            middlewares=(_Push(headers),),
            **options,
        )
        try:
            return response, await _read(response)
        finally:
            response.close()  # of a whole answer the connection is back in the pool already

    def _answer(
        self, response: ClientResponse, body: bytes, spoken: tuple[bytes, ...], duration_ms: int
    ) -> Answer:
        status, headers = response.status, response.headers
        body = _without(spoken, body)[:MAX_BODY_BYTES]
        if is_success(status):
            return Answer(status, None, "", None, duration_ms, body)
        if status in (401, 403):
            self._wardrobe.distrust()
        wait_ms = parse_retry_after(headers.get(hdrs.RETRY_AFTER), self._clock_ms())
        answer = answered(status, duration_ms=duration_ms, retry_after_ms=wait_ms, body=body)
        if answer.error == "redirect" and hdrs.LOCATION in headers:
            # Without its query, which may hold what is nobody's business.
            place = headers[hdrs.LOCATION].partition("?")[0].encode(errors="replace")
            shown = _without(spoken, place)[:LOCATION_BYTES_SHOWN].decode(errors="replace")
            return answer._replace(detail=f"{answer.detail}: it points to {shown!r}")
        return answer

    async def close(self) -> None:
        """Connections belong to the client, which other senders share."""


def _address(destination: Destination, domain: str) -> tuple[str, URL]:
    if destination.service is not None:
        service = destination.service
        url = URL(f"http://{service.name}{domain}:{service.port}{service.path}")
        return service.method.value, url
    assert destination.http is not None
    return destination.http.method.value, URL(destination.http.url).with_user(None).with_fragment(
        None
    )


def _body(value: bytes | None) -> bytes | io.BytesIO | None:
    if not value:
        return None
    return value if len(value) <= INLINE_BODY_BYTES_MAX else io.BytesIO(value)


def _without(spoken: tuple[bytes, ...], said: bytes) -> bytes:
    """What an endpoint said without the secrets that it was sent: some repeat their requests."""
    for secret in spoken:
        said = said.replace(secret, b"[secret]")
    return said


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


class ConnectionLost(aiohttp.ClientConnectionError):
    """The connection ended before the answer."""


class _Push:
    """Puts the headers on a request, and lets it be sent once."""

    __slots__ = ("_headers",)

    def __init__(self, headers: Headers) -> None:
        self._headers = headers

    async def __call__(self, request: ClientRequest, handler: ClientHandlerType) -> ClientResponse:
        # Headers that are given with the request are copied twice, one by one.
        request.headers.update(self._headers)
        try:
            return await handler(request)
        except aiohttp.ClientConnectorError:
            raise
        except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
            # Of these the client would send a PUT again; attempts are counted by the flow.
            raise ConnectionLost from error
