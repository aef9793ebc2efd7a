"""The protocol below the handlers: what aiohttp answers by itself becomes a problem document too.

Also here: the limit on connections, the time a new connection has for its first request, and
clients that end their side of the connection before they read the answer.
"""

import asyncio
from typing import TYPE_CHECKING, Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from ibrik_api.errors import Refusal
from ibrik_broker.http.problems import internal, refuse
from ibrik_broker.settings import LimitSettings

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE_BYTES = 8_190
"""Request line and each header. A cursor of 256 partitions takes under 3,200."""
MAX_HEADERS = 128
LINGERING_SECONDS = 2.0
"""How long the rest of a refused body is read away, so that the client gets to see the refusal."""


class DoorProtocol(RequestHandler):
    """One connection."""

    __slots__ = ("_limits", "has_ended", "on_end")

    def __init__(self, manager: web.Server, limits: LimitSettings, **kwargs: Any) -> None:
        super().__init__(manager, **kwargs)
        self._limits = limits
        self.has_ended = False
        """The client ended its side, or is gone: from here these look alike."""
        self.on_end: Callable[[], None] | None = None
        """Called once, at that moment; for requests that must not be answered to nobody."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self._manager is not None
        if len(self._manager.connections) > self._limits.connections:
            assert isinstance(transport, asyncio.WriteTransport)
            transport.write(_too_many_connections(self._limits.connections))
            self.force_close()
            return
        # The first head has the time of a slow request; later ones that of an idle connection.
        self._next_keepalive_close_time = self._loop.time() + self._limits.slow_timeout_ms / 1000
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
        self._keepalive_handle = self._loop.call_at(
            self._next_keepalive_close_time, self._process_keepalive
        )

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._note_end()

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends no more. It still gets its answer, but no body will become whole."""
        self._note_end()
        is_idle = self._waiter is not None and not self._messages
        if is_idle or self._manager is None:
            return None
        self._close = True  # after the answer
        self._loop.call_soon(self._end_of_input)
        return True

    def _note_end(self) -> None:
        self.has_ended = True
        on_end, self.on_end = self.on_end, None
        if on_end is not None:
            on_end()

    def _end_of_input(self) -> None:
        if self._manager is None:
            return
        request = self._current_request
        if request is not None:
            if not request.content.is_eof():
                request.content.set_exception(web.RequestPayloadError("it ends too early"))
        elif self._messages or self._request_in_progress:
            self._loop.call_soon(self._end_of_input)  # its task starts in this very moment
        else:
            self.force_close()  # answered; only the rest of a refused body was still waited for
            if self._task_handler is not None:
                self._task_handler.cancel()

    def log_exception(self, *args: Any, **kwargs: Any) -> None:
        """Not for a body that broke off after its request was refused: nobody reads it."""
        if not isinstance(kwargs.get("exc_info"), web.RequestPayloadError):
            super().log_exception(*args, **kwargs)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is not HTTP, or what no handler caught. Never a trace, never a payload."""
        if request.writer.output_size > 0:
            raise ConnectionError("the answer is already on its way")
        if status == 400:
            response = refuse(_not_http(exc))
        else:
            response = internal(exc or TimeoutError(), route="protocol")
        response.force_close()
        return response


def _not_http(error: BaseException | None) -> Refusal:
    match type(error).__name__:
        case "LineTooLong":
            return Refusal(
                "headers-too-large",
                f"The request line or a header is longer than {MAX_LINE_BYTES} bytes.",
            )
        case _:
            return Refusal("invalid-request", "What came is not a well-formed HTTP/1.1 request.")


def _too_many_connections(limit: int) -> bytes:
    """An answer in bytes: there is no request yet, and none will be read."""
    refusal = Refusal(
        "too-many-connections", f"This door serves {limit} connections at a time. Come back later."
    )
    body = refuse(refusal).body
    assert isinstance(body, bytes)
    return (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/problem+json\r\n"
        b"Retry-After: 1\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)
    )


class DoorServer(web.Server):
    """Makes a `DoorProtocol` for each connection."""

    def __init__(self, server: web.Server, limits: LimitSettings) -> None:
        super().__init__(
            server.request_handler, request_factory=server.request_factory, **server._kwargs
        )
        self._limits = limits

    def __call__(self) -> RequestHandler:
        return DoorProtocol(self, self._limits, loop=self._loop, **self._kwargs)


class DoorRunner(web.AppRunner):
    """Runs one of our applications with the protocol above. Use it instead of `web.AppRunner`."""

    __slots__ = ("_limits",)

    def __init__(
        self, app: web.Application, limits: LimitSettings, *, shutdown_timeout_s: float = 20.0
    ) -> None:
        super().__init__(
            app,
            access_log=None,
            auto_decompress=False,  # the limits on decompression are ours: bodies.py
            keepalive_timeout=limits.idle_timeout_ms / 1000,
            lingering_time=LINGERING_SECONDS,
            max_line_size=MAX_LINE_BYTES,
            max_field_size=MAX_LINE_BYTES,
            max_headers=MAX_HEADERS,
            shutdown_timeout=shutdown_timeout_s,
        )
        self._limits = limits

    async def _make_server(self) -> web.Server:
        return DoorServer(await super()._make_server(), self._limits)
