"""`ibrik bench`: a closed loop of publishers against a running broker; latency percentiles.

For a first impression. The measured figures of this project come from `make bench`.
"""

from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ibrik_cli.options import (
    DEFAULT_SERVER,
    Output,
    OutputOption,
    Server,
    TopicName,
    examples,
)

if TYPE_CHECKING:
    from ibrik_client import Client

PERCENTILES = (50, 90, 99, 99.9)


def register(app: typer.Typer) -> None:
    app.command(
        epilog=examples(
            "ibrik bench orders", "ibrik bench orders --publishers 32 --size 100 --seconds 10"
        )
    )(bench)


class Measured(NamedTuple):
    seconds: float
    latencies_ms: list[float]


def bench(
    topic: TopicName,
    *,
    publishers: Annotated[
        int, typer.Option("--publishers", min=1, max=1_000, help="Each has one request in flight.")
    ] = 8,
    size: Annotated[
        int, typer.Option("--size", min=1, max=2**20, help="Bytes of each message.")
    ] = 1_024,
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.1, max=3_600, help="How long.")
    ] = 5.0,
    output: OutputOption = Output.TABLE,
    server: Server = DEFAULT_SERVER,
) -> None:
    """Publish as fast as the answers come; print rate and latency. The messages stay."""
    from ibrik_cli.output import emit
    from ibrik_cli.session import run_with_client

    measured = run_with_client(server, lambda c: closed_loop(c, topic, publishers, size, seconds))
    document = summary(measured, publishers, size)
    names = [f"p{p:g}" for p in PERCENTILES]
    emit(
        [document],
        output,
        columns=("PUBLISHERS", "BYTES", "MESSAGES", "PER SECOND", *map(str.upper, names)),
        rows=[
            [
                str(publishers),
                str(size),
                f"{document['messages']:,}",
                f"{document['per_second']:,.0f}",
                *(f"{document[f'{name}_ms']:.2f} ms" for name in names),
            ]
        ],
        is_single=True,
    )


async def closed_loop(
    client: "Client", topic: str, publishers: int, size: int, seconds: float
) -> Measured:
    """Every publisher waits for its acknowledgement before it sends again."""
    import asyncio
    import os

    clock = asyncio.get_running_loop().time
    payload = os.urandom(size)
    latencies_ms: list[float] = []
    started_s = clock()

    async def publish() -> None:
        while (sent_s := clock()) < started_s + seconds:
            await client.publish(topic, payload)
            latencies_ms.append((clock() - sent_s) * 1000)

    async with asyncio.TaskGroup() as group:
        for _ in range(publishers):
            group.create_task(publish())
    return Measured(clock() - started_s, latencies_ms)


def summary(measured: Measured, publishers: int, size: int) -> dict[str, float]:
    """Rate and percentiles (nearest rank)."""
    ordered = sorted(measured.latencies_ms)
    document: dict[str, float] = {
        "publishers": publishers,
        "size_bytes": size,
        "messages": len(ordered),
        "per_second": round(len(ordered) / measured.seconds, 1),
    }
    for percentile in PERCENTILES:
        rank = max(0, -int(-len(ordered) * percentile // 100) - 1)
        document[f"p{percentile:g}_ms"] = round(ordered[rank], 3)
    return document
