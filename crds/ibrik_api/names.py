"""What names look like: topics, namespaces, resources, ids of messages.

Patterns are plain regular expressions, valid in JSON Schema, RE2 and Python alike, so that the
broker, the API server and a client refuse the same names. No I/O, no state.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

from ibrik_api.errors import Refusal

API_VERSION = "ibrik.dev/v1beta1"
MAX_NAME_LENGTH = 253
MAX_NAMESPACE_LENGTH = 63
NAME_PATTERN = r"^[a-z0-9]([a-z0-9._-]*[a-z0-9])?$"
NAMESPACE_PATTERN = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"

_NAME = re.compile(NAME_PATTERN.removesuffix("$"))


def is_name(text: str) -> bool:
    """Whether `text` may name a topic, a subscription, a channel or a publisher."""
    return len(text) <= MAX_NAME_LENGTH and _NAME.fullmatch(text) is not None


def check_name(text: str, *, what: str = "topic") -> str:
    """Return `text` when it is a name; otherwise raise a Refusal that says what is wrong."""
    if is_name(text):
        return text
    raise Refusal("invalid-name", f"{_shown(text)} is no {what} name: {_fault(text)}.")


def _checked_name(text: str) -> str:
    if not is_name(text):
        raise ValueError(f"{_shown(text)} is no name: {_fault(text)}")
    return text


def _checked_namespace(text: str) -> str:
    if len(text) > MAX_NAMESPACE_LENGTH or not is_name(text) or set(text) & set("._"):
        raise ValueError(
            f"{_shown(text)} is no namespace: use a-z 0-9 and -, begin and end with a letter or a "
            f"digit, at most {MAX_NAMESPACE_LENGTH} characters"
        )
    return text


Name = Annotated[
    str,
    AfterValidator(_checked_name),
    WithJsonSchema(
        {"type": "string", "minLength": 1, "maxLength": MAX_NAME_LENGTH, "pattern": NAME_PATTERN}
    ),
]
Namespace = Annotated[
    str,
    AfterValidator(_checked_namespace),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_NAMESPACE_LENGTH,
            "pattern": NAMESPACE_PATTERN,
        }
    ),
]


def message_id(topic_id: str, partition: int, offset: int) -> str:
    """The id of a message whose client gave none; computed, never stored."""
    return f"{topic_id}-{partition}-{offset}"


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")


def _fault(text: str) -> str:
    if not text:
        return "it is empty"
    if len(text) > MAX_NAME_LENGTH:
        return f"it has {len(text)} characters, at most {MAX_NAME_LENGTH} are allowed"
    wrong = sorted({c for c in text if not re.fullmatch(r"[a-z0-9._-]", c)})
    if wrong:
        hint = " (write it in lower case)" if is_name(text.lower()) else ""
        return f"only a-z 0-9 . _ - are allowed, it has {' '.join(map(repr, wrong[:5]))}{hint}"
    return "it must begin and end with a letter or a digit"
