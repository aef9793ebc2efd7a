"""The compiled loops of the decode: where the parts of records lie, and copying them together.

Machine code by numba at the first call of a process, some seconds in all. Nothing is checked
by the machine: every position is checked here against its end before it is read.
"""

from typing import Any

import numba
import numpy as np

HEADER_BYTES = 61

# Numba has no types; these are arrays of one dimension.
Array = Any


@numba.njit(nogil=True)
def varint(data: Array, at: int, end: int) -> tuple[Any, Any]:
    """A zig-zag varint before `end`, and the position after it; that is -1 when there is none."""
    raw = np.int64(0)
    shift = np.int64(0)
    while at < end and shift < 64:
        byte = np.int64(data[at])
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7
    return np.int64(0), np.int64(-1)


@numba.njit(nogil=True)
def part(data: Array, at: int, end: int) -> tuple[Any, Any]:
    """Where a length-prefixed part lies, and its length (-1: null); position -1: impossible."""
    length, at = varint(data, at, end)
    if at < 0 or length < -1 or length > end - at:
        return np.int64(-1), np.int64(-1)
    return at, length


@numba.njit(nogil=True)
def skip_headers(data: Array, at: int, end: int, count: int) -> int:
    """The position after `count` headers; -1 when they are impossible."""
    for _ in range(count):
        at, length = part(data, at, end)
        if at < 0 or length < 0:
            return -1
        at, length = part(data, at + length, end)
        if at < 0:
            return -1
        at += max(length, 0)
    return at


@numba.njit(nogil=True)
def locate_record(  # noqa: PLR0911 - one refusal for each thing that may be wrong
    data: Array, at: int, end: int, delta: int, row: Array
) -> int:
    """Fill `row` for the record at `at`; the position after it, or -1 when it is damaged.

    A row: key position and length, value position and length, headers position and count.
    """
    length, at = varint(data, at, end)
    if at < 0 or length < 1 or length > end - at:
        return -1
    stop = at + length
    if data[at] != 0:  # attributes, none of which is known
        return -1
    _, at = varint(data, at + 1, stop)
    if at < 0:
        return -1
    found, at = varint(data, at, stop)
    if at < 0 or found != delta:
        return -1
    for column in (0, 2):
        at, length = part(data, at, stop)
        if at < 0:
            return -1
        row[column] = at
        row[column + 1] = length
        at += max(length, 0)
    count, at = varint(data, at, stop)
    if at < 0 or count < 0 or count > stop - at:
        return -1
    row[4] = at
    row[5] = count
    return stop if skip_headers(data, at, stop, count) == stop else -1


@numba.njit(nogil=True)
def locate(data: Array, starts: Array, ends: Array, counts: Array, rows: Array) -> bool:
    """Fill `rows` for all records of the frames; False when one of them is damaged."""
    row = 0
    for frame in range(len(starts)):
        at = starts[frame] + HEADER_BYTES
        end = ends[frame]
        for delta in range(counts[frame]):
            at = locate_record(data, at, end, delta, rows[row])
            if at < 0:
                return False
            row += 1
        if at != end:
            return False
    return True


@numba.njit(nogil=True)
def locate_headers(data: Array, rows: Array, headers: Array) -> None:
    """Fill `headers` (name position and length, value position and length) of located rows."""
    header = 0
    end = len(data)
    for row in range(len(rows)):
        at = rows[row, 4]
        for _ in range(rows[row, 5]):
            for column in (0, 2):
                at, length = part(data, at, end)
                headers[header, column] = at
                headers[header, column + 1] = length
                at += max(length, 0)
            header += 1


@numba.njit(nogil=True)
def gather(data: Array, positions: Array, lengths: Array, offsets: Array, target: Array) -> None:
    """Copy parts behind each other into `target`; part n begins at `offsets[n]`."""
    for number in range(len(positions)):
        at = positions[number]
        to = offsets[number]
        for byte in range(lengths[number]):
            target[to + byte] = data[at + byte]


@numba.njit(nogil=True)
def digest(data: Array, offsets: Array, seeds: Array, digests: Array) -> None:
    """FNV-1a of each value of a column of bytes, begun at its seed. For equality alone."""
    prime = np.uint64(1099511628211)
    for row in range(len(seeds)):
        value = seeds[row]
        for at in range(offsets[row], offsets[row + 1]):
            value = (value ^ np.uint64(data[at])) * prime
        digests[row] = value
