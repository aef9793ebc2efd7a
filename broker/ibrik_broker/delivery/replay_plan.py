"""What a replay delivers: the range of each partition, fixed when it is asked for.

Places (offsets, times, ids of messages, the ends of the log) become offsets here, so that a dry run
says exactly what a replay would do, and a crash changes nothing about it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import StartFrom
from ibrik_broker.delivery.filters import Filter, compile_filter
from ibrik_broker.delivery.seek import check_offset, offset_of
from ibrik_broker.delivery.wishes import StartWish
from ibrik_broker.partitions.topic import Topic

_ID = re.compile(r"(.{1,100})-([0-9]{1,9})-([0-9]{1,18})")


class MessageId(NamedTuple):
    """The id of a message whose client gave none: its place. See `ibrik_api.names`."""

    topic_id: str
    partition: int
    offset: int


Place = StartWish | MessageId
"""A message id stands for the place behind that message."""


def parse_message_id(text: str) -> MessageId:
    """Raises Refusal `invalid-request`."""
    match = _ID.fullmatch(text)
    if match is None:
        raise Refusal(
            "invalid-request",
            f"{text[:60]!r} is no place of a message: write TOPIC-ID-PARTITION-OFFSET as messages "
            "without an own id show it, or name the offset.",
        )
    return MessageId(match[1], int(match[2]), int(match[3]))


class Range(NamedTuple):
    """Of one partition: from `start` to before `end`."""

    partition: int
    start: int
    end: int

    @property
    def message_count(self) -> int:
        return self.end - self.start


async def plan_ranges(
    topic: Topic, start: Place, end: Place | None, partitions: Sequence[int] | None = None
) -> list[Range]:
    """One range for each chosen partition; without an end, up to what is there now.

    An id chooses its own partition. Raises Refusal: unknown-partition, invalid-offset,
    invalid-request, offset-below-start, offset-above-end.
    """
    indexes = _chosen(topic, start, end, partitions)
    starts = await _offsets(topic, start, indexes)
    ends = [topic.partition(index).latest for index in indexes]
    if end is not None:
        ends = await _offsets(topic, end, indexes)
    ranges = [Range(*row) for row in zip(indexes, starts, ends, strict=True)]
    for found in ranges:
        if found.message_count < 0:
            raise Refusal(
                "invalid-offset",
                f"In partition {found.partition} the range would begin at {found.start} and end "
                f"before {found.end}. Let `from` lie before `to`.",
            )
    return ranges


def _chosen(
    topic: Topic, start: Place, end: Place | None, partitions: Sequence[int] | None
) -> list[int]:
    ids = [place for place in (start, end) if isinstance(place, MessageId)]
    for place in ids:
        if place.topic_id != topic.id:
            raise Refusal(
                "invalid-request",
                f"The id names a message of another topic than '{topic.name}' is now.",
            )
    named = {place.partition for place in ids}
    if partitions is None:
        chosen = sorted(named) or list(range(len(topic.partitions)))
    else:
        chosen = list(dict.fromkeys(partitions))
    if len(chosen) < len(partitions or ()):
        raise Refusal("invalid-request", "A partition is named more than once.")
    if named and named != set(chosen):
        raise Refusal(
            "invalid-request",
            "An id stands for a place in its own partition: replay that partition alone, or name "
            "offsets or a time.",
        )
    return chosen


async def _offsets(topic: Topic, place: Place, indexes: Sequence[int]) -> list[int]:
    """The offset of each partition. Raises Refusal when the log does not reach there."""
    if isinstance(place, MessageId):
        place = StartWish(origin=StartFrom.OFFSET, offsets=(place.offset + 1,))
    if len(place.offsets) > 1 and len(place.offsets) != len(indexes):
        raise Refusal(
            "invalid-offset",
            f"{len(indexes)} partitions are replayed: write one offset for all, or one for each.",
        )
    offsets = []
    for position, index in enumerate(indexes):
        partition = topic.partition(index)
        offset = await offset_of(partition, place, position)
        check_offset(topic, partition, offset)
        offsets.append(offset)
    return offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayPlan:
    """A replay as it was asked for, resolved; `document` is what the database keeps of it."""

    topic: str
    topic_id: str
    starts: tuple[int, ...]
    """One for each partition of the topic; those that are not chosen end where they start."""
    ends: tuple[int, ...]
    channel: str | None = None
    """Name of the channel that the messages go to; else `target_topic` is given."""
    channel_id: str | None = None
    target_topic: str | None = None
    rate: int | None = None
    filter: Filter | None = None

    @property
    def total(self) -> int:
        return sum(self.ends) - sum(self.starts)

    @property
    def ranges(self) -> list[Range]:
        """Those that hold something."""
        rows = zip(range(len(self.ends)), self.starts, self.ends, strict=True)
        return [found for found in (Range(*row) for row in rows) if found.message_count]

    def document(self) -> dict[str, Any]:
        return {
            "topic_id": self.topic_id,
            "starts": list(self.starts),
            "ends": list(self.ends),
            "channel": self.channel,
            "channel_id": self.channel_id,
            "target_topic": self.target_topic,
            "rate": self.rate,
            "filter": None if self.filter is None else self.filter.text,
        }


def read_plan(topic: str, document: Mapping[str, Any]) -> ReplayPlan:
    """From what the database keeps. Raises Refusal `invalid-filter` where CEL is not installed."""
    known = dict(document)
    text = known.pop("filter")
    return ReplayPlan(
        topic=topic,
        topic_id=known.pop("topic_id"),
        starts=tuple(known.pop("starts")),
        ends=tuple(known.pop("ends")),
        filter=None if text is None else compile_filter(text),
        **known,
    )


def spread(topic: Topic, ranges: Sequence[Range]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Starts and ends for every partition of the topic; where nothing is chosen, an empty range."""
    bounds = {partition.index: (partition.latest,) * 2 for partition in topic.partitions}
    bounds |= {found.partition: (found.start, found.end) for found in ranges}
    starts, ends = zip(*(bounds[index] for index in sorted(bounds)), strict=True)
    return starts, ends
