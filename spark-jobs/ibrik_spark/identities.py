"""Ids that messages have in common, over all of a topic and with little memory.

Each slice leaves the sorted 64-bit digests of its ids in a file, eight bytes a message; they are
counted a span of digests at a time. An id is one of its source, as for the broker.
"""

import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .errors import ScratchFailed
from .kernels import digest

IDS = pa.array(["ce_id", "ibrik-id"])
SOURCES = pa.array(["ce_source", "ibrik-publisher"])
SPAN_DIGESTS = 4_000_000  # in memory at once, 32 MB
SEED = np.uint64(14695981039346656037)


def digests_of(batch: pa.RecordBatch) -> Any:
    """A digest for each message of a batch that its producer gave an id."""
    headers = batch.column("headers")
    rows = pc.list_parent_indices(headers).to_numpy()
    names = headers.flatten().field("name")
    seeds = np.full(batch.num_rows, SEED)
    for wanted in (SOURCES, IDS):
        is_wanted = pc.is_in(names, value_set=wanted)
        at = rows[is_wanted.to_numpy(zero_copy_only=False)]
        found = _digests(headers.flatten().field("value").filter(is_wanted), seeds[at])
        if wanted is IDS:
            return found
        seeds[at] = found
    raise AssertionError("ids come last")


def _digests(values: pa.Array, seeds: Any) -> Any:
    values = pa.concat_arrays([values.fill_null(b"")])  # from its own first byte on
    _, offsets, data = values.buffers()
    found = np.empty(len(values), dtype=np.uint64)
    if len(values):
        places = np.frombuffer(offsets, dtype=np.int32)[values.offset :]
        content = np.frombuffer(data, dtype=np.uint8) if data else np.empty(0, dtype=np.uint8)
        digest(content, places, seeds, found)
    return found


def keep(folder: Path, digests: Sequence[Any]) -> str:
    """Leave the digests of a slice in a file of their own; its name."""
    name = f"{uuid.uuid4().hex}.npy"
    every = np.concatenate([np.empty(0, dtype=np.uint64), *digests])
    try:
        np.save(folder / name, np.sort(every))
    except OSError as error:
        raise ScratchFailed(
            f"cannot keep the ids of a slice in {folder}: {error.strerror or error}; they take "
            "eight bytes a message. Set TMPDIR to a folder with room"
        ) from error
    return name


def repeated(folder: Path, names: Sequence[str], *, span: int = SPAN_DIGESTS) -> int:
    """Messages of these files whose id was there before."""
    files = [np.load(folder / name, mmap_mode="r") for name in names]
    total = sum(len(file) for file in files)
    if not total:
        return 0
    spans = -(-total // span)
    bounds = [n * 2**64 // spans for n in range(1, spans)]
    return total - sum(len(np.unique(part)) for part in _parts(files, bounds))


def _parts(files: Sequence[Any], bounds: Sequence[int]) -> Iterator[Any]:
    """The digests of all files below each bound, and those above the last."""
    limits = np.array(bounds, dtype=np.uint64)
    cuts = [[0, *np.searchsorted(file, limits), len(file)] for file in files]
    for n in range(len(bounds) + 1):
        yield np.concatenate(
            [file[cut[n] : cut[n + 1]] for file, cut in zip(files, cuts, strict=True)]
        )
