"""Encoding, judging, stamping and decoding one record batch."""

import struct

import pytest
from crc32c import crc32c
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ibrik_log import batch
from ibrik_log.batch import (
    HEADER_BYTES,
    NO_PRODUCER,
    Producer,
    check,
    decode,
    encode,
    iterate_frames,
    read_header,
    split,
    stamp,
)
from ibrik_log.errors import CompressedBatch, CorruptRecord, InvalidBatch, LogError
from ibrik_log.record import Record

RECORDS = [
    Record(b"key", b"value", [("ce_id", b"1"), ("empty", b""), ("null", None)]),
    Record(None, None),
    Record(b"", b"", [("naïve ☃", b"\xff")]),
]


def changed(frame: bytes, at: int, form: str, *values: int) -> bytearray:
    """The frame with a header field overwritten and a checksum that fits."""
    copy = bytearray(frame)
    struct.pack_into(form, copy, at, *values)
    struct.pack_into(">I", copy, 17, crc32c(memoryview(copy)[21:]))
    return copy


def stamped(records: list[Record] = RECORDS, base_offset: int = 7) -> bytearray:
    frame = encode(records)
    stamp(frame, base_offset=base_offset, leader_epoch=3, append_time_ms=99)
    return frame


def test_a_batch_comes_back_as_it_was() -> None:
    records = decode(stamped())
    assert [(r.key, r.value, r.headers) for r in records] == [tuple(r) for r in RECORDS]
    assert [r.offset for r in records] == [7, 8, 9]


def test_a_records_time_is_the_time_of_the_append() -> None:
    frame = encode([Record(None, b"x")], timestamp_ms=5_000)
    stamp(frame, base_offset=0, leader_epoch=0, append_time_ms=99)
    assert decode(frame)[0].timestamp_ms == 99


def test_a_header_tells_all() -> None:
    header = check(encode(RECORDS, producer=Producer(5, 2, 70)))
    assert header.producer == Producer(5, 2, 70)
    assert header.record_count == 3
    assert (header.base_offset, header.last_offset, header.next_offset) == (0, 2, 3)
    assert check(encode(RECORDS)).producer == NO_PRODUCER


def test_a_stamped_batch_passes_the_check_and_keeps_its_producer() -> None:
    frame = encode(RECORDS, producer=Producer(5, 2, 70))
    stamp(frame, base_offset=1 << 40, leader_epoch=9, append_time_ms=1 << 40)
    header = check(frame)
    assert header.base_offset == 1 << 40
    assert header.leader_epoch == 9
    assert header.producer == Producer(5, 2, 70)


def test_the_default_headers_are_never_shared_with_a_reader() -> None:
    decode(encode([Record(None, b"x")]))[0].headers.append(("a", None))
    assert Record(None, None).headers == []


def test_a_lone_surrogate_in_a_headers_name_is_refused() -> None:
    with pytest.raises(InvalidBatch, match="text"):
        encode([Record(None, None, [("\ud800", b"")])])


def test_the_compiled_codec_is_the_one_that_is_used() -> None:
    assert "_crecords" in batch.DefaultRecordBatch.__module__
    assert "_crecords" in batch.DefaultRecordBatchBuilder.__module__


@pytest.mark.parametrize("length", range(HEADER_BYTES))
def test_a_batch_shorter_than_its_header_is_refused_before_the_codec_sees_it(length: int) -> None:
    with pytest.raises(InvalidBatch):
        check(encode(RECORDS)[:length])
    with pytest.raises(CorruptRecord):
        decode(encode(RECORDS)[:length])


@pytest.mark.parametrize(
    ("at", "form", "value", "error"),
    [
        (8, ">i", 5, InvalidBatch),  # length
        (8, ">i", -1, InvalidBatch),
        (16, ">b", 1, InvalidBatch),  # magic
        (21, ">h", 0x10, InvalidBatch),  # transactional
        (21, ">h", 0x20, InvalidBatch),  # control
        (21, ">h", 0x40, InvalidBatch),  # unused
        (21, ">h", -0x8000, InvalidBatch),
        (21, ">h", 1, CompressedBatch),  # gzip
        (21, ">h", 4, CompressedBatch),  # zstd
        (21, ">h", 7, CompressedBatch),  # no codec at all
        (23, ">i", 5, InvalidBatch),  # last offset delta
        (23, ">i", -1, InvalidBatch),
        (57, ">i", 0, InvalidBatch),  # count
        (57, ">i", -1, InvalidBatch),
        (57, ">i", 4, InvalidBatch),
        (43, ">qhi", (-2, 0, 0), InvalidBatch),  # producer
        (43, ">qhi", (1, -1, 0), InvalidBatch),
        (43, ">qhi", (1, 0, -1), InvalidBatch),
    ],
)
def test_an_impossible_header_is_refused(
    at: int, form: str, value: int | tuple[int, ...], error: type[LogError]
) -> None:
    values = value if isinstance(value, tuple) else (value,)
    frame = changed(encode(RECORDS), at, form, *values)
    with pytest.raises(error):
        check(frame)
    if at != 43:
        with pytest.raises(CorruptRecord):
            decode(frame)


def test_a_count_that_cannot_fit_is_refused_without_iterating() -> None:
    frame = changed(encode([Record(None, b"x" * 50)]), 57, ">i", (1 << 31) - 1)
    with pytest.raises(InvalidBatch, match="last offset delta"):
        check(frame)
    with pytest.raises(InvalidBatch, match="do not fit"):
        check(changed(frame, 23, ">i", (1 << 31) - 2))


