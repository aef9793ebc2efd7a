"""What the commands show of topics and of single messages; used by `topic`, `get`, `describe`."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.options import Output
from ibrik_cli.output import count_text, emit, print_json, print_table, print_yaml, size_text

if TYPE_CHECKING:
    from ibrik_client import Client
    from ibrik_client.messages import PartitionRange

COLUMNS = ("TOPIC", "PARTITIONS", "MESSAGES", "BYTES", "RETENTION")
Resource = dict[str, Any]
Found = list[tuple[Resource, "list[PartitionRange]"]]


async def list_topics(client: "Client", names: Sequence[str]) -> Found:
    """Topics with their ranges: all of them, or those named."""
    admin = client.admin
    topics = [await admin.topic(n) for n in names] if names else await admin.topics()
    return [(topic, await client.ranges(name_of(topic))) for topic in topics]


def print_topics(found: Found, output: Output, *, is_single: bool = False) -> None:
    emit(
        [topic for topic, _ in found],
        output,
        columns=COLUMNS,
        rows=[topic_row(topic, ranges) for topic, ranges in found],
        empty="no topics yet; create one with: ibrik topic create NAME",
        is_single=is_single,
    )


def name_of(topic: Resource) -> str:
    return str(topic.get("spec", {}).get("topicName") or topic["metadata"]["name"])


def topic_row(topic: Resource, ranges: "Sequence[PartitionRange]") -> list[str]:
    retention = topic.get("spec", {}).get("retention", {})
    limits = [str(retention[k]) for k in ("time", "bytes") if retention.get(k) is not None]
    return [
        name_of(topic),
        count_text(len(ranges)),
        count_text(sum(r.latest - r.earliest for r in ranges)),
        size_text(sum(r.size_bytes for r in ranges)),
        " or ".join(limits),
    ]


async def describe_topic(client: "Client", name: str, output: Output) -> None:
    topic = await client.admin.topic(name)
    ranges = await client.ranges(name)
    match output:
        case Output.JSON:
            print_json(topic)
        case Output.YAML:
            print_yaml(topic)
        case Output.TABLE:
            print_description(topic, ranges)


def print_description(topic: Resource, ranges: "Sequence[PartitionRange]") -> None:
    """Resource as indented text, then a line per partition."""
    metadata = topic["metadata"]
    sys.stdout.write(f"Name:       {name_of(topic)}\n")
    for label, key in (("Namespace", "namespace"), ("Created", "creationTimestamp")):
        if metadata.get(key):
            sys.stdout.write(f"{label + ':':<12}{metadata[key]}\n")
    if topic.get("status", {}).get("topicId"):
        sys.stdout.write(f"Id:         {topic['status']['topicId']}\n")
    sys.stdout.write("Spec:\n")
    for line in flat_lines(topic.get("spec", {})):
        sys.stdout.write(f"  {line}\n")
    for condition in topic.get("status", {}).get("conditions", []):
        words = (condition["type"], condition["status"], condition["reason"])
        sys.stdout.write(f"{' '.join(words)}: {condition.get('message', '')}\n")
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


def flat_lines(content: Any, prefix: str = "") -> list[str]:
    """`retention.time: 7d`: one line a leaf, which a person can search."""
    if isinstance(content, dict):
        lines = []
        for key, value in content.items():
            lines += flat_lines(value, f"{prefix}.{key}" if prefix else str(key))
        return lines
    if isinstance(content, bool):
        content = str(content).lower()
    return [f"{prefix}: {content}"]


async def describe_message(client: "Client", place: str, output: Output) -> None:
    """One message by `topic/partition/offset`, with its headers and its payload."""
    from ibrik_cli.records import message_document

    topic, partition, offset = parse_place(place)
    message = await client.message(topic, partition, offset)
    document = message_document(message)
    match output:
        case Output.JSON:
            print_json(document)
        case Output.YAML:
            print_yaml(document)
        case Output.TABLE:
            for line in flat_lines(document):
                sys.stdout.write(f"{line}\n")


def parse_place(place: str) -> tuple[str, int, int]:
    parts = place.rsplit("/", 2)
    if len(parts) == 3 and parts[1].isdigit() and parts[2].isdigit():
        return parts[0], int(parts[1]), int(parts[2])
    raise Failure(f"{place!r} is no place: write topic/partition/offset", WRONG_USAGE)


def deletion_of(resource: Resource) -> Resource:
    """The same resource with a wish to delete it, as Kubernetes marks one."""
    now = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds")
    metadata = dict(resource["metadata"])
    # The generation is the broker's own answer here, not a newer wish.
    for key in ("generation", "resourceVersion", "creationTimestamp"):
        metadata.pop(key, None)
    metadata["deletionTimestamp"] = now.replace("+00:00", "Z")
    return {k: v for k, v in resource.items() if k != "status"} | {"metadata": metadata}
