"""What the commands show of topics; used by `topic`, `get` and `describe`."""

import asyncio
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ibrik_cli.manifests import Place, Resource
from ibrik_cli.options import Output
from ibrik_cli.output import count_text, print_table, say, size_text
from ibrik_cli.showing import Listing, print_document, print_listing, resource_lines

if TYPE_CHECKING:
    from ibrik_client import Client
    from ibrik_client.messages import PartitionRange

COLUMNS = ("TOPIC", "PARTITIONS", "MESSAGES", "BYTES", "RETENTION")
UNKNOWN = "-"
Found = list[tuple[Resource, "list[PartitionRange] | None"]]


async def list_topics(client: "Client", names: Sequence[str]) -> Found:
    """Topics with their ranges: all of them, or those named. No ranges where the owner is away."""
    admin = client.admin
    topics = [await admin.topic(n) for n in names] if names else await admin.topics()
    ranges = await asyncio.gather(*(_known_ranges(client, name_of(topic)) for topic in topics))
    return list(zip(topics, ranges, strict=True))


async def _known_ranges(client: "Client", name: str) -> "list[PartitionRange] | None":
    from ibrik_client import Unavailable

    try:
        return await client.ranges(name, deadline_s=0)
    except Unavailable as error:
        if error.code != "owner-unavailable":
            raise
        say(f"{name}: {error.detail}")
        return None


def topic_listing(found: Found) -> Listing:
    return Listing(
        [topic for topic, _ in found],
        COLUMNS,
        [topic_row(topic, ranges) for topic, ranges in found],
        empty="no topics yet; create one with: ibrik topic create NAME",
    )


def print_topics(found: Found, output: Output, *, is_single: bool = False) -> None:
    print_listing(topic_listing(found), output, is_single=is_single)


def name_of(topic: Resource) -> str:
    return str(topic.get("spec", {}).get("topicName") or topic["metadata"]["name"])


def topic_row(topic: Resource, ranges: "Sequence[PartitionRange] | None") -> list[str]:
    spec = topic.get("spec", {})
    retention = spec.get("retention", {})
    limits = [str(retention[k]) for k in ("time", "bytes") if retention.get(k) is not None]
    numbers = (
        [str(spec.get("partitions", UNKNOWN)), UNKNOWN, UNKNOWN]
        if ranges is None
        else [
            count_text(len(ranges)),
            count_text(sum(r.latest - r.earliest for r in ranges)),
            size_text(sum(r.size_bytes for r in ranges)),
        ]
    )
    return [name_of(topic), *numbers, " or ".join(limits)]


async def read_topic(client: "Client", place: Place) -> Resource:
    return await client.admin.topic(place.name)


async def look_up(client: "Client", places: Sequence[Place]) -> Listing:
    """Topics: all of them, or those named."""
    return topic_listing(await list_topics(client, [place.name for place in places]))


async def describe(client: "Client", place: Place, output: Output) -> None:
    topic = await client.admin.topic(place.name)
    ranges = await client.ranges(place.name)
    if output is Output.TABLE:
        print_description(topic, ranges)
    else:
        print_document(topic, output, ())


def print_description(topic: Resource, ranges: "Sequence[PartitionRange]") -> None:
    """Resource as indented text, then a line per partition."""
    for line in resource_lines(topic, name_of(topic), id_key="topicId", status=()):
        sys.stdout.write(f"{line}\n")
    sys.stdout.write("\n")
    print_table(
        ("PARTITION", "EARLIEST", "NEXT", "MESSAGES", "BYTES"),
        [
            [
                str(r.partition),
                count_text(r.earliest),
                count_text(r.latest),
                count_text(r.latest - r.earliest),
                size_text(r.size_bytes),
            ]
            for r in ranges
        ],
    )
