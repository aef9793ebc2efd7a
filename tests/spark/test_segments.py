"""Sealed segments to Arrow: every record as it was written, and every damaged range by name."""

import os
import random
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from crc32c import crc32c

from ibrik_log.batch import decode
from ibrik_log.config import LogConfig
from ibrik_log.errors import OffsetOutOfRange
from ibrik_log.record import Record
from ibrik_spark.errors import SegmentDeleted
from ibrik_spark.records import SCHEMA
from ibrik_spark.segments import MAX_ROWS, MIN_ROWS, DamagedRange, Piece, read
from tests.bitflips.content import write
from tests.spark.volumes import (
    NOW_MS,
    append,
    damages,
    fill,
    listed,
    new_log,
    numbered,
    offsets,
    read_all,
    rows,
    tiles,
)

CRC_START = 21


def segment(data: Path, base_offset: int) -> Path:
    return (
        data / "topics" / "7d17946a-9a18-4514-abf6-3d9d8f745ba5" / "1" / f"{base_offset:020d}.log"
    )


def rewrite(path: Path, at: int, content: bytes, *, frame_bytes: int | None = None) -> None:
    """Put `content` at `at`; with `frame_bytes`, the first frame gets a checksum that fits."""
    damaged = bytearray(path.read_bytes())
    damaged[at : at + len(content)] = content
    if frame_bytes is not None:
        damaged[17:21] = crc32c(damaged[CRC_START:frame_bytes]).to_bytes(4)
    path.write_bytes(damaged)


def two_segments(data: Path) -> None:
    """Offsets 0 to 8 in three batches, 9 to 17 in three more, and an active segment."""
    log = new_log(data)
    fill(log, 3)
    fill(log, 3)
    append(log, numbered(log, 2))
    log.close()


def test_every_part_of_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    records = [
        Record(b"key", b"value", [("ce_id", b"1"), ("ü", None), ("", b"")]),
        Record(None, None),
        Record(b"", b""),
        Record(b"\xff\xfe\x00", bytes(range(256)), [("only", b"\xff")]),
    ]
    append(log, records)
    log.roll(NOW_MS)
    (batch,) = read_all(listed(tmp_path))
    assert isinstance(batch, pa.RecordBatch)
    batch.validate(full=True)
    assert batch.schema.equals(SCHEMA)
    expected = [
        {
            "partition": 1,
            "offset": offset,
            "timestamp": datetime.fromtimestamp(NOW_MS / 1000, UTC),
            "key": record.key,
            "value": record.value,
            "headers": [{"name": name, "value": value} for name, value in record.headers],
            "leader_epoch": 0,
        }
        for offset, record in enumerate(records)
    ]
    assert batch.to_pylist() == expected
    log.close()


def test_what_the_log_decodes_the_reader_reads_for_every_kind_of_content(tmp_path: Path) -> None:
    new_log(tmp_path).close()
    original = write(segment(tmp_path, 0).parent, 1)
    partition = listed(tmp_path)
    pieces = read_all(partition)
    expected = [
        (r.offset, r.timestamp_ms, r.key, r.value, r.headers)
        for frame in original.frames
        if frame.base_offset < partition.end_offset
        for r in decode(frame.content)
    ]
    found = [
        (
            row["offset"],
            round(row["timestamp"].timestamp() * 1000),
            row["key"],
            row["value"],
            [(header["name"], header["value"]) for header in row["headers"]],
        )
        for row in rows(pieces)
    ]
    assert found == expected
    assert len({row["leader_epoch"] for row in rows(pieces)}) > 1


