"""How far a topic is archived, kept beside its logs: `archive.json` (docs/formats/archive.md).

It lies on the volume because it decides what retention may delete there: it is as old as the logs
in every backup, and is there when the metadata database is not. Values only, no disk.
"""

from dataclasses import dataclass, replace
from typing import Any

from .document import decode_document, encode_document
from .errors import UnreadableDocument

ARCHIVE_FILE = "archive.json"
KIND, VERSION = "archive", 1


@dataclass(frozen=True, slots=True)
class Watermark:
    """Of each partition the first offset that is not archived; and what the jobs said of it."""

    offsets: tuple[int, ...] = ()
    table: dict[str, Any] | None = None
    """Id, address and version, as the job sent them."""
    last_run: dict[str, Any] | None = None

    def offset(self, partition: int) -> int:
        return self.offsets[partition] if partition < len(self.offsets) else 0

    def advanced(
        self,
        reported: dict[int, int],
        table: dict[str, Any],
        last_run: dict[str, Any] | None,
    ) -> "Watermark":
        """With what a job reports. No offset moves back.

        A table that is behind in some partition, such as a new one, does not take the place of the
        one that the watermark was proved with.
        """
        count = max(len(self.offsets), max(reported, default=-1) + 1)
        is_behind = any(offset < self.offset(index) for index, offset in reported.items())
        return replace(
            self,
            offsets=tuple(max(self.offset(n), reported.get(n, 0)) for n in range(count)),
            table=self.table if is_behind else table,
            last_run=last_run or self.last_run,
        )


def encode_watermark(topic_id: str, watermark: Watermark) -> bytes:
    body = {
        "topic_id": topic_id,
        "archived_up_to": list(watermark.offsets),
        "table": watermark.table,
        "last_run": watermark.last_run,
    }
    return encode_document(KIND, VERSION, body)


def decode_watermark(content: bytes, topic_id: str) -> Watermark:
    """Raises UnreadableDocument, also for the document of another topic."""
    body = decode_document(content, KIND, VERSION)
    offsets, table, last_run = (body.get(k) for k in ("archived_up_to", "table", "last_run"))
    if body.get("topic_id") != topic_id:
        raise UnreadableDocument(f"the archive document is of topic {body.get('topic_id')}")
    if not isinstance(offsets, list) or not all(type(n) is int and n >= 0 for n in offsets):
        raise UnreadableDocument("the archive document holds no offsets")
    if not all(part is None or isinstance(part, dict) for part in (table, last_run)):
        raise UnreadableDocument("the archive document is incomplete")
    return Watermark(tuple(offsets), table, last_run)
