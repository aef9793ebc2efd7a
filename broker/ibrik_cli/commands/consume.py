"""`ibrik consume`: print what is there, and with --follow what comes."""

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from ibrik_cli.options import DEFAULT_SERVER, Server, TopicName, examples
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
        )
    )(consume)


def consume(
    topic: TopicName,
    *,
    from_: Annotated[
        str, typer.Option("--from", help="earliest, latest, an offset, or a time in RFC 3339.")
    ] = "earliest",
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
    """Print messages: offset, time, key, value. Reads on its own; moves nobody's cursor."""
    import asyncio

    from ibrik_cli.session import open_client

    printer = Printer(format)

    async def run() -> None:
        async with open_client(server, deadline_s=30) as client:
            printer.has_partitions = len(await client.ranges(topic)) > 1
            async for message in choose(client, topic, from_, follow, partition):
                printer.print(message)
                if max_messages is not None and printer.count >= max_messages:
                    break

    with suppress(KeyboardInterrupt):  # The usual end of --follow.
        asyncio.run(run())
    printer.finish()


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
