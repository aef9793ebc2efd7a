"""A message as JSON and the numbers that say where it is; shared by bodies of the data plane."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

Position = Annotated[int, Meta(ge=0, le=2**63 - 1)]
PartitionIndex = Annotated[int, Meta(ge=0, le=255)]
Timestamp = Annotated[str, Meta(examples=["2026-11-27T10:00:00.123Z"])]


class MessageView(Struct):
    """A message as JSON.

    `value` is there when the bytes are valid JSON, else `value_base64`; `key` when they are text,
    else `key_base64`. Of headers with one name the last is shown; raw batches show all.
    """

    partition: PartitionIndex
    offset: Position
    timestamp: Timestamp
    id: str
    key: msgspec.Raw | UnsetType = UNSET
    key_base64: str | UnsetType = UNSET
    value: msgspec.Raw | UnsetType = UNSET
    value_base64: str | UnsetType = UNSET
    headers: dict[str, str | None] | UnsetType = UNSET
    headers_base64: dict[str, str] | UnsetType = UNSET
