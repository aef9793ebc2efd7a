"""What the brokers of a pool ask of each other, on the admin port: look again, take a copy.

Only who has the token of the pool is heard; it is made from a key in the database.
"""

from hmac import compare_digest

from aiohttp import web

from ibrik_api.desired import DesiredRequest, DesiredResponse
from ibrik_api.errors import Refusal
from ibrik_broker.http.admin import Apply, apply_desired
from ibrik_broker.http.door import Door
from ibrik_broker.http.operations import BYTES, JSON, Answer, Body, Handler, Operation, Parameter
from ibrik_broker.pool.following import Following
from ibrik_broker.pool.peers import POOL_TOKEN
from ibrik_broker.pool.pool import Pool
from ibrik_broker.registrations.spreading import DESIRED_PATH
from ibrik_broker.topics.copies import decode_message

TAG = "pool"
MESSAGE = "application/msgpack"
MAX_COPY_BYTES = 64 * 2**20


class PoolHandlers:
    def __init__(self, door: Door, following: Following, apply: Apply) -> None:
        self._apply = apply
        self._door = door
        self._following = following

    async def refresh(self, _request: web.Request) -> web.Response:
        """Another broker changed something; all of it is known here when this is answered."""
        await self._following.look()
        return web.Response(status=204)

    async def apply(self, request: web.Request) -> web.Response:
        """What another broker was asked for and this one serves."""
        await self._following.look()  # channels and topics that it names were written just now
        return await apply_desired(self._door, request, self._apply)

    async def copy(self, request: web.Request) -> web.Response:
        """A message that another broker delivers into a topic of this one."""
        topic = self._door.topic(request)
        claim = self._door.gate.claim()
        try:
            body = await self._door.bodies.read(request, MAX_COPY_BYTES, claim)
            await self._door.engine.publish(topic, [decode_message(body)])
        finally:
            claim.release()
        return web.Response(status=204)


def pool_operations(door: Door, pool: Pool, following: Following, apply: Apply) -> list[Operation]:
    """`apply` carries resources out here, whoever owns what."""
    handlers = PoolHandlers(door, following, apply)
    return [
        Operation(
            "applyDesiredHere",
            "PUT",
            DESIRED_PATH,
            TAG,
            "Resources that another broker of the pool brings to the owner of their topics.",
            for_peers(handlers.apply, pool),
            (Answer(200, "One outcome per resource, in order.", (Body(JSON, DesiredResponse),)),),
            ("unauthorized", "invalid-json", "invalid-resource", "metadata-unavailable"),
            bodies=(Body(JSON, DesiredRequest),),
        ),
        Operation(
            "refreshPool",
            "POST",
            "/admin/v1/pool:refresh",
            TAG,
            "Another broker of the pool changed something: look at the database.",
            for_peers(handlers.refresh, pool),
            (Answer(204, "What was written before is known here."),),
            ("unauthorized", "metadata-unavailable"),
        ),
        Operation(
            "copyMessage",
            "POST",
            "/admin/v1/topics/{topic}:copy",
            TAG,
            "A message that another broker of the pool delivers into a topic of this one.",
            for_peers(handlers.copy, pool),
            (Answer(204, "It is in the topic, once."),),
            ("unauthorized", "unknown-topic", "topic-detached", "storage-full"),
            parameters=(Parameter("topic", "path", "Name of the topic."),),
            bodies=(Body(MESSAGE, BYTES),),
        ),
    ]


def for_peers(handler: Handler, pool: Pool) -> Handler:
    async def checked(request: web.Request) -> web.StreamResponse:
        if not is_from_peer(request, pool):
            raise Refusal("unauthorized", "This is for the brokers of the pool only.")
        return await handler(request)

    return checked


def is_from_peer(request: web.Request, pool: Pool) -> bool:
    given = request.headers.get(POOL_TOKEN, "").encode(errors="replace")
    return compare_digest(given, pool.token.encode())
