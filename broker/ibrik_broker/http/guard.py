"""The one wrapper around every handler: strict queries, problem documents, counters.

Instead of a chain of middlewares, because it runs on the hot path: one frame, one `try`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from time import perf_counter as now_s  # the clock of the loop counts milliseconds

from aiohttp import hdrs, web

from ibrik_api.errors import Refusal
from ibrik_broker.http.door import expect_body
from ibrik_broker.http.operations import Handler, Operation
from ibrik_broker.http.problems import internal, refuse
from ibrik_broker.telemetry.metrics import HTTP_REQUEST_SECONDS, HTTP_REQUESTS, Histogram, Reading


class RouteCounter:
    """Counts the answers of one route, in integers that cost nothing to keep."""

    __slots__ = ("by_status", "seconds")

    def __init__(self) -> None:
        self.by_status: dict[int, int] = {}
        self.seconds = Histogram()

    def count(self, status: int, seconds: float) -> None:
        self.by_status[status] = self.by_status.get(status, 0) + 1
        self.seconds.observe(seconds)


class RouteCounters:
    """The counters of all routes of one door; a source of readings for a scrape."""

    def __init__(self) -> None:
        self._routes: dict[str, RouteCounter] = {}

    def of(self, route: str) -> RouteCounter:
        return self._routes.setdefault(route, RouteCounter())

    def readings(self) -> Iterator[Reading]:
        for route, counter in self._routes.items():
            for status, count in counter.by_status.items():
                yield Reading(HTTP_REQUESTS, (route, str(status)), count)
            if counter.by_status:
                yield Reading(HTTP_REQUEST_SECONDS, (route,), counter.seconds)


def add_operations(
    app: web.Application,
    operations: Iterable[Operation],
    counters: RouteCounters,
    *,
    unknown_route: str = "unknown",
) -> None:
    """Make the routes, and one more that answers whatever has none."""
    table = list(operations)
    for operation in table:
        app.router.add_route(
            operation.method,
            operation.path,
            guard(operation, counters.of(operation.name)),
            expect_handler=operation.expect or expect_body,
        )
    lost = guard_unknown(table, counters.of(unknown_route))
    app.router.add_route("*", "/{path:.*}", lost, expect_handler=_expect_nothing)


def guard(operation: Operation, counter: RouteCounter) -> Handler:
    """Wrap the handler of an operation."""
    handler = operation.handler
    query_names = operation.query_names
    is_change = operation.method != "GET"
    route = operation.name

    async def guarded(request: web.Request) -> web.StreamResponse:
        started_s = now_s()
        try:
            if "?" in request.raw_path:  # the URL's own properties cost more
                check_query(request, query_names)
            if is_change and hdrs.ORIGIN in request.headers:
                check_origin(request)
            response = await handler(request)
        except Refusal as refusal:
            response = refuse(refusal)
        except ConnectionError:
            raise  # the client is gone; there is nobody to answer
        except Exception as error:  # noqa: BLE001 - a request's top
            response = internal(error, route=route)
        counter.count(response.status, now_s() - started_s)
        return response

    return guarded


def check_origin(request: web.Request) -> None:
    """Refuse what a page of another site sends: browsers post plain text without asking first.

    A broker on a developer's loopback is open to every page in that developer's browser otherwise.
    Programs send no Origin (RFC 6454 §7).
    """
    origin = request.headers[hdrs.ORIGIN]
    if origin.partition("://")[2].lower() != request.host.lower():
        raise Refusal(
            "foreign-origin",
            f"A page of {origin[:100]!r} may not change anything at {request.host!r}.",
        )


def check_query(request: web.Request, names: frozenset[str]) -> None:
    """Refuse parameters that the operation does not know, or that come twice."""
    query = request.rel_url.query
    for name in query:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            known = ", ".join(sorted(names)) or "none"
            hint = f"Did you mean {near[0]!r}?" if near else f"Known here: {known}."
            raise Refusal("invalid-request", f"There is no parameter {name[:60]!r}. {hint}")
        if len(query.getall(name)) > 1:
            raise Refusal("invalid-request", f"The parameter {name!r} is given more than once.")


def guard_unknown(operations: Sequence[Operation], counter: RouteCounter) -> Handler:
    """Answer paths without a route: 405 where another method has one, else 404."""
    paths = [
        (re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(operation.path))), operation.method)
        for operation in operations
    ]

    async def unknown(request: web.Request) -> web.StreamResponse:
        allowed = sorted({method for path, method in paths if path.fullmatch(request.path)})
        if allowed:
            response = refuse(
                Refusal(
                    "method-not-allowed",
                    f"{request.method} is not served here, only {', '.join(allowed)}.",
                )
            )
            response.headers["Allow"] = ", ".join(allowed)
        else:
            response = refuse(
                Refusal("not-found", "Nothing answers at this path. The paths are at /docs.")
            )
        counter.count(response.status, 0.0)
        return response

    return unknown


async def _expect_nothing(_request: web.Request) -> None:
    """A path without a route is refused before its body is sent."""
