"""How many records there were in each minute, and under which keys. Knows Arrow, and no place.

Counts are exact; of keys each portion of the work sends its most frequent ones, so a count of a key
is exact when no portion has more keys than that.
"""

import base64
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .reports import timestamp
from .work import Found

MINUTE_MS = 60_000
KEYS_SENT = 1_000  # of one portion
HOT_KEYS = 10
QUIET_LISTED = 20
COLUMNS = ["timestamp", "key", "value"]


class Counts:
    """Of one partition, or a part of it."""

    def __init__(self) -> None:
        self._minutes: dict[int, list[int]] = {}
        self._keys: Counter[bytes] = Counter()
        self._damaged = 0

    def add(self, records: pa.RecordBatch) -> None:
        """Records with the columns of `COLUMNS`, in any order."""
        self._add_minutes(records)
        counted = pc.value_counts(records.column("key").drop_null())
        self._keys.update(dict(zip(*(counted.field(n).to_pylist() for n in (0, 1)), strict=True)))

    def add_damaged(self, records: int) -> None:
        """Records that were there and cannot be counted."""
        self._damaged += records

    def found(self, partition: int) -> Found:
        """For `summary`: what JSON can hold."""
        return {
            "partition": partition,
            "minutes": [[minute, *counts] for minute, counts in sorted(self._minutes.items())],
            "keys": [[_text_of(key), count] for key, count in self._keys.most_common(KEYS_SENT)],
            "damaged": self._damaged,
        }

    def _add_minutes(self, records: pa.RecordBatch) -> None:
        times = records.column("timestamp").cast(pa.timestamp("ms", tz="UTC"), safe=False)
        at = times.cast(pa.int64()).to_numpy() // MINUTE_MS
        lengths = pc.add(
            pc.fill_null(pc.binary_length(records.column("key")), 0),
            pc.fill_null(pc.binary_length(records.column("value")), 0),
        ).to_numpy()
        found, places = np.unique(at, return_inverse=True)
        counted, sizes = np.bincount(places), np.bincount(places, weights=lengths)
        for minute, count, size in zip(found, counted, sizes, strict=True):
            known = self._minutes.setdefault(int(minute), [0, 0])
            known[0] += int(count)
            known[1] += int(size)


def summary(found: Sequence[Found]) -> dict[str, Any]:
    """What the parts of one topic come to together."""
    minutes: dict[int, list[int]] = {}
    keys: Counter[str] = Counter()
    partitions: Counter[int] = Counter({f["partition"]: 0 for f in found})
    for f in found:
        keys.update(dict(f["keys"]))
        for minute, records, size_bytes in f["minutes"]:
            known = minutes.setdefault(minute, [0, 0])
            known[0] += records
            known[1] += size_bytes
            partitions[f["partition"]] += records
    total = partitions.total()
    times = sorted(minutes)
    return {
        "records": total,
        "bytes": sum(size_bytes for _, size_bytes in minutes.values()),
        "damaged": sum(f["damaged"] for f in found),
        "from": _time(times[0]) if times else None,
        "to": _time(times[-1]) if times else None,
        "partitions": [
            {"partition": number, "records": records, "share": _share(records, total)}
            for number, records in sorted(partitions.items())
        ],
        "hotKeys": [
            {"key": key, "records": records, "share": _share(records, total)}
            for key, records in keys.most_common(HOT_KEYS)
        ],
        "quiet": _quiet(times),
        "minutes": [
            {"time": _time(m), "records": minutes[m][0], "bytes": minutes[m][1]} for m in times
        ],
    }


def _text_of(key: bytes) -> str:
    """A key as text; one that is none as Base64."""
    try:
        text = key.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(key).decode()
    return text if text.isprintable() else repr(text)


def _quiet(times: Sequence[int]) -> list[dict[str, Any]]:
    """The longest stretches between the first and the last minute in which nothing came."""
    found = [(after - before - 1, before + 1) for before, after in pairwise(times)]
    longest = sorted((q for q in found if q[0]), key=lambda q: (-q[0], q[1]))
    return [{"from": _time(start), "minutes": count} for count, start in longest[:QUIET_LISTED]]


def _share(records: int, total: int) -> float:
    return round(records / total, 4) if total else 0.0


def _time(minute: int) -> str:
    return timestamp(minute * 60)
