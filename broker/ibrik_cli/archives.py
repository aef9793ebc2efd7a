"""What the commands show of archives: how far each partition is, and what the last run came to."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ibrik_cli.failures import Failure
from ibrik_cli.manifests import Resource
from ibrik_cli.output import clock_text, count_text, seconds_of
from ibrik_cli.showing import Listing
from ibrik_cli.topics import name_of

if TYPE_CHECKING:
    from ibrik_client import Client
    from ibrik_client.messages import PartitionRange

COLUMNS = ("TOPIC", "PARTITION", "ARCHIVED UP TO", "LOG END", "BEHIND", "LAST RUN", "TABLE")
CODES = {0: "done", 2: "nothing to do", 3: "superseded", 64: "misconfigured", 75: "failed"}
TURN_ON = "turn it on with spec.archive.enabled: true"
Document = dict[str, Any]


async def look_up(client: "Client", name: str | None) -> Listing:
    """The archive of one topic, or of all that have one."""
    admin = client.admin
    topics = await admin.topics() if name is None else [await admin.topic(name)]
    found = [topic for topic in topics if _status(topic) is not None]
    if name is not None and not found:
        raise Failure(f"{name} is not archived; {TURN_ON}")
    documents = [archive_document(t, await client.ranges(name_of(t))) for t in found]
    rows = [row for document in documents for row in archive_rows(document)]
    return Listing(documents, COLUMNS, rows, empty=f"no topic is archived; {TURN_ON}")


def archive_document(topic: Resource, ranges: "Sequence[PartitionRange]") -> Document:
    """What the topic's status says, with each partition beside the end of its log."""
    status = dict(_status(topic) or {})
    archived = status.pop("archivedUpTo", [])
    partitions = []
    for index, r in enumerate(ranges):
        offset = archived[index] if index < len(archived) else 0
        partitions.append(
            {
                "partition": r.partition,
                "logStart": r.earliest,
                "archivedUpTo": offset,
                "logEnd": r.latest,
                "behind": max(0, r.latest - max(offset, r.earliest)),
            }
        )
    identity = {"topic": name_of(topic), "topicId": topic["status"].get("topicId")}
    return identity | status | {"partitions": partitions}


def archive_rows(document: Document) -> Iterator[list[str]]:
    run, table = run_text(document.get("lastRun")), document.get("table") or {}
    for partition in document["partitions"]:
        yield [
            document["topic"],
            str(partition["partition"]),
            count_text(partition["archivedUpTo"]),
            count_text(partition["logEnd"]),
            count_text(partition["behind"]),
            run,
            table.get("url", ""),
        ]


def run_text(run: Mapping[str, Any] | None) -> str:
    """`10:04:31 done 9 s`."""
    if run is None:
        return "never"
    seconds = seconds_of(run["endedAt"]) - seconds_of(run["startedAt"])
    began = clock_text(run["startedAt"]).partition(".")[0]
    return f"{began} {CODES.get(run['code'], run['code'])} {seconds:.0f} s"


def _status(topic: Resource) -> Mapping[str, Any] | None:
    status = topic.get("status") or {}
    archive: Mapping[str, Any] | None = status.get("archive")
    return archive
