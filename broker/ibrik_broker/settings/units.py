"""Sizes as `256Mi` and times as `30s`, spelled as in resources; a bare number is bytes or ms.

Resources refuse a bare number as a duration. Here the name of the setting carries the unit, and an
environment variable is text anyway, so `IBRIK_SHUTDOWN__DRAIN_MS=5000` means what it says.
"""

from typing import Annotated

from pydantic import BeforeValidator

from ibrik_api.durations import parse_duration
from ibrik_api.quantities import parse_quantity


def _bytes(value: object) -> object:
    return parse_quantity(value.strip()) if isinstance(value, str) else value


def _milliseconds(value: object) -> object:
    if isinstance(value, str) and not value.strip().isdigit():
        return parse_duration(value.strip())
    return value


Bytes = Annotated[int, BeforeValidator(_bytes)]
Milliseconds = Annotated[int, BeforeValidator(_milliseconds)]
