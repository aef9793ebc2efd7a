"""CRUD of topics and ids of producers. Bodies are the Topic resource, the ETag is its revision."""

import base64
import binascii
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from aiohttp import hdrs, web

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.resources.topic import DeletionPolicy
from ibrik_api.resources.topic import Topic as TopicResource
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import JSON
from ibrik_broker.http.read import parse_count
from ibrik_broker.topics.registry import Registry

MAX_RESOURCE_BYTES = 256 * 1024
DEFAULT_PAGE, MAX_PAGE = 100, 500
ANY = "*"


class Topics:
    def __init__(
        self,
        door: Door,
        registry: Registry,
        allocate_producer_id: Callable[[], Awaitable[int]] | None = None,
    ) -> None:
        self._door = door
        self._registry = registry
        self._allocate_producer_id = allocate_producer_id

    async def list_page(self, request: web.Request) -> web.Response:
        query = request.rel_url.query
        size = parse_count(query.get("page_size"), "page_size", DEFAULT_PAGE, MAX_PAGE)
        after = parse_page_token(query.get("page_token", ""))
        topics = self._registry.list_topics(after=after, limit=size + 1)
        page: dict[str, Any] = {"items": [topic.document() for topic in topics[:size]]}
        if len(topics) > size:
            page["nextPageToken"] = format_page_token(topics[size - 1].topic_name)
        return json_answer(page)

    async def create(self, request: web.Request) -> web.Response:
        """Make a topic. The same again changes nothing; other settings are a conflict."""
        resource = await self._read(request)
        name = check_name(resource.topic_name)
        is_new = self._registry.by_name(name) is None
        return topic_answer(
            await self._registry.create_topic(name, resource.spec), is_new=is_new, name=name
        )

    async def read(self, request: web.Request) -> web.Response:
        topic = self._registry.describe(self._door.topic(request).name)
        if request.headers.get(hdrs.IF_NONE_MATCH) in (etag_of(topic), ANY):
            return web.Response(status=304, headers={hdrs.ETAG: etag_of(topic)})
        return topic_answer(topic)

    async def replace(self, request: web.Request) -> web.Response:
        """Make the topic be as the body says, whether it is there or not."""
        name = check_name(request.match_info["topic"])
        resource = await self._read(request)
        if resource.topic_name != name:
            raise Refusal(
                "invalid-request",
                f"The path names {name!r}, the body {resource.topic_name[:60]!r}.",
            )
        if_match = self._precondition(request, name)
        topic, is_new = await self._registry.put_topic(name, resource.spec, if_match=if_match)
        return topic_answer(topic, is_new=is_new, name=name)

    async def delete(self, request: web.Request) -> web.Response:
        """Delete as the topic's deletionPolicy says, or as `policy=` does."""
        name = check_name(request.match_info["topic"])
        policy = parse_policy(request.rel_url.query.get("policy"))
        state = await self._registry.delete_topic(
            name, if_match=self._precondition(request, name), policy=policy
        )
        is_kept = state.value == "detached"
        return web.Response(
            status=204, headers={"Ibrik-Topic-State": "detached" if is_kept else "deleted"}
        )

    async def purge(self, request: web.Request) -> web.Response:
        """Remove every message that can be read now; offsets go on where they are."""
        topic = await self._registry.purge(self._door.topic(request).name)
        ranges = [
            {
                "partition": partition.index,
                "earliest": partition.earliest,
                "latest": partition.latest,
                "bytes": partition.size_bytes,
            }
            for partition in topic.partitions
        ]
        return json_answer({"topic": topic.name, "partitions": ranges})

    async def create_producer(self, _request: web.Request) -> web.Response:
        assert self._allocate_producer_id is not None, "this door gives out no producer ids"
        return json_answer({"id": await self._allocate_producer_id(), "epoch": 0}, status=201)

    def _precondition(self, request: web.Request, name: str) -> int | None:
        """The revision that If-Match names; `*` and If-None-Match are judged here."""
        is_known = self._registry.by_name(name) is not None
        if_none_match = request.headers.get(hdrs.IF_NONE_MATCH)
        if if_none_match is not None:
            if if_none_match != ANY:
                raise Refusal("invalid-request", "If-None-Match can only be * here.")
            if is_known:
                raise Refusal("precondition-failed", f"There is a topic {name!r} already.")
        if_match = request.headers.get(hdrs.IF_MATCH)
        if if_match == ANY and not is_known:
            raise Refusal("precondition-failed", f"There is no topic {name!r}.")
        return None if if_match in (None, ANY) else parse_etag(if_match or "")

    async def _read(self, request: web.Request) -> TopicResource:
        return TopicResource.parse(await read_json(self._door, request))


async def read_json(door: Door, request: web.Request, limit_bytes: int = MAX_RESOURCE_BYTES) -> Any:
    """The body as JSON, whatever its content type says: curl does not say it."""
    claim = door.gate.claim()
    try:
        body = await door.bodies.read(request, limit_bytes, claim)
        return msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Refusal("invalid-json", f"The body is no JSON: {error}.") from error
    finally:
        claim.release()


def json_answer(document: Any, *, status: int = 200) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(document), content_type=JSON)


def topic_answer(topic: TopicResource, *, is_new: bool = False, name: str = "") -> web.Response:
    response = json_answer(topic.document(), status=201 if is_new else 200)
    response.headers[hdrs.ETAG] = etag_of(topic)
    if is_new:
        response.headers[hdrs.LOCATION] = f"/v1/topics/{name}"
    return response


def etag_of(topic: TopicResource) -> str:
    return f'"{topic.metadata.resource_version}"'


def parse_etag(text: str) -> int:
    revision = text.removeprefix("W/").strip('"')
    if revision.isascii() and revision.isdigit() and len(revision) <= 18:
        return int(revision)
    raise Refusal("precondition-failed", f"If-Match {text[:40]!r} is no ETag of a topic.")


def parse_policy(text: str | None) -> DeletionPolicy | None:
    if text is None:
        return None
    try:
        return DeletionPolicy(text)
    except ValueError as error:
        raise Refusal(
            "invalid-request", f"policy={text[:40]!r}: write Retain, Delete or DeleteIfEmpty."
        ) from error


def format_page_token(name: str) -> str:
    return base64.urlsafe_b64encode(name.encode()).rstrip(b"=").decode()


def parse_page_token(text: str) -> str:
    try:
        padded = text + "=" * (-len(text) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise Refusal("invalid-request", "page_token is none that a list answered with.") from error