def test_the_active_segment_is_not_read_and_the_writer_goes_on(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    fill(log, 2)
    append(log, numbered(log, 5))
    partition = listed(tmp_path)
    assert offsets(read_all(partition)) == [0, 1, 2, 3, 4, 5]
    fill(log, 1)
    assert offsets(read_all(partition)) == [0, 1, 2, 3, 4, 5]
    assert offsets(read_all(listed(tmp_path))) == list(range(14))
    log.close()


def test_any_range_is_cut_to_the_record_also_inside_a_batch(tmp_path: Path) -> None:
    two_segments(tmp_path)
    partition = listed(tmp_path)
    for start in range(19):
        for end in range(start, 19):
            assert offsets(read(partition, start, end)) == list(range(start, end))


def test_a_partition_without_sealed_records_reads_as_nothing(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, numbered(log, 3))
    assert read_all(listed(tmp_path)) == []
    with pytest.raises(OffsetOutOfRange):
        read(listed(tmp_path), 0, 1)
    log.close()


def test_an_offset_outside_the_sealed_log_is_refused_before_anything_is_read(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    fill(log, 3)
    fill(log, 3)
    log.truncate_before(11)
    partition = listed(tmp_path)
    assert (partition.start_offset, partition.end_offset) == (11, 18)
    assert offsets(read_all(partition)) == list(range(11, 18))
    for start, end in ((10, 18), (11, 19), (14, 12)):
        with pytest.raises(OffsetOutOfRange):
            read(partition, start, end)
    log.close()


def test_a_segment_that_was_deleted_after_listing_is_an_error_and_no_short_result(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    fill(log, 3)
    fill(log, 3)
    partition = listed(tmp_path)
    log.truncate_before(9)
    with pytest.raises(SegmentDeleted, match="list the partition again"):
        list(read(partition, 0, 18))
    log.close()


def test_a_file_emptied_while_it_is_read_is_a_deleted_segment(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    for _ in range(40):
        append(log, [Record(None, bytes(1_000_000))])
    log.roll(NOW_MS)
    pieces = read(listed(tmp_path), 0, 40)
    assert isinstance(next(pieces), pa.RecordBatch)
    log.truncate_before(40, free=False)
    os.truncate(segment_deleted(tmp_path), 0)  # as the broker does it: the name, then the bytes
    with pytest.raises(SegmentDeleted):
        list(pieces)
    log.close()


def segment_deleted(data: Path) -> Path:
    path = segment(data, 0)
    return path.with_name(path.name + ".deleted")


def test_a_truncated_segment_is_reported_to_its_end(tmp_path: Path) -> None:
    two_segments(tmp_path)
    path = segment(tmp_path, 0)
    path.write_bytes(path.read_bytes()[:-5])
    pieces = read_all(listed(tmp_path))
    assert [(d.from_offset, d.to_offset) for d in damages(pieces)] == [(6, 9)]
    assert tiles(pieces, 0, 18)


def test_an_emptied_segment_that_still_has_its_name_is_damage(tmp_path: Path) -> None:
    two_segments(tmp_path)
    segment(tmp_path, 0).write_bytes(b"")
    pieces = read_all(listed(tmp_path))
    assert damages(pieces) == [DamagedRange(0, 9, "the segment ends before it should")]
    assert tiles(pieces, 0, 18)


def test_a_batch_of_an_unknown_version_is_reported(tmp_path: Path) -> None:
    two_segments(tmp_path)
    rewrite(segment(tmp_path, 0), 16, b"\x03")
    pieces = read_all(listed(tmp_path))
    assert damages(pieces) == [DamagedRange(0, 3, "magic is 3")]
    assert tiles(pieces, 0, 18)


def test_a_batch_that_says_it_has_a_hundred_megabytes_is_damage_and_is_not_waited_for(
    tmp_path: Path,
) -> None:
    two_segments(tmp_path)
    rewrite(segment(tmp_path, 0), 8, (100 * 1024 * 1024).to_bytes(4))
    pieces = read_all(listed(tmp_path))
    assert [(d.from_offset, d.to_offset) for d in damages(pieces)] == [(0, 3)]
    assert tiles(pieces, 0, 18)


def test_compressed_batches_and_impossible_records_are_reported_though_their_checksum_fits(
    tmp_path: Path,
) -> None:
    two_segments(tmp_path)
    path = segment(tmp_path, 0)
    frame_bytes = int.from_bytes(path.read_bytes()[8:12]) + 12
    rewrite(path, 22, b"\x09", frame_bytes=frame_bytes)
    pieces = read_all(listed(tmp_path))
    assert [(d.from_offset, d.to_offset) for d in damages(pieces)] == [(0, 3)]
    assert "compressed" in damages(pieces)[0].reason
    assert tiles(pieces, 0, 18)


@pytest.mark.parametrize("seed", range(3))
def test_records_garbled_below_a_fitting_checksum_never_read_as_more_or_fewer(
    tmp_path: Path, seed: int
) -> None:
    """The compiled decode trusts no byte: what the log's own decode refuses is damage here."""
    rng = random.Random(seed)
    log = new_log(tmp_path)
    append(log, [Record(b"k%d" % n, b"v" * n, [("ü", b"h")]) for n in range(20)])
    fill(log, 1)
    log.close()
    path = segment(tmp_path, 0)
    good = path.read_bytes()
    frame_bytes = int.from_bytes(good[8:12]) + 12
    for _ in range(100):
        path.write_bytes(good)
        at = rng.randrange(61, frame_bytes)
        rewrite(path, at, rng.randbytes(1), frame_bytes=frame_bytes)
        assert_agrees_with_the_log(read_all(listed(tmp_path)), path.read_bytes()[:frame_bytes])


def assert_agrees_with_the_log(pieces: list[Piece], frame: bytes) -> None:
    assert tiles(pieces, 0, 23)
    try:
        expected = [(r.key, r.value) for r in decode(frame)]
    except Exception:  # noqa: BLE001 - whatever the log says of it, it is damage
        assert [(d.from_offset, d.to_offset) for d in damages(pieces)] == [(0, 20)]
        return
    if not damages(pieces):
        assert [(row["key"], row["value"]) for row in rows(pieces)[:20]] == expected


def test_every_flipped_bit_is_named_and_costs_at_most_its_batch_and_a_neighbour(
    tmp_path: Path,
) -> None:
    two_segments(tmp_path)
    path = segment(tmp_path, 0)
    good = path.read_bytes()
    partition = listed(tmp_path)
    everything = {row["offset"]: row for row in rows(read_all(partition))}
    for bit in range(0, len(good) * 8, 7):
        flipped = bytearray(good)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        pieces = read_all(partition)
        assert tiles(pieces, 0, 18), f"bit {bit}"
        assert 1 <= sum(d.to_offset - d.from_offset for d in damages(pieces)) <= 6, f"bit {bit}"
        assert all(everything[row["offset"]] == row for row in rows(pieces))


def test_batches_have_thousands_of_rows_whatever_the_size_of_what_was_published(
    tmp_path: Path,
) -> None:
    log = new_log(tmp_path)
    for _ in range(100):
        append(log, [Record(None, bytes(500))] * 100)
    append(log, [Record(None, b"")] * (MAX_ROWS + 10))
    log.roll(NOW_MS)
    partition = listed(tmp_path)
    pieces = read_all(partition)
    assert tiles(pieces, 0, 10_000 + MAX_ROWS + 10)
    sizes = [piece.num_rows for piece in pieces if isinstance(piece, pa.RecordBatch)]
    assert max(sizes) <= MAX_ROWS
    assert sum(size < MIN_ROWS for size in sizes) <= 2
    log.close()


def test_small_segments_are_joined_over_their_borders(tmp_path: Path) -> None:
    log = new_log(tmp_path, LogConfig(segment_bytes=400, index_interval_bytes=100))
    for _ in range(30):
        append(log, numbered(log, 2))
    log.roll(NOW_MS)
    partition = listed(tmp_path)
    assert len(partition.segments) > 5
    (batch,) = read_all(partition)
    assert isinstance(batch, pa.RecordBatch)
    assert batch.num_rows == 60
    log.close()
