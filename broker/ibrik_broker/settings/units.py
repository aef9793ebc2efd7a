"""Sizes as `256Mi` and times as `30s`, as people write them in resources: the same parsers."""

import re
from typing import Annotated

from pydantic import BeforeValidator

_SIZES = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_TIMES_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def _bytes(value: object) -> object:
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+)(Ki|Mi|Gi|Ti|)", value.strip())):
        return int(match[1]) * _SIZES[match[2]]
    return value


def _milliseconds(value: object) -> object:
    if isinstance(value, str) and (match := re.fullmatch(r"(\d+)(ms|s|m|h|d)", value.strip())):
        return int(match[1]) * _TIMES_MS[match[2]]
    return value


Bytes = Annotated[int, BeforeValidator(_bytes)]
Milliseconds = Annotated[int, BeforeValidator(_milliseconds)]
