"""What a log remembers about itself between starts (docs/formats/checkpoint.md, sealed.md).

`checkpoint`: log start and recovery point. `clean`: written last by a clean stop, deleted by the
next start. `sealed.json`: the sealed segments, for readers in other processes and for a fast start.
Values only, no disk.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from .document import Body, decode_document, encode_document
from .errors import UnreadableDocument


class OffsetRange(NamedTuple):
    """From `from_offset` up to and without `to_offset`."""

    from_offset: int
    to_offset: int


class SegmentSummary(NamedTuple):
    """What is known of a segment without opening it. Without records the times are 0."""

    base_offset: int
    next_offset: int
    size_bytes: int
    first_append_ms: int
    last_append_ms: int


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Everything below the recovery point is flushed and in sealed segments."""

    start_offset: int
    recovery_point: int


@dataclass(frozen=True, slots=True)
class CleanMarker:
    """How the last clean stop left the active segment."""

    end_offset: int
    leader_epoch: int
    active: SegmentSummary


@dataclass(frozen=True, slots=True)
class SealedSegments:
    """The sealed segments above the log start, and the ranges known to be damaged."""

    start_offset: int
    segments: tuple[SegmentSummary, ...]
    damaged: tuple[OffsetRange, ...]


def encode_checkpoint(checkpoint: Checkpoint) -> bytes:
    body = {
        "start_offset": checkpoint.start_offset,
        "recovery_point": checkpoint.recovery_point,
    }
    return encode_document("checkpoint", 1, body)


def decode_checkpoint(content: bytes) -> Checkpoint:
    body = decode_document(content, "checkpoint", 1)
    return Checkpoint(*_integers(body, "start_offset", "recovery_point"))


def encode_clean_marker(marker: CleanMarker) -> bytes:
    body = {
        "end_offset": marker.end_offset,
        "leader_epoch": marker.leader_epoch,
        "active": marker.active._asdict(),
    }
    return encode_document("clean", 1, body)


def decode_clean_marker(content: bytes) -> CleanMarker:
    body = decode_document(content, "clean", 1)
    end_offset, leader_epoch = _integers(body, "end_offset", "leader_epoch")
    (active,) = _summaries([body.get("active")])
    return CleanMarker(end_offset, leader_epoch, active)


def encode_sealed(sealed: SealedSegments) -> bytes:
    body = {
        "start_offset": sealed.start_offset,
        "segments": [segment._asdict() for segment in sealed.segments],
        "damaged": [damaged._asdict() for damaged in sealed.damaged],
    }
    return encode_document("sealed", 1, body)


def decode_sealed(content: bytes) -> SealedSegments:
    body = decode_document(content, "sealed", 1)
    (start_offset,) = _integers(body, "start_offset")
    try:
        damaged = tuple(
            OffsetRange(*_integers(item, *OffsetRange._fields)) for item in body["damaged"]
        )
        segments = _summaries(body["segments"])
    except (KeyError, TypeError) as error:
        raise UnreadableDocument(f"no sealed document: {error!r}") from error
    return SealedSegments(start_offset, tuple(segments), damaged)


def _summaries(items: Sequence[object]) -> list[SegmentSummary]:
    summaries = []
    for item in items:
        if not isinstance(item, dict):
            raise UnreadableDocument(f"no segment: {item!r}")
        summaries.append(SegmentSummary(*_integers(item, *SegmentSummary._fields)))
    return summaries


def _integers(body: Body, *names: str) -> list[int]:
    values = [body.get(name) for name in names]
    if not all(type(value) is int for value in values):
        raise UnreadableDocument(f"expected whole numbers {', '.join(names)}")
    return [int(value) for value in values if value is not None]
