"""How far a topic is archived: the value, and its document."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ibrik_log.document import encode_document
from ibrik_log.errors import UnreadableDocument
from ibrik_log.files import replace_file
from ibrik_log.watermark import Watermark, decode_watermark, encode_watermark
from tests.simulation.disk import PowerLoss, SimulatedDisk

LAKE = {"id": "t1", "url": "/lake/orders", "version": 1}
OTHER = {"id": "t2", "url": "/lake/orders", "version": 9}
RUN = {"startedAt": "a", "endedAt": "b", "code": 0, "rows": 5}
TOPIC = "7d17946a-9a18-4514-abf6-3d9d8f745ba5"


def test_no_offset_moves_back_and_what_is_not_reported_stays() -> None:
    first = Watermark().advanced({0: 10, 2: 5}, LAKE, RUN)
    assert first == Watermark((10, 0, 5), LAKE, RUN)
    assert first.advanced({1: 3}, LAKE | {"version": 2}, None) == Watermark(
        (10, 3, 5), LAKE | {"version": 2}, RUN
    )
    assert first.advanced({0: 4, 2: 9}, LAKE, None).offsets == (10, 0, 9)
    assert [first.offset(n) for n in range(4)] == [10, 0, 5, 0]


def test_a_table_that_is_behind_does_not_take_the_place_of_the_proved_one() -> None:
    first = Watermark().advanced({0: 10}, LAKE, RUN)
    assert first.advanced({0: 9}, OTHER, None).table == LAKE
    assert first.advanced({0: 10}, OTHER, None).table == OTHER


def test_a_document_is_read_as_it_was_written() -> None:
    for watermark in (Watermark(), Watermark((3, 0), LAKE, RUN), Watermark((1 << 60,), LAKE)):
        assert decode_watermark(encode_watermark(TOPIC, watermark), TOPIC) == watermark


BODY = {"topic_id": TOPIC, "archived_up_to": [1], "table": None, "last_run": None}


@pytest.mark.parametrize(
    "change",
    [
        {"topic_id": "other"},
        {"archived_up_to": None},
        {"archived_up_to": ["1"]},
        {"archived_up_to": [-1]},
        {"archived_up_to": [True]},
        {"table": "x"},
        {"last_run": []},
    ],
)
def test_what_is_no_document_of_the_topic_is_not_believed(change: dict[str, Any]) -> None:
    content = encode_document("archive", 1, BODY | change)
    with pytest.raises(UnreadableDocument):
        decode_watermark(content, TOPIC)


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_leaves_the_old_watermark_or_the_new_one(seed: int) -> None:
    disk = SimulatedDisk(seed)
    disk.make_folder(Path("/data"))
    path = Path("/data/archive.json")
    old, new = Watermark((1,), LAKE), Watermark((2,), LAKE)
    replace_file(disk, path, encode_watermark(TOPIC, old))
    disk.flush_folder(Path("/"))
    disk.crash_at = disk.operations + 1 + seed % 6
    is_told = False
    with suppress(PowerLoss):
        replace_file(disk, path, encode_watermark(TOPIC, new))
        is_told = True
    disk.lose_power()
    found = decode_watermark(bytes(disk.content(path)), TOPIC)
    assert found in ([new] if is_told else [old, new])
