"""Filters: a CEL expression that says which messages a subscription wants.

Compiled once, evaluated for each message by Google's C++ run time (`cel-expr-python`). What may be
written is bounded by `filter_cost`, how often loops turn by the run time (10,000 times a message),
and what a filter sees of a message by the limits here. Pure but for a counter.

An evaluation that fails (a field that is not there, a text where a number should be) gives no
exception but a value of type ERROR; so only `True` is a match.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from ibrik_api.errors import Refusal
from ibrik_api.resources.subscription import MAX_FILTER_CHARACTERS
from ibrik_broker.delivery.filter_cost import TooCostly, names_in
from ibrik_log.record import Headers, StoredRecord

if TYPE_CHECKING:
    from cel_expr_python import cel

MAX_SEEN_BYTES = 256 * 1024
"""A longer key or payload is not there for filters."""
MAX_SEEN_HEADERS = 256
MAX_SEEN_HEADER_BYTES = 8 * 1024

EVENT_PREFIX = "ce_"
CONTENT_TYPE = "content-type"

_NO_ATTRIBUTES: Mapping[str, str] = MappingProxyType({})
_PLACE = re.compile(r"ERROR: <input>:([0-9]+):([0-9]+): (.*)")


class Filter:
    """One compiled expression."""

    __slots__ = ("_expression", "_names", "error_count", "text")

    def __init__(self, text: str, expression: "cel.Expression", names: frozenset[str]) -> None:
        self.text = text
        self.error_count = 0
        """Messages that did not match because the evaluation failed."""
        self._expression = expression
        self._names = names

    def matches(self, record: StoredRecord, attributes: Mapping[str, str] = _NO_ATTRIBUTES) -> bool:
        """Whether the message is wanted; a failure is a no, and counted.

        `attributes` are what `event` holds for a message that does not say: an event's own win.
        """
        try:
            value = self._expression.eval(data=self._variables(record, attributes)).value()
        except (RuntimeError, TypeError, ValueError):  # too many turns, or text of odd characters
            value = None
        if not isinstance(value, bool):
            self.error_count += 1
        return value is True

    def _variables(self, record: StoredRecord, attributes: Mapping[str, str]) -> dict[str, Any]:
        """What the expression names; what cannot be read stays out, so naming it is an error."""
        variables: dict[str, Any] = {}
        if "event" in self._names:
            variables["event"] = {**attributes, **dict(_attributes(record.headers))}
        if "headers" in self._names:
            variables["headers"] = dict(_plain_headers(record.headers))
        if "key" in self._names:
            key = _text(record.key or b"", MAX_SEEN_BYTES)
            if key is not None:
                variables["key"] = key
        if "data" in self._names and len(record.value or b"") <= MAX_SEEN_BYTES:
            with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):  # no JSON
                variables["data"] = msgspec.json.decode(record.value or b"")
        return variables


def compile_filter(text: str) -> Filter:
    """The filter that `text` says. Raises Refusal `invalid-filter` with place and next step."""
    if not text.strip():
        raise _invalid("it is empty")
    if len(text) > MAX_FILTER_CHARACTERS:
        raise _invalid(
            f"it has {len(text)} characters, at most {MAX_FILTER_CHARACTERS} are allowed"
        )
    environment = _environment()
    try:
        expression = environment.compile(text)
    except TypeError as error:  # lone surrogates
        raise _invalid("it holds characters that are no text") from error
    except RuntimeError as error:
        raise _not_compiled(str(error)) from error
    returned = expression.return_type().name()
    if returned not in ("BOOL", "DYN"):
        raise _invalid(
            f"it gives {returned}, not true or false: compare it with something, as in "
            "event.type == 'order.paid'"
        )
    try:
        names = names_in(expression.serialize())
    except TooCostly as error:
        raise _invalid(str(error)) from error
    return Filter(text, expression, names)


@cache
def _environment() -> "cel.Env":
    """Ten megabytes of a library that has no wheel for every system: loaded by the first filter."""
    try:
        from cel_expr_python import cel
    except ImportError as error:
        raise _invalid(
            "this broker was installed without the CEL library (cel-expr-python, which is there "
            "for glibc, macOS and Windows): leave the filter out, or run the broker's image"
        ) from error
    texts = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
    return cel.NewEnv(
        variables={
            "event": texts,
            "headers": texts,
            "key": cel.Type.STRING,
            "data": cel.Type.DYN,
        }
    )


def _not_compiled(message: str) -> Refusal:
    place = _PLACE.search(message)
    if place is None:
        is_deep = "recursion" in message
        return _invalid("it is nested too deeply" if is_deep else "it is no expression")
    line, column, fault = int(place[1]), int(place[2]), place[3].removesuffix(" [INVALID_ARGUMENT]")
    fault = fault.replace(" (in container '')", "")[:300]
    return _invalid(f"line {line}, column {column}: {fault}", line=line, column=column)


def _invalid(fault: str, **facts: Any) -> Refusal:
    return Refusal(
        "invalid-filter",
        f"The filter cannot be used: {fault}. Correct it, or leave it out; event, headers, key and "
        "data are known.",
        **facts,
    )


def _attributes(headers: Headers) -> Iterator[tuple[str, str]]:
    for name, value in islice(headers, MAX_SEEN_HEADERS):
        text = _text(value, MAX_SEEN_HEADER_BYTES)
        if text is None:
            continue
        if name.startswith(EVENT_PREFIX):
            yield name.removeprefix(EVENT_PREFIX), text
        elif name == CONTENT_TYPE:
            yield "datacontenttype", text


def _plain_headers(headers: Headers) -> Iterator[tuple[str, str]]:
    for name, value in islice(headers, MAX_SEEN_HEADERS):
        text = _text(value, MAX_SEEN_HEADER_BYTES)
        if text is not None and not name.startswith(EVENT_PREFIX):
            yield name, text


def _text(value: bytes | None, limit: int) -> str | None:
    """None when it is no text, or too long."""
    if value is None or len(value) > limit:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
