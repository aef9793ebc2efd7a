"""Ids that were there before, over all of a topic."""

import random
from pathlib import Path

import numpy as np
import pytest

from ibrik_log.files import RealDisk
from ibrik_log.log import Log
from ibrik_log.record import Record
from ibrik_spark.errors import ScratchFailed
from ibrik_spark.identities import keep, repeated
from ibrik_spark.jobs.quality import run
from ibrik_spark.spread import Options
from tests.spark.volumes import LARGE, NOW_MS, TOPIC, append, new_log

Headers = list[tuple[str, bytes | None]]


def record(**headers: bytes | None) -> Record:
    named: Headers = [(name.replace("__", "-"), value) for name, value in headers.items()]
    return Record(b"k", b"v", named)


def found(data: Path) -> int:
    (part,) = run(Options(data)).parts
    count: int = part.facts["repeatedIds"]
    return count


def test_an_id_is_found_again_in_another_segment_and_another_partition(tmp_path: Path) -> None:
    first = new_log(tmp_path)
    append(first, [record(ibrik__id=b"a"), record(ibrik__id=b"b"), record()])
    first.roll(NOW_MS)
    append(first, [record(ibrik__id=b"a")])
    first.roll(NOW_MS)
    first.close()
    second = Log.open(RealDisk(), tmp_path / "topics" / TOPIC / "0", LARGE)
    append(second, [record(), record(ibrik__id=b"b"), record(ibrik__id=b"c")])
    second.roll(NOW_MS)
    second.close()
    assert found(tmp_path) == 2


def test_an_id_is_that_of_its_source(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    same = [record(ce_id=b"1", ce_source=b"/a"), record(ce_source=b"/a", other=b"", ce_id=b"1")]
    others = [record(ce_id=b"1", ce_source=b"/b"), record(ce_id=b"1"), record(ce_source=b"/a")]
    append(log, same, others, [record(ce_id=b""), record(ce_id=None)])
    log.roll(NOW_MS)
    log.close()
    assert found(tmp_path) == 1 + 1  # and an empty id is like one that is null


@pytest.mark.parametrize("span", [1, 7, 100, 10_000])
def test_what_is_counted_does_not_depend_on_how_much_is_held(tmp_path: Path, span: int) -> None:
    chance = random.Random(7)
    slices = [[chance.randrange(2**64) for _ in range(200)] for _ in range(4)]
    slices += [slices[0][:50], slices[1][:30] * 2, [0, 2**64 - 1], []]
    names = [keep(tmp_path, [np.array(ids, dtype=np.uint64)]) for ids in slices]
    everything = [number for ids in slices for number in ids]
    assert repeated(tmp_path, names, span=span) == len(everything) - len(set(everything)) == 110


def test_nothing_is_repeated_in_nothing(tmp_path: Path) -> None:
    assert repeated(tmp_path, []) == 0
    assert repeated(tmp_path, [keep(tmp_path, [])]) == 0


def test_no_room_for_ids_is_said(tmp_path: Path) -> None:
    with pytest.raises(ScratchFailed, match="Set TMPDIR to a folder with room"):
        keep(tmp_path / "gone", [])
