"""What all handlers of a door share: the engine, the limits, the bodies in flight.

Made once by `data.py`; holds no rule but how a request names a topic and a partition.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from aiohttp import HttpVersion11, hdrs, web

from ibrik_api.errors import Refusal
from ibrik_api.names import check_name
from ibrik_broker.http.bodies import BodyGate, BodyReader
from ibrik_broker.http.problems import refuse
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.messages import Acks, Message, Receipt
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic
from ibrik_broker.settings import LimitSettings


@dataclass(frozen=True, slots=True)
class Door:
    engine: Engine
    limits: LimitSettings
    gate: BodyGate
    bodies: BodyReader

    def topic(self, request: web.Request) -> Topic:
        """The topic in the path. Raises Refusal `invalid-name` or `unknown-topic`."""
        name = request.match_info["topic"]
        try:
            return self.engine.topic(name)
        except Refusal:
            check_name(name)  # says more about a name that no topic can have
            raise

    def topic_to_publish(self, request: web.Request) -> Topic:
        """The topic in the path, when the broker takes messages at all (the disk is not full)."""
        topic = self.topic(request)
        refusal = self.engine.writer.refusal
        if refusal is not None:
            raise refusal
        return topic

    async def publish(self, topic: Topic, messages: Sequence[Message], acks: Acks) -> list[Receipt]:
        """Publish, and give up waiting for the answer at the broker's limit."""
        return await self.in_time(self.engine.publish(topic, messages, acks))

    async def in_time(self, receipts: Awaitable[list[Receipt]]) -> list[Receipt]:
        """Wait for receipts at most the broker's limit. What was accepted may still be appended."""
        try:
            async with asyncio.timeout(self.limits.request_timeout_ms / 1000):
                return await receipts
        except TimeoutError as error:
            raise Refusal(
                "not-ready",
                f"The log did not answer within {self.limits.request_timeout_ms} ms. The messages"
                " may still be appended: repeating them with the same ids is safe.",
            ) from error

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
            admit(request)
        except Refusal as refusal:
            response = refuse(refusal)
            response.force_close()  # whether the body still comes is the client's choice
            return response
        if request.version == HttpVersion11:
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            request.writer.output_size = 0  # what follows is still the first answer
        return None


def _check_expectation(request: web.Request) -> None:
    if request.headers[hdrs.EXPECT].lower() != "100-continue":
        raise Refusal("expectation-failed", "Only `Expect: 100-continue` is understood.")
