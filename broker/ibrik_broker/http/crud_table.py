"""The five operations that topics, channels and subscriptions have in common, as a table.

What is special about one kind of resource is a `ResourceKind`; further operations of a kind stand
in the module of that kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from aiohttp import web

from ibrik_broker.http import parameters as p
from ibrik_broker.http.operations import JSON, Answer, Body, Handler, Operation, Parameter, Shape

PLAIN_VIEW = Parameter(
    "view",
    "query",
    "`plain` answers four fields instead of the whole resource.",
    {"type": "string", "enum": ["full", "plain"], "default": "full"},
)


class ResourceHandlers(Protocol):
    """What a kind of resource has to be able to do."""

    async def list_page(self, request: web.Request) -> web.Response: ...
    async def create(self, request: web.Request) -> web.Response: ...
    async def read(self, request: web.Request) -> web.Response: ...
    async def replace(self, request: web.Request) -> web.Response: ...
    async def delete(self, request: web.Request) -> web.Response: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceKind:
    """The words, bodies and error codes of one kind of resource."""

    noun: str
    model: type
    list_model: type
    example: Mapping[str, Any]
    path: Parameter
    """Its name in the path."""
    filters: tuple[Parameter, ...] = ()
    """Further parameters of the list."""
    plain: type | None = None
    """The same in few fields (`view=plain`)."""
    plain_list: type | None = None
    read_codes: tuple[str, ...]
    write_codes: tuple[str, ...]
    """Of creating and replacing alike."""
    delete_codes: tuple[str, ...]
    delete_summary: str
    delete_parameters: tuple[Parameter, ...] = ()
    delete_headers: Mapping[str, str]
    one_parameters: tuple[Parameter, ...] = ()
    """Further parameters of reading, deleting and acting on one."""

    @property
    def title(self) -> str:
        return self.noun.capitalize()

    @property
    def plural(self) -> str:
        return f"{self.noun}s"

    @property
    def exists_code(self) -> str:
        return f"{self.noun}-exists"


def resource_operations(kind: ResourceKind, handlers: ResourceHandlers) -> list[Operation]:
    return [
        _list(kind, handlers.list_page),
        _create(kind, handlers.create),
        _read(kind, handlers.read),
        _replace(kind, handlers.replace),
        _delete(kind, handlers.delete),
    ]


def action(
    kind: ResourceKind,
    verb: str,
    summary: str,
    *,
    handler: Handler,
    answer: Answer,
    codes: tuple[str, ...] = (),
    is_registration: bool = True,
    description: str = "",
) -> Operation:
    """`POST …/{name}:verb`."""
    return Operation(
        f"{verb}{kind.title}",
        "POST",
        f"{_one(kind)}:{verb}",
        kind.plural,
        summary,
        handler,
        (answer,),
        (*kind.read_codes, *codes),
        description,
        parameters=(kind.path, *kind.one_parameters),
        is_registration=is_registration,
    )


def resource_body(kind: ResourceKind) -> tuple[Body, ...]:
    return (Body(JSON, kind.model, example=kind.example),)


def either(*shapes: type | None) -> Shape:
    """A body of one of these shapes; those that are None are left out."""
    given = [shape for shape in shapes if shape is not None]
    if len(given) == 1:
        return given[0]
    return {"anyOf": [{"$ref": f"#/components/schemas/{shape.__name__}"} for shape in given]}


def _collection(kind: ResourceKind) -> str:
    return f"/v1/{kind.plural}"


def _one(kind: ResourceKind) -> str:
    return f"{_collection(kind)}/{{{kind.path.name}}}"


def _view(kind: ResourceKind) -> tuple[Parameter, ...]:
    return () if kind.plain is None else (PLAIN_VIEW,)


def _answer(kind: ResourceKind, status: int, description: str) -> Answer:
    headers = p.location_headers(kind.noun) if status == 201 else p.etag_headers(kind.noun)
    return Answer(status, description, (Body(JSON, kind.model),), headers)


def _list(kind: ResourceKind, handler: Handler) -> Operation:
    return Operation(
        f"list{kind.title}s",
        "GET",
        _collection(kind),
        kind.plural,
        f"All {kind.plural} by name, page by page.",
        handler,
        (Answer(200, "One page.", (Body(JSON, either(kind.list_model, kind.plain_list)),)),),
        parameters=(*p.PAGE, *kind.filters, *_view(kind)),
    )


def _create(kind: ResourceKind, handler: Handler) -> Operation:
    return Operation(
        f"create{kind.title}",
        "POST",
        _collection(kind),
        kind.plural,
        f"Create a {kind.noun}.",
        handler,
        (_answer(kind, 201, "Created."), _answer(kind, 200, "It was there, and just so.")),
        (*kind.write_codes, kind.exists_code),
        bodies=resource_body(kind),
        is_registration=True,
    )


def _read(kind: ResourceKind, handler: Handler) -> Operation:
    found = (Body(JSON, either(kind.model, kind.plain)),)
    return Operation(
        f"read{kind.title}",
        "GET",
        _one(kind),
        kind.plural,
        f"One {kind.noun}, its wish and its state.",
        handler,
        (
            Answer(200, f"The {kind.noun}.", found, p.etag_headers(kind.noun)),
            Answer(304, "It is as If-None-Match says."),
        ),
        kind.read_codes,
        parameters=(kind.path, p.KNOWN_ETAG, *kind.one_parameters, *_view(kind)),
    )


def _replace(kind: ResourceKind, handler: Handler) -> Operation:
    return Operation(
        f"replace{kind.title}",
        "PUT",
        _one(kind),
        kind.plural,
        f"Make a {kind.noun} be as the body says; create it when there is none.",
        handler,
        (_answer(kind, 200, "It is so."), _answer(kind, 201, "Created.")),
        (*kind.write_codes, "precondition-failed", "managed-by-resource", kind.exists_code),
        "A key left out takes its default again.",
        parameters=(kind.path, p.IF_MATCH, p.IF_NONE_MATCH),
        bodies=resource_body(kind),
        is_registration=True,
    )


def _delete(kind: ResourceKind, handler: Handler) -> Operation:
    return Operation(
        f"delete{kind.title}",
        "DELETE",
        _one(kind),
        kind.plural,
        kind.delete_summary,
        handler,
        (Answer(204, "Done.", (), kind.delete_headers),),
        (*kind.read_codes, *kind.delete_codes, "precondition-failed", "managed-by-resource"),
        parameters=(kind.path, p.IF_MATCH, *kind.one_parameters, *kind.delete_parameters),
        is_registration=True,
    )