def test_offsets_with_gaps_are_refused() -> None:
    frame = encode([Record(None, b"a"), Record(None, b"b")])
    at = frame.rindex(b"\x02\x01\x02b")  # offset delta 1, no key, one byte
    frame[at] = 0x04  # offset delta 2
    with pytest.raises(CorruptRecord, match="gaps"):
        check(changed(frame, 0, ">q", 0))


def test_bytes_after_the_last_record_are_refused() -> None:
    frame = encode(RECORDS) + b"\0"
    with pytest.raises(CorruptRecord):
        check(changed(frame, 8, ">i", len(frame) - 12))


def test_every_flipped_bit_behind_the_stamped_fields_is_noticed() -> None:
    frame = stamped()
    for bit in range(8 * 8, 8 * len(frame)):
        if 12 * 8 <= bit < 16 * 8:
            continue  # the epoch is told by the lineage
        copy = bytearray(frame)
        copy[bit // 8] ^= 1 << bit % 8
        with pytest.raises(LogError):
            check(copy)
        with pytest.raises(CorruptRecord):
            decode(copy)


def test_a_body_is_cut_into_frames() -> None:
    frames = [stamped(), stamped([Record(None, b"x")])]
    body = b"".join(frames)
    assert [bytes(frame) for frame in split(body)] == frames
    assert [bytes(frame) for frame in iterate_frames(body)] == frames
    assert split(b"") == []


@pytest.mark.parametrize("cut", [1, 30, 62, 90])
def test_a_body_that_does_not_come_out_even_is_refused(cut: int) -> None:
    with pytest.raises(InvalidBatch):
        split(bytes(stamped()) + bytes(stamped())[:cut])


def test_a_length_that_goes_nowhere_does_not_loop() -> None:
    with pytest.raises(CorruptRecord):
        list(iterate_frames(changed(stamped(), 8, ">i", -12)))


def test_a_header_that_is_not_whole_is_corrupt() -> None:
    with pytest.raises(CorruptRecord):
        read_header(bytes(60))


KEYS = st.none() | st.binary(max_size=20)
HEADERS = st.lists(st.tuples(st.text(st.characters(codec="utf-8"), max_size=5), KEYS), max_size=3)
LISTS = st.lists(st.builds(Record, KEYS, KEYS, HEADERS), min_size=1, max_size=10)


@given(LISTS, st.integers(0, 1 << 60), st.integers(0, 1 << 50))
def test_any_records_come_back(records: list[Record], base_offset: int, append_ms: int) -> None:
    frame = encode(records)
    check(frame)
    stamp(frame, base_offset=base_offset, leader_epoch=1, append_time_ms=append_ms)
    decoded = decode(frame)
    assert [(r.key, r.value, r.headers) for r in decoded] == [tuple(r) for r in records]
    assert [r.offset for r in decoded] == list(range(base_offset, base_offset + len(records)))
    assert {r.timestamp_ms for r in decoded} == {append_ms}


def judge(frame: bytearray) -> None:
    """Only errors of ours may escape."""
    for judged in (check, decode, split):
        try:
            judged(frame)
        except LogError:
            continue


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(st.binary(max_size=200), st.integers(-5, 1 << 31 - 1))
def test_no_garbage_gets_past_the_guard(records: bytes, count: int) -> None:
    """Garbage behind a header that fits: length, count and checksum are right."""
    frame = bytearray(
        struct.pack(
            ">qiibIhiqqqhii", 0, 49 + len(records), 0, 2, 0, 0, count - 1, 0, 0, -1, -1, -1, count
        )
        + records
    )
    judge(changed(frame, 0, ">q", 0))


@pytest.mark.slow
@pytest.mark.timeout(600)
@settings(max_examples=3000, deadline=None)
@given(st.data())
def test_no_change_of_a_good_batch_gets_past_the_guard(data: st.DataObject) -> None:
    frame = bytearray(encode(data.draw(LISTS)))
    for _ in range(data.draw(st.integers(1, 4))):
        frame[data.draw(st.integers(0, len(frame) - 1))] = data.draw(st.integers(0, 255))
    judge(changed(frame, 8, ">i", len(frame) - 12))
    judge(frame)


def varint(number: int) -> bytes:
    number = ((number << 1) ^ (number >> 63)) & ((1 << 64) - 1)
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


@given(st.integers(-(1 << 63), (1 << 63) - 1), st.integers(0, 4))
@example((1 << 63) - 1, 0)
@example((1 << 63) - 90, 1)
@example((1 << 63) - 90, 2)
@example(-(1 << 63), 3)
@example((1 << 63) - 1, 4)
def test_a_length_beyond_all_memory_is_only_corrupt(length: int, place: int) -> None:
    """Each length inside a record in turn: key, value, header name, header value, header count."""
    none = varint(-1)
    fields = [b"", none, none + none + varint(1), none + none + varint(1) + b"\x02a", none + none]
    record = bytes(3) + fields[place] + varint(length) + b"abc"
    body = varint(len(record)) + record
    frame = struct.pack(">qiibIhiqqqhii", 0, 49 + len(body), 0, 2, 0, 0, 0, 0, 0, -1, -1, -1, 1)
    judge(changed(frame + body, 0, ">q", 0))
