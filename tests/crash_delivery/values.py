"""The bytes of a message: who published it, which one it is, and a filler."""

import base64
from typing import Any


def value_of(name: str) -> bytes:
    """`name` is `<publisher>:<sequence>`."""
    sequence = int(name.partition(":")[2])
    return f"{name} ".encode() + b"." * (sequence * 17 % 160)


def name_of(value: bytes) -> str:
    """The name of the message; empty when these are not the bytes of one."""
    name = value.partition(b" ")[0].decode(errors="replace")
    publisher, _, sequence = name.partition(":")
    is_name = publisher.isdigit() and sequence.isdigit()
    return name if is_name and value == value_of(name) else ""


def decode_name(message: Any) -> str:
    """The name of a message as JSON shows it."""
    return name_of(base64.b64decode(message.get("value_base64", "")))
