"""Passes a request on to another broker of the pool, and its answer back, both as they come.

Nothing is buffered, so a body of any size costs a chunk of memory. A request is passed on once: the
other broker serves it or refuses.
"""

from collections.abc import AsyncIterator

import aiohttp
from aiohttp import hdrs, web
from multidict import CIMultiDict
from yarl import URL

from ibrik_api.errors import Refusal
from ibrik_broker.http.door import ask_for_body
from ibrik_broker.http.presence import Presence
from ibrik_broker.metadata.brokers import BrokerRow
from ibrik_broker.pool.peers import CONNECT_SECONDS, POOL_CLIENT, POOL_TOKEN, Peers, unreachable

SILENCE_SECONDS = 90.0
"""An owner that says nothing for so long is given up: longer than any wait, and than heartbeats."""
CHUNK_BYTES = 64 * 1024

# RFC 9110 §7.6.1; and what our own server writes itself.
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
OURS = frozenset({POOL_TOKEN.lower(), POOL_CLIENT.lower(), "expect"})
SKIPPED = (hdrs.ACCEPT, hdrs.ACCEPT_ENCODING, hdrs.USER_AGENT, hdrs.CONTENT_TYPE)
"""Headers that aiohttp would add; the client's own are passed on."""


class Forwarding:
    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._presence = Presence()

    async def forward(
        self, request: web.Request, broker: BrokerRow, *, body: bytes | None = None, waits: bool
    ) -> web.StreamResponse:
        """`body` is that of a request that was read already. `waits`: it ends with its client.

        Raises Refusal `owner-unavailable`.
        """
        answering = self._exchange(request, broker, body)
        return await (self._presence.wait(request, answering) if waits else answering)

    def close(self) -> None:
        """Let go of all that waits."""
        self._presence.close()

    async def _exchange(
        self, request: web.Request, broker: BrokerRow, body: bytes | None
    ) -> web.StreamResponse:
        expects = body is None and hdrs.EXPECT in request.headers
        try:
            upstream = await self._peers.session.request(
                request.method,
                _url(request, broker),
                headers=self._headers(request, body),
                data=_content(request, expects=expects) if body is None else body,
                expect100=expects,
                skip_auto_headers=SKIPPED,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(
                    total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENCE_SECONDS
                ),
            )
        except (aiohttp.ClientError, OSError) as error:
            if request.content.exception() is not None:
                raise ConnectionResetError("the client is gone") from error
            raise unreachable(broker, error) from error
        try:
            return await _answer(request, upstream)
        finally:
            upstream.close()  # of a whole answer the connection is back in the pool already

    def _headers(self, request: web.Request, body: bytes | None) -> CIMultiDict[str]:
        headers = CIMultiDict(
            (name, text)
            for name, text in request.headers.items()
            if name.lower() not in HOP_BY_HOP and name.lower() not in OURS
        )
        if body is not None:
            headers.popall(hdrs.CONTENT_LENGTH, None)
            headers.popall(hdrs.CONTENT_ENCODING, None)  # it was decompressed to look into it
        headers.update(self._peers.headers(request.remote))
        return headers


async def _answer(request: web.Request, upstream: aiohttp.ClientResponse) -> web.StreamResponse:
    response = web.StreamResponse(status=upstream.status, reason=upstream.reason)
    for name, text in upstream.headers.items():
        if name.lower() not in HOP_BY_HOP:
            response.headers.add(name, text)
    if hdrs.EXPECT in request.headers and upstream.status >= 400:
        response.force_close()  # whether the body still comes is the client's choice
    await response.prepare(request)
    try:
        async for chunk in upstream.content.iter_chunked(CHUNK_BYTES):
            await response.write(chunk)
    except aiohttp.ClientError as error:
        # Half an answer must not look like a whole one.
        if request.transport is not None:
            request.transport.abort()
        raise ConnectionResetError("the owner broke off") from error
    await response.write_eof()
    return response


def _url(request: web.Request, broker: BrokerRow) -> URL:
    origin = URL.build(scheme="http", host=broker.host, port=broker.http_port)
    return URL(f"{origin}{request.raw_path}", encoded=True)


def _content(request: web.Request, *, expects: bool) -> AsyncIterator[bytes] | None:
    return _body(request, expects=expects) if request.can_read_body else None


async def _body(request: web.Request, *, expects: bool) -> AsyncIterator[bytes]:
    if expects:
        await ask_for_body(request)  # the owner wants it
    while chunk := await request.content.readany():
        yield chunk


def not_here(name: str) -> Refusal:
    """A request that another broker passed on, for what is not here any more."""
    return Refusal(
        "owner-unavailable",
        f"'{name}' is served by another broker since a moment ago. Send the request again.",
    )
