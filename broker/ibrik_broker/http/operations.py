"""What an operation of a door is: one value from which its route and its documentation are made.

Values only. `guard.py` turns operations into routes, `openapi.py` into a document; there is no
second list of paths, parameters or answers anywhere.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
ExpectHandler = Callable[[web.Request], Awaitable[web.StreamResponse | None]]
JsonSchema = Mapping[str, Any]
Shape = type | JsonSchema
"""How a body looks: a model of `ibrik_api`, or a JSON schema where there is none."""

JSON = "application/json"
NDJSON = "application/x-ndjson"
CLOUDEVENT = "application/cloudevents+json"
CLOUDEVENTS_BATCH = "application/cloudevents-batch+json"
RAW_BATCH = "application/vnd.ibrik.batch"
EVENT_STREAM = "text/event-stream"

TEXT: JsonSchema = {"type": "string"}
BYTES: JsonSchema = {"type": "string", "format": "binary"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value in the path, the query or a header."""

    name: str
    where: Literal["path", "query", "header"]
    description: str
    shape: JsonSchema = field(default_factory=lambda: TEXT)
    required: bool = False
    example: Any = None


@dataclass(frozen=True, slots=True)
class Body:
    """One way to write a body."""

    media_type: str
    shape: Shape
    example: Any = None


@dataclass(frozen=True, slots=True)
class Answer:
    """One way in which an operation ends well."""

    status: int
    description: str
    bodies: tuple[Body, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Operation:
    """A method on a path."""

    name: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    tag: str
    summary: str
    handler: Handler
    answers: tuple[Answer, ...]
    codes: tuple[str, ...] = ()
    """Error codes beside those that every operation may answer with (`openapi.COMMON_CODES`)."""
    description: str = ""
    parameters: tuple[Parameter, ...] = ()
    bodies: tuple[Body, ...] = ()
    is_body_required: bool = True
    needs_token: bool = False
    is_registration: bool = False
    """Changes which topics, channels, subscriptions, publishers … there are: `access.py` says who
    may, for all such operations alike."""
    expect: ExpectHandler | None = None
    """Called instead of the default on `Expect: 100-continue`: refuses before a body is sent."""

    @property
    def query_names(self) -> frozenset[str]:
        return frozenset(p.name for p in self.parameters if p.where == "query")
