"""The door to the brokers, against a server of its own: what gathers travels together."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client

from ibrik_api.kubernetes import POOL_LABEL
from ibrik_operator import brokers as door
from ibrik_operator.brokers import MAX_TOGETHER, Brokers, BrokersUnavailable
from ibrik_operator.keys import Key
from ibrik_operator.kube import Kube
from ibrik_operator.world import World
from tests.support.resources import topic

POOL = Key("BrokerPool", "shop", "default")


class Server:
    """A broker's admin door and the API server with its token, both as far as is needed here."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.token = "current"
        self.may_answer = asyncio.Event()
        self.is_called = asyncio.Event()

    async def secret(self, _: web.Request) -> web.Response:
        tokens = {"current": "current", "previous": "previous"}
        data = {name: base64.b64encode(value.encode()).decode() for name, value in tokens.items()}
        return web.json_response({"data": data})

    async def desired(self, request: web.Request) -> web.Response:
        if request.headers["Authorization"] != f"Bearer {self.token}":
            problem = {"code": "unauthorized", "title": "no", "status": 401, "detail": "no"}
            return web.json_response(problem, status=401)
        resources = (await request.json())["resources"]
        self.calls.append([one["metadata"]["name"] for one in resources])
        self.is_called.set()
        await self.may_answer.wait()
        return web.json_response({"results": [_outcome(one) for one in resources]})


def _outcome(resource: dict[str, Any]) -> dict[str, Any]:
    metadata = resource["metadata"]
    return {
        "kind": resource["kind"],
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "result": "applied",
    }


@asynccontextmanager
async def connected(patch: pytest.MonkeyPatch) -> AsyncIterator[tuple[Brokers, Server]]:
    server, web_app, world = Server(), web.Application(), World()
    web_app.router.add_put("/admin/v1/desired", server.desired)
    web_app.router.add_get("/api/v1/namespaces/shop/secrets/{name}", server.secret)
    async with TestServer(web_app) as running:
        patch.setattr(door, "ADMIN_PORT", running.port)
        world.put(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": "ibrik-default-0",
                    "namespace": "shop",
                    "labels": {POOL_LABEL: "default"},
                },
                "status": {
                    "podIP": "127.0.0.1",
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
        kube = Kube(client.ApiClient(client.Configuration(host=str(running.make_url("")))))
        brokers = Brokers(kube, world)
        try:
            yield brokers, server
        finally:
            await brokers.close()
            await kube.close()


async def test_what_comes_during_a_call_travels_together_and_never_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with connected(monkeypatch) as (brokers, server), asyncio.TaskGroup() as group:
        first = group.create_task(brokers.apply(POOL, topic("first")))
        await server.is_called.wait()
        names = [f"t{n}" for n in range(MAX_TOGETHER + 5)]
        others = [group.create_task(brokers.apply(POOL, topic(name))) for name in names]
        await asyncio.sleep(0)  # Each has put itself in the queue.
        server.may_answer.set()
        assert (await first).name == "first"
        assert [(await one).name for one in others] == names
    assert server.calls == [["first"], names[:MAX_TOGETHER], names[MAX_TOGETHER:]]


async def test_pods_that_know_only_the_previous_token_are_reached_with_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with connected(monkeypatch) as (brokers, server):
        server.may_answer.set()
        server.token = "previous"
        assert (await brokers.apply(POOL, topic("one"))).result == "applied"
        server.token = "current"
        assert (await brokers.apply(POOL, topic("two"))).result == "applied"
    assert server.calls == [["one"], ["two"]]


async def test_a_cancelled_call_leaves_nobody_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(monkeypatch) as (brokers, server):
        carrier = asyncio.ensure_future(brokers.apply(POOL, topic("carrier")))
        await server.is_called.wait()
        waiting = asyncio.ensure_future(brokers.apply(POOL, topic("waiting")))
        await asyncio.sleep(0)
        carrier.cancel()
        with pytest.raises(asyncio.CancelledError):
            await carrier
        server.may_answer.set()
        assert (await waiting).name == "waiting"


async def test_a_pool_without_pods_means_later(monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(monkeypatch) as (brokers, _):
        with pytest.raises(BrokersUnavailable, match="big has no pods yet"):
            await brokers.apply(Key("BrokerPool", "shop", "big"), topic("one"))
