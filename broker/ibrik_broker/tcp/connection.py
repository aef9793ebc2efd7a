"""One client of the TCP door: bytes in, commands to the engine, replies out in order.

Lives in callbacks of the event loop. Publishing costs no task and no future: a run of messages is
one request, and the engine calls back. `patience.py` says when a client takes too long.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import cast

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.messages import Outcome
from ibrik_broker.partitions.refusals import shutting_down
from ibrik_broker.tcp.context import TcpContext
from ibrik_broker.tcp.fetch import Fetcher
from ibrik_broker.tcp.patience import Patience
from ibrik_broker.tcp.pipeline import Pipeline, Slot
from ibrik_broker.tcp.publish import (
    encode_outcome,
    encode_refusal,
    find_partition,
    held_bytes,
    split_by_size,
    submit,
    too_large,
)
from ibrik_broker.telemetry.logs import get_logger
from ibrik_wire import (
    Command,
    CommandParser,
    Fetch,
    Invalid,
    Ping,
    Publish,
    encode_failure,
    encode_pong,
)

LINGER_SECONDS = 1.0
"""How long a client has, after its last reply, to close its end before the broker does."""

FETCHES_PER_TURN = 64
"""Fetches of one client before the event loop looks after everyone else: about a millisecond."""

log = get_logger("ibrik.tcp")


class Connection(asyncio.Protocol):
    def __init__(self, context: TcpContext, connections: set["Connection"]) -> None:
        self._context = context
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._parser = CommandParser(payload_bytes_max=context.limits.connection_bytes)
        self._pipeline = Pipeline()
        self._fetcher = Fetcher(context.engine, context.decoded)
        self._patience = Patience(context.limits, self._loop.time())
        self._unacknowledged_bytes = 0
        self._arriving_bytes = 0
        self._held_back: list[Command] | None = None
        """Commands that wait while the topic of the first one is being created."""
        self._is_reading = True
        self._is_write_paused = False
        self._is_fetching = False
        self._is_flush_due = False
        self._has_client_ended = False  # it sends no more
        self._is_ending = False  # we end when every reply is written
        self._linger_until: float | None = None  # our end is written; the client may close its own

    # --- called by the transport ------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        limits, counters = self._context.limits, self._context.counters
        if len(self._connections) >= limits.connections:
            counters.refused += 1
            text = f"The broker has {limits.connections} connections, its limit. Try again later."
            self._transport.write(encode_failure("too-many-connections", text))
            self._transport.close()
            self._parser.close()
            return
        counters.accepted += 1
        self._connections.add(self)
        self._transport.set_write_buffer_limits(high=limits.write_buffer_bytes)

    def data_received(self, data: bytes) -> None:
        commands = self._parser.feed(data)
        self._patience.on_bytes(
            self._loop.time(), len(data), bool(commands), self._parser.is_between_commands
        )
        if self._held_back is not None:
            self._held_back += commands
        else:
            self._carry_out(commands)
        self._count_arriving()
        self._update_reading()

    def eof_received(self) -> bool:
        """The client has said all; it may still want to hear its replies (`nc` does)."""
        if not self._parser.is_between_commands:
            self._fail("invalid-request", "The stream ended inside a command; nothing is kept.")
        self._has_client_ended = True
        self._schedule_flush()
        return True

    def pause_writing(self) -> None:
        self._is_write_paused = True
        self._patience.on_write_paused(self._loop.time())
        self._update_reading()

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._patience.on_write_resumed(self._loop.time())
        self._schedule_flush()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.discard(self)
        self._transport = None
        self._parser.close()
        self._count_arriving()
        self._pipeline.clear()
        self._held_back = None
        self._context.changed.set()

    # --- called by the door -----------------------------------------------------------------

    def finish(self) -> None:
        """The broker stops: refuse what is new, answer what is in flight, then end the stream."""
        self._schedule_flush()

    def abort(self) -> None:
        if self._transport is not None:
            self._transport.abort()

    def look_at_clock(self, now: float) -> None:
        """End a client that is silent, too slow to send, or too slow to read."""
        if self._linger_until is not None:
            if now >= self._linger_until:
                self.abort()
            return
        is_busy = bool(self._pipeline) or self._held_back is not None
        verdict = self._patience.judge(now, is_busy=is_busy, is_reading=self._is_reading)
        match verdict:
            case None:
                return
            case "unread":
                self.abort()
            case "idle":
                self._is_ending = True
            case "slow":
                self._parser.close()
                self._fail("request-timeout", "The command took too long to arrive.")
                self._is_ending = True
        self._schedule_flush()

    # --- commands ---------------------------------------------------------------------------

    def _carry_out(self, commands: list[Command]) -> None:
        for index, command in enumerate(commands):
            match command:
                case Publish():
                    if not self._publish(command):
                        self._held_back = commands[index:]
                        return
                case Fetch():
                    self._pipeline.open(fetch=command)
                    self._schedule_flush()
                case Ping():
                    self._context.counters.pings += 1
                    self._reply(encode_pong())
                case Invalid(code, text, is_fatal):
                    self._fail(code, text)
                    self._is_ending = self._is_ending or is_fatal

    def _publish(self, publish: Publish) -> bool:
        """Hand a run to the engine; False when it has to wait for its topic to be created."""
        context, count = self._context, len(publish.payloads)
        if context.is_draining:
            self._refuse(shutting_down(), count)
            return True
        try:
            topic, partition = find_partition(context.engine, publish.target)
        except Refusal as refusal:
            if refusal.code == "unknown-topic" and context.create_topic is not None:
                self._start(self._create_topic(publish.target.topic))
                return False
            self._refuse(refusal, count)
            return True
        for fits, payloads in split_by_size(publish, topic.settings.max_message_bytes):
            if not fits:
                self._refuse(too_large(topic), len(payloads))
                continue
            size = held_bytes(payloads)
            self._unacknowledged_bytes += size
            context.unacknowledged_bytes += size
            slot = self._pipeline.open()
            submit(partition, payloads, partial(self._on_outcome, slot, len(payloads), size))
        return True

    def _on_outcome(self, slot: Slot, count: int, size: int, outcome: Outcome) -> None:
        context = self._context
        self._unacknowledged_bytes -= size
        context.unacknowledged_bytes -= size
        slot.reply = encode_outcome(outcome, count)
        if outcome.refusal is None:
            context.counters.published += count
        else:
            context.counters.errors[outcome.refusal.code] += count
        if self._pipeline.has_reply:
            self._schedule_flush()

    async def _create_topic(self, name: str) -> None:
        """`--dev`: create the topic of the first held-back publish, then go on from there."""
        assert self._context.create_topic is not None
        refusal: Refusal | None = None
        try:
            await self._context.create_topic(name)
        except Refusal as refused:
            refusal = refused
        except Exception:
            log.exception("topic not created", topic=name)
            refusal = Refusal("internal", f"The topic '{name}' could not be created.")
        commands, self._held_back = self._held_back, None
        if commands is None:  # the client left
            return
        first = commands[0]
        if refusal is not None and isinstance(first, Publish):
            self._refuse(refusal, len(first.payloads))
            commands = commands[1:]
        self._carry_out(commands)
        self._schedule_flush()

    def _refuse(self, refusal: Refusal, count: int) -> None:
        self._context.counters.errors[refusal.code] += count
        self._reply(encode_refusal(refusal) * count)

    def _fail(self, code: str, text: str) -> None:
        self._context.counters.errors[code] += 1
        self._reply(encode_failure(code, text))

    def _start(self, work: Coroutine[None, None, None]) -> None:
        """Run a task of this connection; a defect in it ends the connection and nothing else."""

        async def guarded() -> None:
            try:
                await work
            except Exception:
                log.exception("connection failed")
                self.abort()

        self._context.tasks.create_task(guarded())

    # --- replies ----------------------------------------------------------------------------

    def _reply(self, reply: bytes) -> None:
        self._pipeline.open(reply)
        self._schedule_flush()

    def _schedule_flush(self) -> None:
        """Write once per turn of the loop: all that a group commit completed goes in one write."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._transport is None:
            return
        if replies := self._pipeline.take_replies():
            self._transport.write(replies)
            self._patience.on_reply(self._loop.time())
        if self._pipeline.next_fetch() and not self._is_fetching and not self._is_write_paused:
            self._is_fetching = True
            self._start(self._fetch())
        if not self._pipeline and self._held_back is None:
            self._end_when_due()
        self._update_reading()

    async def _fetch(self) -> None:
        """Answer the fetches at the head, one after the other, until something else is due."""
        fetched = 0
        while (slot := self._pipeline.next_fetch()) and not self._is_write_paused:
            fetched += 1
            if fetched % FETCHES_PER_TURN == 0:
                await asyncio.sleep(0)  # from memory nothing is waited for; others want their turn
            assert slot.fetch is not None
            try:
                slot.reply = await self._fetcher.fetch(slot.fetch)
                self._context.counters.fetched += 1
            except Refusal as refusal:
                self._context.counters.errors[refusal.code] += 1
                slot.reply = encode_refusal(refusal)
            except Exception:
                log.exception("fetch failed", topic=slot.fetch.target.topic)
                self._context.counters.errors["internal"] += 1
                slot.reply = encode_failure("internal", "The broker hit a defect; see its log.")
            if self._transport is None:
                break
            self._transport.write(self._pipeline.take_replies())
        self._is_fetching = False
        self._schedule_flush()

    def _end_when_due(self) -> None:
        """Every reply is written: end the stream when the client or the broker wants to."""
        assert self._transport is not None
        if self._has_client_ended:
            self._transport.close()
        elif (self._is_ending or self._context.is_draining) and self._linger_until is None:
            # Only our half: closing a socket that holds unread bytes resets the connection, and a
            # reset can destroy acknowledgements that the client has not read yet.
            self._linger_until = self._loop.time() + LINGER_SECONDS
            self._parser.close()
            self._transport.write_eof()

    def _update_reading(self) -> None:
        """Pause or resume reading from the client; the only place that does."""
        if self._transport is None or self._transport.is_closing():
            return
        may_read = not self._is_write_paused and self._held_back is None and not self._is_full()
        if may_read and not self._is_reading:
            self._is_reading = True
            self._patience.on_reading_resumed(self._loop.time())
            self._transport.resume_reading()
        elif self._is_reading and not may_read:
            self._is_reading = False
            self._context.counters.pauses += 1
            self._transport.pause_reading()

    def _count_arriving(self) -> None:
        """Keep the bound on half-received payloads over all connections.

        Pausing would not do: when all that is held are halves, nobody could ever complete one.
        """
        context, arriving = self._context, self._parser.pending_bytes
        grown = arriving - self._arriving_bytes
        self._arriving_bytes = arriving
        context.arriving_bytes += grown
        if grown > 0 and context.arriving_bytes > context.limits.in_flight_bytes:
            self._parser.close()
            self._count_arriving()
            self._fail("buffer-full", "Too many messages are arriving at once. Try again later.")
            self._is_ending = True

    def _is_full(self) -> bool:
        """Only who holds something pauses: its own acknowledgements will wake it again."""
        context, held = self._context, self._unacknowledged_bytes
        if held >= context.limits.connection_bytes:
            return True
        return held > 0 and context.unacknowledged_bytes >= context.limits.in_flight_bytes
