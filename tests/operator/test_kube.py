"""The door to the API server, against a server of its own: pages, bodies, and what errors mean."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from kubernetes.aio import client

from ibrik_operator.keys import Key
from ibrik_operator.kube import (
    Kube,
    KubeConflict,
    KubeError,
    KubeExists,
    KubeForbidden,
    KubeInvalid,
    KubeUnavailable,
)

ORDERS = Key("Topic", "shop", "orders")
PATH = "/apis/ibrik.dev/v1beta1/namespaces/shop/topics"


class Server:
    """Answers as told, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, dict[str, str], str, Any]] = []
        self.answer: Callable[[web.Request], web.Response] = lambda _: web.json_response({})

    async def handle(self, request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        sort = request.headers["Content-Type"]
        self.asked.append((request.method, request.path, dict(request.query), sort, body))
        return self.answer(request)


@asynccontextmanager
async def connected() -> AsyncIterator[tuple[Kube, Server]]:
    server, web_app = Server(), web.Application()
    web_app.router.add_route("*", "/{path:.*}", server.handle)
    async with TestServer(web_app) as running:
        kube = Kube(client.ApiClient(client.Configuration(host=str(running.make_url("")))))
        try:
            yield kube, server
        finally:
            await kube.close()


async def test_a_list_is_read_page_by_page_and_says_its_kind() -> None:
    def page(request: web.Request) -> web.Response:
        number = int(request.query.get("continue", "0"))
        following = {"continue": str(number + 1)} if number < 2 else {}
        items = [{"metadata": {"name": f"t{number}"}}]
        return web.json_response({"metadata": following, "items": items})

    async with connected() as (kube, server):
        server.answer = page
        found = await kube.list("Topic", "shop", "a=b")
    assert [one["metadata"]["name"] for one in found] == ["t0", "t1", "t2"]
    assert {(one["apiVersion"], one["kind"]) for one in found} == {("ibrik.dev/v1beta1", "Topic")}
    assert {path for _, path, *_ in server.asked} == {PATH}
    assert {query["labelSelector"] for _, _, query, *_ in server.asked} == {"a=b"}


async def test_what_is_applied_is_ours_and_a_status_is_of_this_very_object() -> None:
    document = {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "Topic",
        "metadata": {"name": "orders", "namespace": "shop", "uid": "u1"},
        "status": {"observedGeneration": 3},
    }
    async with connected() as (kube, server):
        await kube.apply(document)
        await kube.apply_status(document)
    (first, second) = server.asked
    owner = {"fieldManager": "ibrik-operator", "force": "true"}
    assert first == ("PATCH", f"{PATH}/orders", owner, "application/apply-patch+yaml", document)
    assert second[:3] == ("PATCH", f"{PATH}/orders/status", owner)
    assert second[4] == document


async def test_a_status_that_met_a_conflict_is_not_taken_for_written() -> None:
    """Nothing would write it again: the object looks the same at the next event."""
    document = {"kind": "Topic", "metadata": {"name": "orders", "namespace": "shop"}, "status": {}}
    async with connected() as (kube, server):
        server.answer = lambda _: web.json_response({"message": "its sentence"}, status=409)
        with pytest.raises(KubeConflict):
            await kube.apply_status(document)
        server.answer = lambda _: web.json_response({"message": "not found"}, status=404)
        assert await kube.apply_status(document) is None


async def test_deleting_names_the_very_object() -> None:
    async with connected() as (kube, server):
        await kube.delete(ORDERS, uid="u1", propagation="Orphan")
    ((method, path, _, _, body),) = server.asked
    assert (method, path) == ("DELETE", f"{PATH}/orders")
    assert body == {"propagationPolicy": "Orphan", "preconditions": {"uid": "u1"}}


async def test_what_is_gone_is_none_where_that_is_fine() -> None:
    async with connected() as (kube, server):
        server.answer = lambda _: web.json_response({"message": "not found"}, status=404)
        assert await kube.get(ORDERS) is None
        assert await kube.patch(ORDERS, {}) is None
        await kube.delete(ORDERS)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, KubeInvalid),
        (401, KubeForbidden),
        (403, KubeForbidden),
        (408, KubeUnavailable),
        (409, KubeConflict),
        (422, KubeInvalid),
        (429, KubeUnavailable),
        (500, KubeUnavailable),
        (503, KubeUnavailable),
    ],
)
async def test_an_error_says_what_to_do_in_the_servers_own_words(
    status: int, error: type[KubeError]
) -> None:
    async with connected() as (kube, server):
        server.answer = lambda _: web.json_response({"message": "its sentence"}, status=status)
        with pytest.raises(error, match=r"^its sentence$"):
            await kube.get(ORDERS)


async def test_only_a_name_that_is_taken_means_that_it_is_there() -> None:
    """A quota that somebody else counts at this moment is a 409, too."""
    async with connected() as (kube, server):
        for reason, error in (("AlreadyExists", KubeExists), ("Conflict", KubeConflict)):
            body = {"message": "its sentence", "reason": reason}
            server.answer = lambda _, body=body: web.json_response(body, status=409)  # type: ignore[misc]
            with pytest.raises(KubeConflict) as caught:
                await kube.create({"kind": "Topic", "metadata": {"name": "a", "namespace": "b"}})
            assert type(caught.value) is error


async def test_when_to_come_again_is_what_the_server_says() -> None:
    async with connected() as (kube, server):
        server.answer = lambda _: web.Response(
            status=429, headers={"Retry-After": "7"}, text="busy"
        )
        with pytest.raises(KubeUnavailable, match="busy") as caught:
            await kube.get(ORDERS)
    assert caught.value.after_s == 7


async def test_a_server_that_is_not_there_means_later() -> None:
    kube = Kube(client.ApiClient(client.Configuration(host="http://127.0.0.1:1")))
    try:
        with pytest.raises(KubeUnavailable, match="GET"):
            await kube.get(ORDERS)
    finally:
        await kube.close()
