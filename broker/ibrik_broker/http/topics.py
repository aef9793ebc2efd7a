"""CRUD of topics and ids of producers. Bodies are the Topic resource, the ETag is its revision."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.resources.topic import DeletionPolicy
from ibrik_api.resources.topic import Topic as TopicResource
from ibrik_broker.http.crud import (
    json_answer,
    page_answer,
    parse_choice,
    parse_page,
    precondition,
    read_json,
    resource_answer,
    unchanged,
)
from ibrik_broker.http.door import Door
from ibrik_broker.topics.registry import Registry


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
        page = parse_page(request)
        topics = self._registry.list_topics(after=page.after, limit=page.limit)
        return page_answer(page, [(topic.topic_name, topic.document()) for topic in topics])

    async def create(self, request: web.Request) -> web.Response:
        """Make a topic. The same again changes nothing; other settings are a conflict."""
        resource = await self._read(request)
        name = check_name(resource.topic_name)
        is_new = self._registry.by_name(name) is None
        return topic_answer(await self._registry.create_topic(name, resource.spec), is_new=is_new)

    async def read(self, request: web.Request) -> web.Response:
        topic = self._registry.describe(self._door.topic(request).name)
        return unchanged(request, topic.metadata.resource_version) or topic_answer(topic)

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
        return topic_answer(topic, is_new=is_new)

    async def delete(self, request: web.Request) -> web.Response:
        """Delete as the topic's deletionPolicy says, or as `policy=` does."""
        name = check_name(request.match_info["topic"])
        policy = parse_choice(request, "policy", DeletionPolicy)
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
        is_known = self._registry.by_name(name) is not None
        return precondition(request, "topic", name, is_known=is_known)

    async def _read(self, request: web.Request) -> TopicResource:
        return TopicResource.parse(await read_json(self._door, request))


def topic_answer(topic: TopicResource, *, is_new: bool = False) -> web.Response:
    return resource_answer(
        topic.document(),
        topic.metadata.resource_version,
        created_at=f"/v1/topics/{topic.topic_name}" if is_new else None,
    )
