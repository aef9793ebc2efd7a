"""Record batches, format v2 of Kafka (docs/formats/segment.md): encode, check, stamp, decode.

Pure: no clock, no disk. The only caller of the compiled codec, which trusts its input and must be
guarded: it reads out of bounds below 61 bytes, accepts impossible counts, inflates bombs, and lets
foreign exceptions escape. A frame is one batch as it lies in a file.
"""

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from aiokafka.errors import KafkaError

# The compiled classes by name: the package falls back to pure Python, 20 times slower, silently.
from aiokafka.record._crecords.default_records import (
    DefaultRecordBatch,
    DefaultRecordBatchBuilder,
)
from crc32c import crc32c

from .errors import CompressedBatch, CorruptRecord, InvalidBatch
from .record import Record, StoredRecord

HEADER = Struct(">qiibIhiqqqhii")
HEADER_BYTES = HEADER.size
PREFIX_BYTES = 12  # base offset and length; the length field counts what follows them
CRC_START = 21  # the checksum covers everything from the attributes on
MAGIC = 2
MIN_RECORD_BYTES = 7  # length, attributes, two deltas, key, value, header count: one byte each
COMPRESSION_MASK = 0x07
LOG_APPEND_TIME = 0x08
TRANSACTIONAL = 0x10
CONTROL = 0x20

_BASE_OFFSET = Struct(">q")
_LENGTH = Struct(">i")
_EPOCH = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")

Buffer = bytes | bytearray | memoryview
# What the codec raises on garbage. MemoryError, OverflowError: a length that no buffer could have.
_CODEC_ERRORS = (KafkaError, ValueError, ArithmeticError, LookupError, MemoryError, SystemError)


class Producer(NamedTuple):
    """Who wrote a batch, and where it stands in that producer's sequence."""

    id: int
    epoch: int
    sequence: int


NO_PRODUCER = Producer(-1, -1, -1)


class BatchHeader(NamedTuple):
    """The 61 bytes before the records. `length_bytes` is that of the whole frame."""

    base_offset: int
    length_bytes: int
    leader_epoch: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer: Producer
    record_count: int

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1


