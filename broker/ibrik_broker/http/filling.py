"""Lists of a pool: every broker knows all rows and its own numbers; the others fill theirs in.

What belongs to a broker that does not answer is listed without its numbers.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_broker.http.crud import json_answer
from ibrik_broker.http.operations import Handler
from ibrik_broker.metadata.brokers import BrokerRow
from ibrik_broker.pool.peers import POOL_TOKEN, Peers
from ibrik_broker.registrations.views import ELSEWHERE

Item = Mapping[str, Any]
LIST_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Kind:
    key: Callable[[Item], str]
    is_elsewhere: Callable[[Item], bool]


def _name(item: Item) -> str:
    return str(item["metadata"]["name"])


TOPICS = Kind(
    lambda item: str(item["spec"].get("topicName") or _name(item)),
    lambda item: "messages" not in item["status"],
)
SUBSCRIPTIONS = Kind(
    lambda item: f"{_name(item)}/{item['metadata'].get('namespace')}",
    lambda item: bool(item["status"].get("state") == ELSEWHERE),
)
LISTS = {"listTopics": TOPICS, "listSubscriptions": SUBSCRIPTIONS}
"""By the name of the operation."""


def filled(handler: Handler, kind: Kind, peers: Peers) -> Handler:
    """The list of the handler, with what only other brokers know."""

    async def fill(request: web.Request) -> web.StreamResponse:
        response = await handler(request)
        if POOL_TOKEN in request.headers or not isinstance(response, web.Response):
            return response
        assert isinstance(response.body, bytes)
        page = msgspec.json.decode(response.body)
        if not any(kind.is_elsewhere(item) for item in page["items"]):
            return response
        asked = [_ask(peers, broker, request) for broker in peers.alive()]
        known = {
            kind.key(item): item
            for theirs in await asyncio.gather(*asked)
            for item in theirs
            if not kind.is_elsewhere(item)
        }
        page["items"] = [
            known.get(kind.key(item), item) if kind.is_elsewhere(item) else item
            for item in page["items"]
        ]
        return json_answer(page)

    return fill


async def _ask(peers: Peers, broker: BrokerRow, request: web.Request) -> list[Item]:
    try:
        answer = await peers.call(
            broker,
            "GET",
            request.raw_path,
            port=broker.http_port,
            seconds=LIST_SECONDS,
        )
    except Refusal:
        return []
    items: list[Item] = msgspec.json.decode(answer)["items"]
    return items
