"""The pure parts: documents, lineage, indexes, ranges."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ibrik_log.checkpoint import (
    Checkpoint,
    CleanMarker,
    OffsetRange,
    SealedSegments,
    SegmentSummary,
    decode_checkpoint,
    decode_clean_marker,
    decode_sealed,
    encode_checkpoint,
    encode_clean_marker,
    encode_sealed,
)
from ibrik_log.document import decode_document, encode_document
from ibrik_log.epochs import EpochRun, Lineage, decode_epochs, encode_epochs
from ibrik_log.errors import UnreadableDocument
from ibrik_log.index import OffsetIndex
from ibrik_log.recovery import merge_ranges
from ibrik_log.timeindex import TimeIndex

SEGMENT = SegmentSummary(0, 10, 100, 1, 9)
SEALED = SealedSegments(3, (SEGMENT, SegmentSummary(10, 20, 100, 9, 12)), (OffsetRange(4, 6),))


def test_documents_come_back_as_they_were() -> None:
    assert decode_checkpoint(encode_checkpoint(Checkpoint(3, 9))) == Checkpoint(3, 9)
    marker = CleanMarker(10, 2, SEGMENT)
    assert decode_clean_marker(encode_clean_marker(marker)) == marker
    assert decode_sealed(encode_sealed(SEALED)) == SEALED
    lineage = Lineage(((0, 0), (3, 50)))
    assert decode_epochs(encode_epochs(lineage)).entries == lineage.entries


def test_every_flipped_bit_of_a_document_is_noticed_or_harmless() -> None:
    content = encode_sealed(SEALED)
    for bit in range(len(content) * 8):
        copy = bytearray(content)
        copy[bit // 8] ^= 1 << bit % 8
        try:
            assert decode_sealed(bytes(copy)) == SEALED
        except UnreadableDocument:
            continue


@given(st.binary(max_size=300) | st.text().map(str.encode))
def test_no_garbage_is_a_document(content: bytes) -> None:
    for decode in (decode_checkpoint, decode_clean_marker, decode_sealed, decode_epochs):
        with pytest.raises(UnreadableDocument):
            decode(content)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("checkpoint", {"start_offset": 1}),
        ("checkpoint", {"start_offset": "1", "recovery_point": 2}),
        ("checkpoint", {"start_offset": True, "recovery_point": 2}),
        ("clean", {"end_offset": 1, "leader_epoch": 1, "active": None}),
        ("sealed", {"start_offset": 1, "segments": [5], "damaged": []}),
        ("sealed", {"start_offset": 1, "segments": None, "damaged": []}),
        ("sealed", {"start_offset": 1}),
        ("sealed", {"start_offset": 1, "segments": [], "damaged": [{"from_offset": 1}]}),
        ("epochs", {"epochs": [{"epoch": 1}]}),
        ("epochs", {}),
    ],
)
def test_a_document_without_its_fields_is_unreadable(kind: str, body: dict[str, object]) -> None:
    decoders = {
        "checkpoint": decode_checkpoint,
        "clean": decode_clean_marker,
        "sealed": decode_sealed,
        "epochs": decode_epochs,
    }
    with pytest.raises(UnreadableDocument):
        decoders[kind](encode_document(kind, 1, body))


def test_another_kind_version_or_checksum_is_unreadable() -> None:
    content = encode_document("a", 1, {"x": 1})
    assert decode_document(content, "a", 1) == {"x": 1}
    with pytest.raises(UnreadableDocument, match="expected b"):
        decode_document(content, "b", 1)
    with pytest.raises(UnreadableDocument, match="expected a version 2"):
        decode_document(content, "a", 2)
    changed = json.loads(content) | {"body": {"x": 2}}
    with pytest.raises(UnreadableDocument, match="checksum"):
        decode_document(json.dumps(changed).encode(), "a", 1)


def test_the_epoch_of_an_offset_is_that_of_the_last_start_at_or_below_it() -> None:
    lineage = Lineage(((1, 10), (4, 20)))
    assert lineage.span_at(9)[0] == -1
    assert lineage.span_at(10) == (1, 20)
    assert lineage.span_at(19) == (1, 20)
    assert lineage.span_at(20)[0] == 4
    assert Lineage().latest == -1


def test_epochs_that_wrote_nothing_are_forgotten_also_when_the_cut_is_the_end() -> None:
    lineage = Lineage(((1, 0), (2, 10), (3, 10)))
    assert lineage.truncate(10).entries == ((1, 0),)
    assert lineage.assign(4, 10).entries == ((1, 0), (4, 10))
    with pytest.raises(AssertionError):
        lineage.assign(3, 20)


def test_epochs_of_which_nothing_is_left_are_forgotten() -> None:
    lineage = Lineage(((1, 0), (2, 10), (3, 20)))
    assert lineage.without_epochs_before(15).entries == ((2, 10), (3, 20))
    assert lineage.without_epochs_before(0).entries == lineage.entries


def test_a_lineage_is_rebuilt_from_frames_and_the_shorter_run_is_the_damaged_one() -> None:
    good = [EpochRun(1, 0, 5), EpochRun(2, 50, 5), EpochRun(7, 100, 5)]
    assert Lineage.from_runs(good).entries == ((1, 0), (2, 50), (7, 100))
    high = [EpochRun(1, 0, 5), EpochRun(900, 50, 1), EpochRun(1, 60, 5), EpochRun(2, 90, 1)]
    assert Lineage.from_runs(high).entries == ((1, 0), (2, 90))
    low = [EpochRun(5, 0, 5), EpochRun(1, 50, 1), EpochRun(5, 60, 5)]
    assert Lineage.from_runs(low).entries == ((5, 0),)


@given(st.sets(st.integers(0, 1 << 30), min_size=1), st.integers(0, 1 << 30))
def test_an_offset_index_finds_the_last_entry_at_or_below(offsets: set[int], target: int) -> None:
    index = OffsetIndex()
    for position, offset in enumerate(sorted(offsets)):
        index.add(offset, position * 7)
    again = OffsetIndex.decode(index.encode(), len(offsets) * 7)
    assert again is not None
    below = [offset for offset in offsets if offset <= target]
    found = again.lookup(target)
    assert found == index.lookup(target)
    assert (found[0] if found else None) == max(below, default=None)
    assert again.last_position == (len(offsets) - 1) * 7


@given(st.lists(st.integers(0, 50), min_size=1), st.integers(-1, 51))
def test_a_time_index_finds_the_last_entry_before(times: list[int], target: int) -> None:
    index = TimeIndex()
    for offset, time_ms in enumerate(sorted(times)):
        index.add(time_ms, offset)
    again = TimeIndex.decode(index.encode())
    assert again is not None
    assert len(again) == len(set(times))
    found = again.lookup(target)
    assert found == index.lookup(target)
    before = [time_ms for time_ms in times if time_ms < target]
    assert (sorted(times)[found] if found is not None else None) == max(before, default=None)


def test_the_indexes_are_those_of_kafka_byte_for_byte() -> None:
    index, times = OffsetIndex(), TimeIndex()
    for offset, position, time_ms in (
        (59, 5000, 1_700_000_000_000),
        (109, 10_000, 1_700_000_000_002),
    ):
        index.add(offset, position)
        times.add(time_ms, offset)
    assert index.encode().hex(" ", 4) == "0000003b 00001388 0000006d 00002710"
    assert times.encode().hex() == "0000018bcfe568000000003b0000018bcfe568020000006d"


@given(st.binary(max_size=100), st.integers(0, 1000))
def test_garbage_is_no_index_or_a_plausible_one(content: bytes, size_bytes: int) -> None:
    index = OffsetIndex.decode(content, size_bytes)
    if index is not None:
        assert index.encode() == content
        entry = index.lookup(1 << 31)
        assert entry is None or 0 <= entry[1] < size_bytes
    times = TimeIndex.decode(content)
    assert times is None or times.encode() == content


def test_ranges_are_joined_and_cut_at_the_log_start() -> None:
    ranges = [OffsetRange(5, 7), OffsetRange(1, 3), OffsetRange(6, 9), OffsetRange(20, 20)]
    assert merge_ranges(ranges, 2) == [OffsetRange(2, 3), OffsetRange(5, 9)]
