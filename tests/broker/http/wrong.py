"""Messages that no batch can hold, and the code that each is refused with."""

from typing import Any

WRONG: list[tuple[Any, str]] = [
    ({"value": 1, "valeu": 2}, "invalid-request"),
    ({"value": 1, "value_base64": ""}, "invalid-request"),
    ({"key": 1, "key_base64": ""}, "invalid-request"),
    ({"value_base64": "!"}, "invalid-request"),
    ({"value": 1, "key_base64": "ü"}, "invalid-request"),
    ({"value": 1, "headers": {"a": 1}}, "invalid-request"),
    ({"value": 1, "headers": {"a": "1"}, "headers_base64": {"a": ""}}, "invalid-request"),
    ({"value": 1, "headers_base64": {"a": "!"}}, "invalid-request"),
    ({"value": 1, "id": ""}, "invalid-request"),
    ({"value": 1, "id": "x" * 1025}, "invalid-request"),
    ({"value": 1, "id": "x", "headers": {"ibrik-id": "y"}}, "invalid-request"),
    ({"value": 1, "partition": 1}, "unknown-partition"),
    ({"value": 1, "partition": 999}, "invalid-request"),
    ("text", "invalid-request"),
    ({"value": "x" * 1_100_000}, "message-too-large"),
]
