"""Clients that introduce themselves: PUT under a name, and the id stays the same from then on."""

from aiohttp import web
from msgspec import UNSET

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.registering import ClientList, ClientRequest, ClientView
from ibrik_broker.auth.clients import Clients
from ibrik_broker.http import parameters as p
from ibrik_broker.http.crud import (
    PLAIN_NEXT,
    page_answer,
    parse_page,
    precondition,
    read_body,
    resource_answer,
    unchanged,
)
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON, Answer, Body, Operation
from ibrik_broker.metadata.clients import ClientRow

ONE = "/v1/clients/{client}"
CHANGE_CODES = ("invalid-name", "precondition-failed", "metadata-unavailable")


class ClientHandlers:
    def __init__(self, door: Door, clients: Clients) -> None:
        self._door = door
        self._clients = clients

    async def list_page(self, request: web.Request) -> web.Response:
        page = parse_page(request)
        rows = self._clients.list(after=page.after, limit=page.limit)
        return page_answer(page, [(row.name, _view(row)) for row in rows], next_name=PLAIN_NEXT)

    async def read(self, request: web.Request) -> web.Response:
        row = self._clients.describe(_name(request))
        return unchanged(request, row.revision) or resource_answer(_view(row), row.revision)

    async def put(self, request: web.Request) -> web.Response:
        """Introduce a client, or change what it says of itself."""
        name = _name(request)
        body = await read_body(self._door, request, ClientRequest)
        if body.name not in (UNSET, name):
            raise Refusal(
                "invalid-request", f"The path names {name!r}, the body {str(body.name)[:60]!r}."
            )
        row, is_new = await self._clients.put(
            name, body.description, if_match=self._precondition(request, name)
        )
        path = f"/v1/clients/{name}"
        return resource_answer(_view(row), row.revision, created_at=path if is_new else None)

    async def remove(self, request: web.Request) -> web.Response:
        name = _name(request)
        await self._clients.remove(name, if_match=self._precondition(request, name))
        return web.Response(status=204)

    def _precondition(self, request: web.Request, name: str) -> int | None:
        is_known = self._clients.find(name) is not None
        return precondition(request, "client", name, is_known=is_known)


def _name(request: web.Request) -> str:
    return check_name(request.match_info["client"], what="client")


def _view(row: ClientRow) -> ClientView:
    return ClientView(row.id, row.name, row.description)


def client_operations(door: Door, clients: Clients) -> list[Operation]:
    handlers = ClientHandlers(door, clients)
    return [_list(handlers), _read(handlers), *_changes(handlers)]


def _list(handlers: ClientHandlers) -> Operation:
    return Operation(
        "listClients",
        "GET",
        "/v1/clients",
        "clients",
        "All clients by name, page by page.",
        handlers.list_page,
        (Answer(200, "One page.", (Body(JSON, ClientList),)),),
        parameters=p.PAGE,
    )


def _read(handlers: ClientHandlers) -> Operation:
    return Operation(
        "readClient",
        "GET",
        ONE,
        "clients",
        "One client.",
        handlers.read,
        (
            Answer(200, "The client.", (Body(JSON, ClientView),), p.etag_headers("client")),
            Answer(304, "It is as If-None-Match says."),
        ),
        ("invalid-name", "unknown-client"),
        parameters=(p.CLIENT, p.KNOWN_ETAG),
    )


def _changes(handlers: ClientHandlers) -> list[Operation]:
    known = (Body(JSON, ClientView),)
    return [
        Operation(
            "putClient",
            "PUT",
            ONE,
            "clients",
            "Introduce a client, or change what it says of itself. Its id stays.",
            handlers.put,
            (
                Answer(200, "It is so.", known, p.etag_headers("client")),
                Answer(201, "Introduced.", known, p.location_headers("client")),
            ),
            ("invalid-json", *CHANGE_CODES),
            parameters=(p.CLIENT, p.IF_MATCH, p.IF_NONE_MATCH),
            bodies=(Body(JSON, ClientRequest, example={"description": "The till in the hall"}),),
            is_registration=True,
        ),
        Operation(
            "removeClient",
            "DELETE",
            ONE,
            "clients",
            "Remove a client. Another one of its name gets another id.",
            handlers.remove,
            (Answer(204, "Done."),),
            ("unknown-client", *CHANGE_CODES),
            parameters=(p.CLIENT, p.IF_MATCH),
            is_registration=True,
        ),
    ]
