"""Sizes as Kubernetes writes quantities (`1Gi`, `256Mi`, `1.5M`, plain numbers), bytes inside."""

import re
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema

from ibrik_api.limits import Limits

PATTERN = r"^[0-9]{1,19}(\.[0-9]{1,9})?(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"
KIB, MIB, GIB = 1024, 1024**2, 1024**3
MAX_BYTES = 2**63 - 1

_FACTORS = {
    "": 1,
    **{unit: 1024**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi"), 1)},
    **{unit: 1000**power for power, unit in enumerate(("k", "M", "G", "T", "P"), 1)},
}
_BINARY_UNITS = ("Pi", "Ti", "Gi", "Mi", "Ki")
_PARSER = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)(Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?")


def parse_quantity(value: str | int) -> int:
    """Bytes of `value`; raises ValueError with a sentence."""
    match = _PARSER.fullmatch(str(value))
    if match is None:
        raise ValueError(
            f"{str(value)[:40]!r} is no size: write bytes as a number, or with Ki Mi Gi Ti Pi "
            "(powers of 1024) or k M G T P (powers of 1000), as in 256Mi"
        )
    size_bytes = Decimal(match[1]) * _FACTORS[match[2] or ""]
    if size_bytes != int(size_bytes):
        raise ValueError(f"{value!r} is no whole number of bytes: write a smaller unit")
    if size_bytes > MAX_BYTES:
        raise ValueError(f"{value!r} is more than 8 EiB: write a smaller size")
    return int(size_bytes)


def format_quantity(size_bytes: int) -> str:
    """The exact size in the largest binary unit that divides it: `1048576` is `1Mi`."""
    for unit in _BINARY_UNITS:
        if size_bytes and size_bytes % _FACTORS[unit] == 0:
            return f"{size_bytes // _FACTORS[unit]}{unit}"
    return str(size_bytes)


def _from_input(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise ValueError("a size is a number of bytes or text such as 256Mi")  # noqa: TRY004
    return parse_quantity(value)


QuantityBytes = Annotated[
    int,
    BeforeValidator(_from_input),
    PlainSerializer(format_quantity, return_type=str),
    # The one union that a structural schema allows; the API server knows it by the keyword.
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": PATTERN,
            "maxLength": 32,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""Bytes inside; outside a number or a Kubernetes quantity, written back as short as is exact."""

_AMOUNT = r"^[0-9]{1,19}(\.[0-9]{1,9})?(m|Ki|Mi|Gi|Ti|Pi|k|M|G|T|P)?$"
_AMOUNT_PARSER = re.compile(_AMOUNT.removesuffix("$"))
_AMOUNT_CHARACTERS = 32


def _amount(value: Any) -> int | str:
    if type(value) is int and value >= 0:
        return value
    is_short = isinstance(value, str) and len(value) <= _AMOUNT_CHARACTERS
    if is_short and _AMOUNT_PARSER.fullmatch(value):
        return str(value)
    raise ValueError("it is no amount: write a number, with a unit if needed, as in 500m or 1Gi")


Amount = Annotated[
    int | str,
    PlainValidator(_amount),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": _AMOUNT,
            "maxLength": _AMOUNT_CHARACTERS,
            "minimum": 0,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""Of CPU or memory, as a pod has it: 500m, 1Gi. It goes to Kubernetes as it is."""


def size_limits(least_bytes: int, most_bytes: int | None = None) -> Limits:
    """Bounds of one field, refused in the spelling of quantities."""
    size = "quantity(string(self))"
    rule = f"{size}.compareTo(quantity('{least_bytes}')) >= 0"
    if most_bytes is not None:
        rule += f" && {size}.compareTo(quantity('{most_bytes}')) <= 0"
    return Limits(least_bytes, most_bytes, format_quantity, rule)
