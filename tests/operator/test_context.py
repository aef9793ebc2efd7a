"""Writing a status: once for what is new, also before the API server's event of it comes."""

from typing import Any

from aiohttp import web

from ibrik_operator.brokers import Brokers
from ibrik_operator.conditions.condition import Verdict
from ibrik_operator.credentials import Credentials
from ibrik_operator.handlers.watching import Watching
from ibrik_operator.keys import Key
from ibrik_operator.observations import Observations
from ibrik_operator.reconcile.context import Context
from ibrik_operator.settings import Settings
from ibrik_operator.world import World
from tests.operator.test_kube import connected
from tests.support.resources import topic

ORDERS = Key("Topic", "shop", "orders")
READY = [Verdict("Ready", "True", "Ready", "")]


def nothing(*_: Any) -> None:
    """For what this does not use."""


async def refresh() -> None:
    """The same."""


async def test_what_was_written_is_not_written_again_before_its_event() -> None:
    async with connected() as (kube, server):
        world = World()
        world.put(topic("orders", resourceVersion="1"))
        watching = Watching(world, nothing)
        context = Context(
            kube, Brokers(kube, world), world, Observations(), Credentials(), Settings(), nothing,
            lambda: 1_800_000_000_000, refresh, watching.wrote,
        )  # fmt: skip

        def stored(_: web.Request) -> web.Response:
            status = server.asked[-1][4]["status"]
            return web.json_response(topic("orders", resourceVersion="2") | {"status": status})

        server.answer = stored
        for count in (1, 1, 2, 2):
            known = world.get(ORDERS)
            assert known is not None
            await context.write_status(known, {"subscriptions": count}, READY)
        written = [asked[4]["status"]["subscriptions"] for asked in server.asked]
        assert written == [1, 2]
