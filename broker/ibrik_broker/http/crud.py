"""What every registration over HTTP has in common: bodies, pages, ETags, preconditions.

Topics, channels, subscriptions, publishers and clients are handled by these few functions; what
each of them means is the business of the registry or catalogue behind it. A revision is a number
that the stored row counts, and the ETag is its text.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import msgspec
from aiohttp import hdrs, web

from ibrik_api.errors import Refusal
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON
from ibrik_broker.http.parameters import DEFAULT_PAGE, MAX_PAGE
from ibrik_broker.http.read import parse_count

MAX_RESOURCE_BYTES = 256 * 1024
ANY = "*"
KEPT_BODY = "body"
"""Where a request keeps the body that was received already."""

BodyT = TypeVar("BodyT", bound=msgspec.Struct)
ChoiceT = TypeVar("ChoiceT", bound=StrEnum)

# --- bodies ---------------------------------------------------------------------------------------


async def read_json(door: Door, request: web.Request, limit_bytes: int = MAX_RESOURCE_BYTES) -> Any:
    """The body as JSON, whatever its content type says: curl does not say it."""
    return _decode(await _read(door, request, limit_bytes))


async def read_body(door: Door, request: web.Request, shape: type[BodyT]) -> BodyT:
    """The body as one of the data plane's own shapes; unknown fields are refused."""
    document = _decode(await _read(door, request, MAX_RESOURCE_BYTES))
    try:
        return msgspec.convert(document, shape)
    except msgspec.ValidationError as error:
        raise Refusal("invalid-request", f"The body is not as documented: {error}.") from error


async def keep_body(door: Door, request: web.Request) -> Any:
    """The body as JSON for whoever has to know where the request goes; it can be read again."""
    request[KEPT_BODY] = await _read(door, request, MAX_RESOURCE_BYTES)
    return _decode(request[KEPT_BODY])


async def _read(door: Door, request: web.Request, limit_bytes: int) -> bytes:
    kept: bytes | None = request.get(KEPT_BODY)
    if kept is not None:
        return kept
    claim = door.gate.claim()
    try:
        return await door.bodies.read(request, limit_bytes, claim)
    finally:
        claim.release()


def _decode(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("invalid-json", f"The body is no JSON: {error}.") from error


# --- answers --------------------------------------------------------------------------------------


def json_answer(document: Any, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(document), content_type=JSON)


def resource_answer(
    document: Mapping[str, Any] | msgspec.Struct,
    revision: int | str | None,
    *,
    created_at: str | None = None,
) -> web.Response:
    """The thing with its ETag; 201 with its path when it is new."""
    response = json_answer(document, status=200 if created_at is None else 201)
    response.headers[hdrs.ETAG] = etag_of(revision)
    if created_at is not None:
        response.headers[hdrs.LOCATION] = created_at
    return response


def unchanged(request: web.Request, revision: int | str | None) -> web.Response | None:
    """304 when the client knows this revision already."""
    if request.headers.get(hdrs.IF_NONE_MATCH) not in (etag_of(revision), ANY):
        return None
    return web.Response(status=304, headers={hdrs.ETAG: etag_of(revision)})


# --- preconditions --------------------------------------------------------------------------------


def etag_of(revision: int | str | None) -> str:
    return f'"{revision}"'


def parse_etag(text: str) -> int:
    revision = text.removeprefix("W/").strip('"')
    if revision.isascii() and revision.isdigit() and len(revision) <= 18:
        return int(revision)
    raise Refusal("precondition-failed", f"If-Match {text[:40]!r} is no ETag of ours.")


def precondition(request: web.Request, what: str, name: str, *, is_known: bool) -> int | None:
    """The revision that If-Match names; `*` and If-None-Match are judged here.

    `what` says what the thing is (`topic`); `is_known` whether there is one of this name.
    """
    if_none_match = request.headers.get(hdrs.IF_NONE_MATCH)
    if if_none_match is not None:
        if if_none_match != ANY:
            raise Refusal("invalid-request", "If-None-Match can only be * here.")
        if is_known:
            raise Refusal("precondition-failed", f"There is a {what} {name!r} already.")
    if_match = request.headers.get(hdrs.IF_MATCH)
    if if_match is None:
        return None
    if if_match != ANY:
        return parse_etag(if_match)
    if not is_known:
        raise Refusal("precondition-failed", f"There is no {what} {name!r}.")
    return None


def wants_new(request: web.Request) -> bool:
    """Whether `If-None-Match: *` says that nothing may be replaced."""
    return request.headers.get(hdrs.IF_NONE_MATCH) == ANY


# --- pages ----------------------------------------------------------------------------------------


PLAIN_NEXT = "next_page_token"
"""The member with the next page's token in lists of the data plane's own shapes."""


class Page(NamedTuple):
    """What a list was asked for: at most `size` items, those after the key `after`."""

    size: int
    after: str

    @property
    def limit(self) -> int:
        """How many to look up: one more tells whether there is a next page."""
        return self.size + 1


def parse_page(request: web.Request) -> Page:
    query = request.rel_url.query
    size = parse_count(query.get("page_size"), "page_size", DEFAULT_PAGE, MAX_PAGE)
    return Page(size, parse_page_token(query.get("page_token", "")))


def page_answer(
    page: Page, found: Sequence[tuple[str, Any]], *, next_name: str = "nextPageToken"
) -> web.Response:
    """One page of (key, document); `found` has up to `page.limit` of them, in order of keys.

    Lists of resources are camelCase, those of the data plane's own shapes (`PLAIN_NEXT`) are not.
    """
    answer: dict[str, Any] = {"items": [document for _, document in found[: page.size]]}
    if len(found) > page.size:
        answer[next_name] = format_page_token(found[page.size - 1][0])
    return json_answer(answer)


def format_page_token(key: str) -> str:
    return base64.urlsafe_b64encode(key.encode()).rstrip(b"=").decode()


def parse_page_token(text: str) -> str:
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Refusal("invalid-request", "page_token is none that a list answered with.") from error


# --- queries --------------------------------------------------------------------------------------


def parse_choice(request: web.Request, name: str, choices: type[ChoiceT]) -> ChoiceT | None:
    """A parameter that is one word of a closed list; None when it is left out."""
    text = request.rel_url.query.get(name)
    if text is None:
        return None
    try:
        return choices(text)
    except ValueError as error:
        words = [choice.value for choice in choices]
        raise Refusal(
            "invalid-request",
            f"{name}={text[:40]!r}: write {', '.join(words[:-1])} or {words[-1]}.",
        ) from error
