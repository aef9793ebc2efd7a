"""Publishers of topics: register, list, rotate, remove. A token is shown once and never cached."""

from aiohttp import hdrs, web

from ibrik_api.names import check_name
from ibrik_api.registering import (
    PublisherList,
    PublisherRegistered,
    PublisherRequest,
    PublisherView,
)
from ibrik_api.timestamps import format_timestamp
from ibrik_broker.auth.publishers import Key, Publishers
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud import (
    PLAIN_NEXT,
    page_answer,
    parse_page,
    read_body,
    resource_answer,
    unchanged,
)
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation
from ibrik_broker.metadata.publishers import PublisherRow

SEPARATOR = "/"
"""Between topic and name in a page token; in neither of them."""
LIST = "/v1/topics/{topic}/publishers"
ONE = LIST + "/{publisher}"
WRITE_CODES = ("metadata-unavailable", *p.TOPIC_CODES)
TOKEN_HEADERS = {"Cache-Control": "no-store: the answer may hold a token."}


class PublisherHandlers:
    def __init__(self, door: Door, publishers: Publishers) -> None:
        self._door = door
        self._publishers = publishers

    async def register(self, request: web.Request) -> web.Response:
        """The same again is answered with the same publisher, without its token."""
        topic = self._door.topic(request).name
        body = await read_body(self._door, request, PublisherRequest)
        name = check_name(body.name, what="publisher")
        row, token = await self._publishers.register(topic, name)
        return _once(row, token, is_new=token is not None)

    async def rotate(self, request: web.Request) -> web.Response:
        topic, name = self._named(request)
        row, token = await self._publishers.rotate(topic, name)
        return _once(row, token, is_new=False)

    async def list_page(self, request: web.Request) -> web.Response:
        """Those of one topic."""
        return self._page(request, self._door.topic(request).name)

    async def list_all(self, request: web.Request) -> web.Response:
        """Those of all topics."""
        return self._page(request, None)

    async def read(self, request: web.Request) -> web.Response:
        row = self._publishers.describe(*self._named(request))
        return unchanged(request, row.revision) or resource_answer(_view(row), row.revision)

    async def remove(self, request: web.Request) -> web.Response:
        await self._publishers.remove(*self._named(request))
        return web.Response(status=204)

    def _named(self, request: web.Request) -> Key:
        return self._door.topic(request).name, request.match_info["publisher"]

    def _page(self, request: web.Request, topic: str | None) -> web.Response:
        page = parse_page(request)
        after_topic, _, after_name = page.after.partition(SEPARATOR)
        rows = self._publishers.list(topic=topic, after=(after_topic, after_name), limit=page.limit)
        found = [(f"{row.topic}{SEPARATOR}{row.name}", _view(row)) for row in rows]
        return page_answer(page, found, next_name=PLAIN_NEXT)


def _view(row: PublisherRow) -> PublisherView:
    return PublisherView(row.id, row.topic, row.name, format_timestamp(row.created_ms))


def _once(row: PublisherRow, token: str | None, *, is_new: bool) -> web.Response:
    answer = PublisherRegistered(
        row.id, row.topic, row.name, format_timestamp(row.created_ms), created=is_new
    )
    if token is not None:
        answer.token = token
    path = f"/v1/topics/{row.topic}/publishers/{row.name}"
    response = resource_answer(answer, row.revision, created_at=path if is_new else None)
    response.headers[hdrs.CACHE_CONTROL] = "no-store"
    return response


def publisher_operations(door: Door, publishers: Publishers) -> list[Operation]:
    handlers = PublisherHandlers(door, publishers)
    return [
        _register(handlers),
        *_lists(handlers),
        *_one(handlers),
    ]


def _register(handlers: PublisherHandlers) -> Operation:
    registered = (Body(JSON, PublisherRegistered),)
    return Operation(
        "registerPublisher",
        "POST",
        LIST,
        "publishers",
        "Register a publisher at a topic. The answer holds its token, this once.",
        handlers.register,
        (
            Answer(201, "Registered.", registered, p.location_headers("publisher") | TOKEN_HEADERS),
            Answer(
                200,
                "It was registered before. Its token cannot be shown again; `:rotate` gives"
                " another.",
                registered,
                p.etag_headers("publisher") | TOKEN_HEADERS,
            ),
        ),
        ("invalid-json", *WRITE_CODES),
        "A topic with `publishers: registered` takes messages only with such a token, as"
        " `Authorization: Bearer TOKEN`.",
        parameters=(p.TOPIC,),
        bodies=(Body(JSON, PublisherRequest, example={"name": "shop"}),),
        is_registration=True,
    )


def _lists(handlers: PublisherHandlers) -> list[Operation]:
    page = (Answer(200, "One page.", (Body(JSON, PublisherList),)),)
    return [
        Operation(
            "listPublishers",
            "GET",
            LIST,
            "publishers",
            "The publishers of a topic by name, page by page.",
            handlers.list_page,
            page,
            p.TOPIC_CODES,
            parameters=(p.TOPIC, *p.PAGE),
        ),
        Operation(
            "listAllPublishers",
            "GET",
            "/v1/publishers",
            "publishers",
            "The publishers of all topics, by topic and name, page by page.",
            handlers.list_all,
            page,
            parameters=p.PAGE,
        ),
    ]


def _one(handlers: PublisherHandlers) -> list[Operation]:
    registered = (Body(JSON, PublisherRegistered),)
    headers = p.etag_headers("publisher")
    return [
        Operation(
            "readPublisher",
            "GET",
            ONE,
            "publishers",
            "One publisher, without its token.",
            handlers.read,
            (
                Answer(200, "The publisher.", (Body(JSON, PublisherView),), headers),
                Answer(304, "It is as If-None-Match says."),
            ),
            ("unknown-publisher", *p.TOPIC_CODES),
            parameters=(p.TOPIC, p.PUBLISHER, p.KNOWN_ETAG),
        ),
        Operation(
            "removePublisher",
            "DELETE",
            ONE,
            "publishers",
            "Remove a publisher; its token counts no more.",
            handlers.remove,
            (Answer(204, "Done."),),
            ("unknown-publisher", *WRITE_CODES),
            parameters=(p.TOPIC, p.PUBLISHER),
            is_registration=True,
        ),
        Operation(
            "rotatePublisher",
            "POST",
            ONE + ":rotate",
            "publishers",
            "Give a publisher another token; the old one counts no more.",
            handlers.rotate,
            (Answer(200, "The new token, this once.", registered, headers | TOKEN_HEADERS),),
            ("unknown-publisher", *WRITE_CODES),
            parameters=(p.TOPIC, p.PUBLISHER),
            is_registration=True,
        ),
    ]
