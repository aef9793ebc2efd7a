"""Which files are worth being one: neighbours that are small, and nothing else."""

import pytest

from ibrik_spark.merges import merges
from ibrik_spark.schema import LiveFile

DAY, NEXT = "2026-11-28", "2026-11-29"


def file(
    start: int, end: int, size_bytes: int = 10, *, partition: int = 0, date: str = DAY
) -> LiveFile:
    path = f"date={date}/part-{partition}-{start}.parquet"
    return LiveFile(path, date, size_bytes, end - start, ((partition, start, end),))


def found(*files: LiveFile, file_bytes: int = 100) -> list[tuple[int, int, int, int]]:
    """Partition, range and number of files of each merge."""
    wished = merges(files, file_bytes=file_bytes)
    return [(merge.partition, merge.start, merge.end, len(merge.paths)) for merge in wished]


def test_neighbours_of_a_day_and_partition_become_one() -> None:
    assert found(file(5, 9), file(0, 5), file(9, 10)) == [(0, 0, 10, 3)]


def test_other_partitions_and_days_are_others() -> None:
    files = [file(0, 5), file(5, 9), file(0, 5, partition=1), file(5, 7, partition=1)]
    files += [file(9, 12, date=NEXT), file(12, 15, date=NEXT), file(7, 8, partition=1, date=NEXT)]
    assert found(*files) == [(0, 0, 9, 2), (1, 0, 7, 2), (0, 9, 15, 2)]


def test_files_that_do_not_follow_each_other_stay_apart() -> None:
    assert found(file(0, 5), file(6, 9), file(9, 12)) == [(0, 6, 12, 2)]


def test_a_file_of_half_the_size_stays_as_it_is_and_parts_its_neighbours() -> None:
    assert found(file(0, 5, 50), file(5, 9)) == []
    assert found(file(0, 1), file(1, 2), file(2, 3, 60), file(3, 4), file(4, 5)) == [
        (0, 0, 2, 2),
        (0, 3, 5, 2),
    ]


def test_a_file_is_full_when_it_is_as_large_as_wished() -> None:
    files = [file(number, number + 1, 40) for number in range(7)]
    assert found(*files) == [(0, 0, 3, 3), (0, 3, 6, 3)]


@pytest.mark.parametrize("spans", [(), ((0, 5, 6), (1, 0, 9)), ((0, 5, 6), (0, 8, 9))])
def test_a_file_that_somebody_made_otherwise_is_left_alone(
    spans: tuple[tuple[int, int, int], ...],
) -> None:
    strange = LiveFile("strange.parquet", DAY, 10, 10, spans)
    assert found(file(0, 5), strange, file(9, 12)) == []


def test_a_merge_knows_what_shall_be_in_it() -> None:
    (merge,) = merges([file(0, 5, 30), file(5, 9, 20)])
    assert merge.paths == (f"date={DAY}/part-0-0.parquet", f"date={DAY}/part-0-5.parquet")
    assert (merge.date, merge.rows, merge.size_bytes) == (DAY, 9, 50)
