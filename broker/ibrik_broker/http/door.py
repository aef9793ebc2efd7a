"""What all handlers of a door share: the engine, the limits, the bodies in flight.

Made once by `data.py`; holds no rule but how a request names a topic and a partition.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from aiohttp import HttpVersion11, hdrs, web

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_api.resources.topic import Publishers
from ibrik_broker.auth.admission import Admission
from ibrik_broker.http.bodies import BodyGate, BodyReader
from ibrik_broker.http.patience import Patience
from ibrik_broker.http.problems import refuse
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.settings import LimitSettings


class Admitted(NamedTuple):
    """A request that may publish: where to, and who it is from when the topic asks for that."""

    topic: Topic
    publisher: bytes | None
    """Id of the registered publisher; None where anyone may publish."""


@dataclass(frozen=True, slots=True)
class Door:
    engine: Engine
    limits: LimitSettings
    gate: BodyGate
    bodies: BodyReader
    patience: Patience
    create_topic: Callable[[str], Awaitable[None]] | None = None
    """Makes a topic on first use (`--dev`); None refuses unknown topics."""
    admission: Admission | None = None
    """Tells registered publishers from others; None at a door where nothing is published."""

    def topic(self, request: web.Request) -> Topic:
        """The topic in the path. Raises Refusal `invalid-name` or `unknown-topic`."""
        name = request.match_info["topic"]
        try:
            return self.engine.topic(name)
        except Refusal:
            check_name(name)  # says more about a name that no topic can have
            raise

    def admit(self, request: web.Request) -> Admitted:
        """The topic in the path, when messages are taken at all and from whoever sends this one.

        Raises Refusal `publisher-not-registered`, and what the disk says when it is full.
        """
        topic = self.topic(request)
        publisher = None
        if topic.spec.publishers is Publishers.REGISTERED:
            assert self.admission is not None, "nothing is published at this door"
            row = self.admission.admit(topic.name, request.headers, request.remote)
            publisher = row.id.encode("ascii")
        refusal = self.engine.writer.refusal
        if refusal is not None:
            raise refusal
        return Admitted(topic, publisher)

    async def create_on_first_use(self, request: web.Request, refusal: Refusal) -> Admitted:
        """What follows a refusal to publish to a topic: with `--dev` the topic is made."""
        if self.create_topic is None or refusal.code != "unknown-topic":
            raise refusal
        await self.create_topic(request.match_info["topic"])
        return self.admit(request)

    def partition(self, request: web.Request) -> tuple[Topic, Partition]:
        topic = self.topic(request)
        text = request.match_info["partition"]
        if not (text.isascii() and text.isdigit() and len(text) <= 9):
            raise Refusal("invalid-request", f"{text[:40]!r} is no partition: write a number.")
        return topic, topic.partition(int(text))

    async def expect(
        self, request: web.Request, admit: Callable[[web.Request], object]
    ) -> web.StreamResponse | None:
        """Answer an Expect header: a refusal while the client still holds its body, or go on."""
        try:
            _check_expectation(request)
            await self._admit(request, admit)
        except Refusal as refusal:
            response = refuse(refusal)
            response.force_close()  # whether the body still comes is the client's choice
            return response
        await ask_for_body(request)
        return None

    async def _admit(self, request: web.Request, admit: Callable[[web.Request], object]) -> None:
        try:
            admit(request)
        except Refusal as refusal:
            await self.create_on_first_use(request, refusal)
            admit(request)


async def expect_body(request: web.Request) -> web.StreamResponse | None:
    """Answer an Expect header where nothing else can be refused before the body."""
    try:
        _check_expectation(request)
    except Refusal as refusal:
        return refuse(refusal)
    await ask_for_body(request)
    return None


async def ask_for_body(request: web.Request) -> None:
    if request.version == HttpVersion11:
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # what follows is still the first answer


def _check_expectation(request: web.Request) -> None:
    if request.headers[hdrs.EXPECT].lower() != "100-continue":
        raise Refusal("expectation-failed", "Only `Expect: 100-continue` is understood.")
