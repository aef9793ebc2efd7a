"""The examples of docs/formats are what the code reads and writes."""

import re
from functools import partial
from pathlib import Path

from ibrik_log.batch import check, decode, encode
from ibrik_log.checkpoint import decode_checkpoint, decode_clean_marker, decode_sealed
from ibrik_log.epochs import decode_epochs
from ibrik_log.index import OffsetIndex
from ibrik_log.log import Log, LogConfig
from ibrik_log.record import Record
from ibrik_log.timeindex import TimeIndex
from ibrik_log.watermark import decode_watermark
from tests.log.logs import NOW_MS, REAL

FORMATS = Path(__file__).resolve().parents[2] / "docs/formats"


def block_of(page: str) -> str:
    """The last fenced block of a page."""
    return re.findall(r"```\n(.*?)```", (FORMATS / page).read_text(), re.DOTALL)[-1]


def hex_of(page: str) -> bytes:
    """The bytes at the start of each line: pairs of digits with one space between."""
    lines = re.findall(r"^(?:[0-9a-f]{8}: )?((?:[0-9a-f]{2} )*[0-9a-f]{2})\b", block_of(page), re.M)
    return bytes.fromhex(" ".join(lines))


def test_the_segment_in_the_specification_is_one() -> None:
    frame = hex_of("segment.md")
    assert check(frame).leader_epoch == 0
    first, second = decode(frame)
    assert first == (4, NOW_MS + 2, b"k", b"v2", [("ce_id", b"1")])
    assert second == (5, NOW_MS + 2, None, b"w", [])


def test_the_indexes_in_the_specification_are_ones() -> None:
    index = OffsetIndex.decode(hex_of("index.md"), 20_000)
    assert index is not None
    assert [index.lookup(58), index.lookup(59)] == [None, (59, 5000)]
    assert index.lookup(109) == (109, 10_000)
    times = TimeIndex.decode(hex_of("timeindex.md"))
    assert times is not None
    found = [times.lookup(NOW_MS + later) for later in (0, 1, 2, 3)]
    assert found == [None, 59, 59, 109]


def test_the_index_in_the_specification_is_the_one_that_is_written(tmp_path: Path) -> None:
    log = Log.open(REAL, tmp_path / "0", LogConfig())
    empty = len(encode([Record(None, b"")] * 9 + [Record(None, bytes(800))])) - 800
    for _ in range(11):
        frame = encode([Record(None, b"")] * 9 + [Record(None, bytes(1000 - empty))])
        assert len(frame) == 1000
        log.append([frame], NOW_MS)
    log.close()
    assert (tmp_path / f"0/{0:020d}.index").read_bytes() == hex_of("index.md")


def test_the_documents_in_the_specification_are_readable() -> None:
    decoders = {
        "checkpoint": decode_checkpoint,
        "clean": decode_clean_marker,
        "sealed": decode_sealed,
        "epochs": decode_epochs,
        "archive": partial(decode_watermark, topic_id="7d17946a-9a18-4514-abf6-3d9d8f745ba5"),
    }
    seen = set()
    for page in ("checkpoint.md", "epochs.md", "sealed.md", "archive.md"):
        for line in (FORMATS / page).read_text().splitlines():
            if line.startswith('{"kind":"'):
                kind = line.split('"')[3]
                decoders[kind](line.encode())
                seen.add(kind)
    assert seen == set(decoders)
