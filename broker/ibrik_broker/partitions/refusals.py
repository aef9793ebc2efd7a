"""Errors of the log as refusals: translated here, once, for every door."""

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.holding import Held
from ibrik_log.errors import (
    CompressedBatch,
    CorruptRange,
    CorruptRecord,
    InvalidBatch,
    OffsetOutOfRange,
    StorageFailed,
    StorageFull,
)


def translated(error: Exception, topic_name: str, partition: int) -> Refusal:
    """The refusal that stands for an error of the log; `internal` when it has none of its own."""
    place = f"{topic_name}/{partition}"
    match error:
        case Refusal():
            refusal = error
        case OffsetOutOfRange():
            refusal = _out_of_range(error, place)
        case CorruptRange(from_offset=start, to_offset=end):
            refusal = Refusal(
                "corrupt-range",
                f"Offsets {start} to {end} (exclusive) of {place} are damaged on the disk and are"
                f" not served. What follows is whole: read on from {end}.",
                from_offset=start,
                to_offset=end,
            )
        case CompressedBatch():
            refusal = Refusal("batch-compressed", "Batches are stored as sent: do not compress.")
        case InvalidBatch() | CorruptRecord():
            refusal = Refusal("invalid-batch", str(error))
        case StorageFull():
            refusal = storage_full()
        case StorageFailed():
            refusal = storage_failed()
        case _:
            refusal = Refusal("internal", f"{place}: {type(error).__name__}")
    return refusal


def _out_of_range(error: OffsetOutOfRange, place: str) -> Refusal:
    earliest, latest = error.earliest, error.latest
    code, state, advice = (
        ("offset-below-start", "is gone", earliest)
        if error.is_below
        else ("offset-above-end", "is not there yet", latest)
    )
    return Refusal(
        code,
        f"Offset {error.offset} of {place} {state}: it holds {earliest} to {latest} (exclusive)."
        f" Read from {advice}.",
        earliest=earliest,
        latest=latest,
    )


def storage_full() -> Refusal:
    return Refusal(
        "storage-full",
        "The volume is nearly full, so nothing is accepted; reading goes on. Publishing resumes by"
        " itself when there is room: grow the volume or lower a topic's retention.",
    )


def archive_behind(topic_name: str, held: Held) -> Refusal:
    return Refusal(
        "archive-behind",
        f"The archive of '{topic_name}' is behind: {held.size_bytes} bytes are held back for it,"
        " more than spec.archive.holdMax allows, so nothing is accepted. Publishing resumes by"
        f" itself when the archive has caught up. See why: ibrik archive status {topic_name}",
    )


def storage_failed() -> Refusal:
    return Refusal(
        "storage-failed",
        "The disk did not confirm a write. Nothing of this group is acknowledged; the broker stops"
        " and recovers from the disk at its next start. Send the message again, with the same id.",
    )


def shutting_down() -> Refusal:
    return Refusal("shutting-down", "The broker is stopping. Send the request again in a moment.")


def topic_closed(topic_name: str) -> Refusal:
    return Refusal("unknown-topic", f"The topic '{topic_name}' was deleted or detached just now.")


def detached(topic_name: str) -> Refusal:
    return Refusal(
        "topic-detached",
        f"The topic '{topic_name}' was deleted with deletionPolicy Retain: its data is kept, not"
        f" served. Bring it back with: ibrik topic create {topic_name}",
    )


def buffer_full(topic_name: str, partition: int) -> Refusal:
    return Refusal(
        "buffer-full",
        f"The input buffer of {topic_name}/{partition} is full: the disk is slower than its"
        " producers. Send again after the time in Retry-After, or raise spec.buffer.",
    )