def encode(
    records: Sequence[Record], *, timestamp_ms: int = 0, producer: Producer = NO_PRODUCER
) -> bytearray:
    """Build one frame at offset 0; `stamp` moves it to its place in a log."""
    assert records, "a batch holds at least one record"
    builder = DefaultRecordBatchBuilder(MAGIC, 0, 0, *producer, 1 << 30)
    append = builder.append
    try:
        for delta, (key, value, headers) in enumerate(records):
            append(delta, timestamp_ms, key, value, headers)
        frame: bytearray = builder.build()
    except UnicodeEncodeError as error:  # a lone surrogate, which JSON can spell
        raise InvalidBatch("a header's name is no valid text") from error
    return frame


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position` without judging it, except that it must be whole."""
    if len(buffer) - position < HEADER_BYTES:
        raise CorruptRecord(f"a batch has at least {HEADER_BYTES} bytes")
    (
        base_offset,
        length_bytes,
        leader_epoch,
        _magic,
        _crc,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        sequence,
        record_count,
    ) = HEADER.unpack_from(buffer, position)
    return BatchHeader(
        base_offset,
        length_bytes + PREFIX_BYTES,
        leader_epoch,
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        Producer(producer_id, producer_epoch, sequence),
        record_count,
    )


def check(buffer: Buffer) -> BatchHeader:
    """Judge one foreign batch; everything that can be wrong with it is found here.

    Raises InvalidBatch (not a batch we take), CompressedBatch, CorruptRecord (checksum, records).
    """
    if len(buffer) < HEADER_BYTES:
        raise InvalidBatch(f"a batch has at least {HEADER_BYTES} bytes, this one {len(buffer)}")
    header = read_header(buffer)
    if header.length_bytes != len(buffer):
        raise InvalidBatch(
            f"the batch says it has {header.length_bytes} bytes and has {len(buffer)}"
        )
    _check_magic(buffer)
    _check_attributes(header.attributes)
    _check_count(header)
    _check_producer(header.producer)
    _check_crc(buffer)
    _decode(buffer, header)
    return header


def split(buffer: Buffer) -> list[memoryview]:
    """Cut a body of several batches into frames; InvalidBatch if it does not come out even."""
    try:
        return list(iterate_frames(buffer))
    except CorruptRecord as error:
        raise InvalidBatch(str(error)) from error


def iterate_frames(buffer: Buffer) -> Iterator[memoryview]:
    """Yield each frame of a concatenation of whole frames."""
    view = memoryview(buffer)
    position = 0
    while position < len(view):
        if len(view) - position < HEADER_BYTES:
            raise CorruptRecord(f"{len(view) - position} bytes after the last whole batch")
        length_bytes = _LENGTH.unpack_from(view, position + 8)[0] + PREFIX_BYTES
        if length_bytes < HEADER_BYTES or position + length_bytes > len(view):
            raise CorruptRecord(f"the batch at byte {position} has an impossible length")
        yield view[position : position + length_bytes]
        position += length_bytes


def stamp(buffer: bytearray, *, base_offset: int, leader_epoch: int, append_time_ms: int) -> None:
    """Give a checked batch its place: offset, epoch and append time, and a new checksum."""
    _BASE_OFFSET.pack_into(buffer, 0, base_offset)
    _EPOCH.pack_into(buffer, 12, leader_epoch)
    _ATTRIBUTES.pack_into(buffer, 21, _ATTRIBUTES.unpack_from(buffer, 21)[0] | LOG_APPEND_TIME)
    _MAX_TIMESTAMP.pack_into(buffer, 35, append_time_ms)
    _CRC.pack_into(buffer, 17, crc32c(memoryview(buffer)[CRC_START:]))


def decode(buffer: Buffer) -> list[StoredRecord]:
    """Decode one frame; CorruptRecord on anything wrong with it."""
    header = read_header(buffer)
    if header.length_bytes != len(buffer):
        raise CorruptRecord(
            f"the batch says it has {header.length_bytes} bytes and has {len(buffer)}"
        )
    try:
        _check_magic(buffer)
        _check_attributes(header.attributes)
        _check_count(header)
    except (InvalidBatch, CompressedBatch) as error:
        raise CorruptRecord(str(error)) from error
    _check_crc(buffer)
    return _decode(buffer, header)


def _check_magic(buffer: Buffer) -> None:
    if buffer[16] != MAGIC:
        raise InvalidBatch(f"batches have magic {MAGIC}, this one {buffer[16]}")


def _check_attributes(attributes: int) -> None:
    if attributes & COMPRESSION_MASK:
        raise CompressedBatch("batches are taken uncompressed; compress the request body instead")
    if attributes & (TRANSACTIONAL | CONTROL):
        raise InvalidBatch("transactional and control batches are not taken")
    if attributes & ~LOG_APPEND_TIME:
        raise InvalidBatch(f"unknown attribute bits {attributes & 0xFFFF:#06x}")


def _check_count(header: BatchHeader) -> None:
    if header.record_count < 1:
        raise InvalidBatch(f"a batch holds at least one record, this one {header.record_count}")
    if header.last_offset_delta != header.record_count - 1:
        raise InvalidBatch(
            f"{header.record_count} records with a last offset delta of {header.last_offset_delta}"
        )
    # Before anything iterates: a count of two billion in a batch of a hundred bytes costs nothing.
    if header.record_count * MIN_RECORD_BYTES > header.length_bytes - HEADER_BYTES:
        raise InvalidBatch(f"{header.record_count} records do not fit into the batch")


def _check_producer(producer: Producer) -> None:
    if producer.id < -1 or (producer.id >= 0 and (producer.epoch < 0 or producer.sequence < 0)):
        raise InvalidBatch(f"impossible producer id, epoch and sequence {tuple(producer)}")


def _check_crc(buffer: Buffer) -> None:
    if crc32c(memoryview(buffer)[CRC_START:]) != _CRC.unpack_from(buffer, 17)[0]:
        raise CorruptRecord("the batch's checksum is wrong")


def _decode(buffer: Buffer, header: BatchHeader) -> list[StoredRecord]:
    timestamp_ms = header.max_timestamp_ms
    records = []
    try:
        for offset, record in enumerate(DefaultRecordBatch(buffer), header.base_offset):
            if record.offset != offset:
                raise CorruptRecord("the batch's offsets have gaps")
            records.append(
                StoredRecord(offset, timestamp_ms, record.key, record.value, record.headers)
            )
    except _CODEC_ERRORS as error:
        raise CorruptRecord(f"the batch's records are damaged: {error}") from error
    return records
