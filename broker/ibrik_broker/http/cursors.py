"""Where a reader of a whole topic stands: one offset a partition, as one opaque text.

The text is the id of server-sent events, so `Last-Event-ID` brings a reader back to its place.
It names the topic by id: a topic that was made anew is another topic. Pure functions.
"""

import base64
import binascii
from collections.abc import Sequence

import msgspec

from ibrik_api.errors import Refusal
from ibrik_broker.partitions.topic import Topic


class _Cursor(msgspec.Struct, array_like=True):
    topic_id: str
    positions: list[int]


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(_Cursor)


def format_cursor(topic: Topic, positions: Sequence[int]) -> str:
    packed = _encoder.encode((topic.id, positions))
    return base64.urlsafe_b64encode(packed).rstrip(b"=").decode("ascii")


def parse_cursor(topic: Topic, text: str) -> list[int]:
    """One position a partition; partitions added since begin at their start."""
    try:
        packed = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        cursor = _decoder.decode(packed)
    except (msgspec.MsgspecError, UnicodeDecodeError, binascii.Error, ValueError) as error:
        raise Refusal("invalid-request", "Last-Event-ID is no id of this stream.") from error
    positions = cursor.positions
    if cursor.topic_id != topic.id:
        raise Refusal(
            "invalid-request",
            f"Last-Event-ID belongs to another topic than {topic.name} is now.",
        )
    if len(positions) > len(topic.partitions):
        raise Refusal("invalid-request", "Last-Event-ID names more partitions than there are.")
    return positions + [0] * (len(topic.partitions) - len(positions))


def check_positions(topic: Topic, positions: Sequence[int]) -> None:
    """A place above the end is an error of the reader; one below the start becomes a gap event."""
    for partition, position in zip(topic.partitions, positions, strict=False):
        if not 0 <= position <= partition.latest:
            raise Refusal(
                "offset-above-end",
                f"Offset {position} of {topic.name}/{partition.index} is above the end,"
                f" {partition.latest}.",
                partition=partition.index,
                earliest=partition.earliest,
                latest=partition.latest,
            )
