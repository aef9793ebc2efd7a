"""`ibrik produce`: publish a file or standard input, in batches, with a progress bar."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import DEFAULT_SERVER, Server, TokenFile, TopicName, examples
from ibrik_cli.records import InputFormat

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ibrik_cli.progress import Progress
    from ibrik_cli.records import Value
    from ibrik_client import Publisher


def register(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "echo '{\"order_id\":101}' | ibrik produce orders --key order_id",
            "ibrik produce flights --file flights.csv.zip --format csv --key carrier",
        )
    )(produce)


def produce(
    topic: TopicName,
    *,
    file: Annotated[str, typer.Option("--file", help="File or .zip; - is standard input.")] = "-",
    format: Annotated[  # noqa: A002 - the option's name
        InputFormat, typer.Option("--format", help="What one message is.")
    ] = InputFormat.LINES,
    whole: Annotated[bool, typer.Option("--whole", help="The whole input is one message.")] = False,
    key: Annotated[
        str | None, typer.Option("--key", help="JSON field or CSV column that is the key.")
    ] = None,
    partition: Annotated[
        int | None, typer.Option("--partition", min=0, help="Publish to this partition.")
    ] = None,
    acks: Annotated[str, typer.Option("--acks", help="durable, or none: do not wait.")] = "durable",
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.1, help="Messages a second at most.")
    ] = None,
    token_file: TokenFile = None,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Publish messages: each line of the input, each row, or the whole."""
    import asyncio

    from ibrik_cli.output import messages_text, say
    from ibrik_cli.progress import open_progress
    from ibrik_cli.session import open_client

    if acks not in ("durable", "none"):
        raise Failure(f"--acks {acks}: durable or none", WRONG_USAGE)
    if file != "-" and not Path(file).is_file():
        raise Failure(f"{file}: no such file")

    async def run(progress: "Progress") -> None:
        async with open_client(server, token_file=token_file, deadline_s=30) as client:
            values = read(file, format, key=key, is_whole=whole)
            async with client.publisher(topic, acks=acks) as publisher:
                await publish_all(publisher, values, partition, rate, progress)

    with open_progress(topic) as progress:
        asyncio.run(run(progress))
    say(f"{topic}: {messages_text(progress.count)}, {progress.rate_text()}")


def read(
    file: str, form: InputFormat, *, key: str | None, is_whole: bool
) -> "Iterator[list[Value]]":
    """The messages of a file, which stays open as long as they are asked for."""
    from ibrik_cli.records import open_source, read_values

    with open_source(file) as stream:
        yield from read_values(stream, form, key=key, is_whole=is_whole)


async def publish_all(
    publisher: "Publisher",
    values: "Iterator[list[Value]]",
    partition: int | None,
    rate: float | None,
    progress: "Progress",
) -> None:
    """Hand every message over, no faster than `rate` a second."""
    import asyncio

    from ibrik_cli.feeding import from_thread

    clock = asyncio.get_running_loop().time
    started_s, count = clock(), 0
    async for batch in from_thread(values):
        for value in batch:
            if rate is not None:
                await asyncio.sleep(max(0.0, started_s + count / rate - clock()))
            await publisher.send(value.content, key=value.key, partition=partition)
            count += 1
        progress.show(count)
    await publisher.flush()
    progress.show(count)
