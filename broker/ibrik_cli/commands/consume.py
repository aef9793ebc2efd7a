"""`ibrik consume`: print what is there, and with --follow what comes.

Without --subscription it reads by offset and moves nobody's cursor.
"""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import DEFAULT_SERVER, Server, examples
from ibrik_cli.records import OutputFormat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ibrik_client import Client, Gap, Message

MAX_KEY_WIDTH = 28


def register(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "ibrik consume orders --from earliest --follow",
            "ibrik consume orders --partition 0 --from 17 --max 10 --format json",
            "ibrik consume --subscription billing --max 10",
        )
    )(consume)


def consume(
    topic: Annotated[str, typer.Argument(metavar="[TOPIC]", help="Name of the topic.")] = "",
    *,
    subscription: Annotated[
        str, typer.Option("--subscription", help="Lease its messages and acknowledge them.")
    ] = "",
    nack: Annotated[
        bool, typer.Option("--nack", help="Give them back instead; with --subscription.")
    ] = False,
    from_: Annotated[
        str | None,
        typer.Option(
            "--from",
            help="earliest (the default), latest, an offset, or a time in RFC 3339.",
        ),
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Go on with what comes.")] = False,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="This partition only.")
    ] = None,
    max_messages: Annotated[
        int | None, typer.Option("--max", min=1, help="End after so many messages.")
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        OutputFormat, typer.Option("--format", help="text, the value alone, or JSON lines.")
    ] = OutputFormat.TEXT,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Print messages: offset, time, key, value. Moves only the cursor of --subscription."""
    import asyncio

    printer = Printer(format)
    if subscription:
        if topic or from_ is not None or partition is not None:
            raise Failure(
                "--subscription stands for a topic and a place: leave TOPIC, --from and --partition"
                " out, or move it with: ibrik subscription seek",
                WRONG_USAGE,
            )
        asyncio.run(
            lease(
                server, printer, subscription, follow=follow, max_messages=max_messages, nack=nack
            )
        )
        return
    if not topic or nack:
        raise Failure("name a TOPIC, or a --subscription (--nack needs one)", WRONG_USAGE)
    with suppress(KeyboardInterrupt):  # The usual end of --follow.
        asyncio.run(
            read(
                server,
                printer,
                topic,
                from_=from_ or "earliest",
                follow=follow,
                partition=partition,
                max_messages=max_messages,
            )
        )
    printer.finish()


async def read(
    server: str,
    printer: "Printer",
    topic: str,
    *,
    from_: str,
    follow: bool,
    partition: int | None,
    max_messages: int | None,
) -> None:
    """Print what lies in a topic, and with `follow` what comes."""
    from ibrik_cli.session import open_client

    async with open_client(server, deadline_s=30) as client:
        printer.has_partitions = len(await client.ranges(topic)) > 1
        async for message in choose(client, topic, from_, follow, partition):
            printer.print(message)
            if max_messages is not None and printer.count >= max_messages:
                break


async def lease(
    server: str,
    printer: "Printer",
    subscription: str,
    *,
    follow: bool,
    max_messages: int | None,
    nack: bool,
) -> None:
    """Print what a subscription hands out, and settle it."""
    from ibrik_cli.consuming import Consumer
    from ibrik_cli.output import messages_text, say
    from ibrik_cli.session import open_client

    async with open_client(server, deadline_s=30) as client:
        consumer = Consumer(client, subscription, printer.print, gives_back=nack)
        lag = await client.admin.lag(subscription)
        printer.has_partitions = len(lag["partitions"]) > 1
        try:
            await consumer.run(max_messages=max_messages, follow=follow)
        finally:
            say(f"{messages_text(consumer.count)} {'given back' if nack else 'acknowledged'}")
            if consumer.stale_count:
                say(f"{messages_text(consumer.stale_count)} came too late and will come again")


class Printer:
    """Prints messages and remembers where to go on."""

    def __init__(self, form: OutputFormat) -> None:
        self.form = form
        self.has_partitions = False
        self.count = 0
        self.next_offsets: dict[int, int] = {}
        self._key_width = 0

    def print(self, message: "Message") -> None:
        self.count += 1
        self.next_offsets[message.partition] = message.offset + 1
        if self.form is OutputFormat.VALUE:
            sys.stdout.buffer.write((message.value or b"") + b"\n")
            sys.stdout.buffer.flush()
            return
        key = key_text(message)
        self._key_width = max(self._key_width, min(len(key), MAX_KEY_WIDTH))
        line = message_line(message, self.form, self.has_partitions, self._key_width)
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def finish(self) -> None:
        from ibrik_cli.output import messages_text, say

        if self.has_partitions:
            places = ", ".join(f"{p}/{o}" for p, o in sorted(self.next_offsets.items()))
        else:
            places = ", ".join(map(str, self.next_offsets.values()))
        say(messages_text(self.count) + (f", next offset {places}" if places else ""))


def key_text(message: "Message") -> str:
    from ibrik_cli.records import readable

    return "" if message.key is None else f"key={readable(message.key)}"


def message_line(
    message: "Message", form: OutputFormat, has_partitions: bool, key_width: int = 0
) -> str:
    """`12  10:00:04.410  key=7  {"order_id":102}`, or the message as one line of JSON.

    `key_width` keeps the column of keys, so that values stand below each other.
    """
    from ibrik_cli.output import clock_text
    from ibrik_cli.records import message_document, readable

    if form is OutputFormat.JSON:
        import json

        return json.dumps(message_document(message), ensure_ascii=False)
    place = f"{message.partition}/{message.offset}" if has_partitions else str(message.offset)
    key = key_text(message).ljust(key_width)
    cells = [place, clock_text(message.timestamp), *([key] if key else []), readable(message.value)]
    return "  ".join(cells)


async def choose(
    client: "Client", topic: str, from_: str, follow: bool, partition: int | None
) -> "AsyncIterator[Message]":
    """The messages that the options ask for."""
    start: int | str = int(from_) if from_.isdigit() else from_
    if follow and partition is None:
        begin: str | list[int] = from_
        if isinstance(start, int):
            begin = [min(max(start, r.earliest), r.latest) for r in await client.ranges(topic)]
        async for message in client.follow(topic, begin, on_gap=report_gap):
            yield message
        return
    wanted = [r.partition for r in await client.ranges(topic)] if partition is None else [partition]
    for each in wanted:
        messages = tail(client, topic, each, start) if follow else client.scan(topic, each, start)
        async for message in messages:
            yield message


async def tail(
    client: "Client", topic: str, partition: int, start: int | str
) -> "AsyncIterator[Message]":
    """One partition from `start` on, for ever."""
    while True:
        result = await client.read(topic, partition, start, wait_s=20)
        for message in result.messages:
            yield message
        start = result.next_offset


def report_gap(gap: "Gap") -> None:
    from ibrik_cli.output import say

    say(
        f"gap: {gap.topic}/{gap.partition} offsets {gap.from_offset} to {gap.to_offset - 1} "
        f"are gone ({gap.reason})"
    )
