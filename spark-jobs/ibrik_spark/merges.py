"""Which files of a table are worth being one. No I/O.

Only neighbours: files of one day and one partition whose offsets follow each other. What becomes of
them holds the same range, so that the proof of the table stays what it was.
"""

from collections.abc import Iterable, Iterator

from .files import Merge
from .schema import LiveFile

FILE_BYTES = 256 * 1024 * 1024  # what readers of Parquet like


def merges(files: Iterable[LiveFile], *, file_bytes: int = FILE_BYTES) -> list[Merge]:
    """Two files and more each. One that is half as large as wished stays as it is.

    So does one that holds several ranges, as when somebody compacted the table otherwise.
    """
    found: list[Merge] = []
    for run in _runs(file for file in files if len(file.spans) == 1):
        group: list[LiveFile] = []
        for file in run:
            is_large = file.size_bytes * 2 >= file_bytes
            if not is_large:
                group.append(file)
            if is_large or sum(member.size_bytes for member in group) >= file_bytes:
                found += _merge(group)
                group = []
        found += _merge(group)
    return found


def _runs(files: Iterable[LiveFile]) -> Iterator[list[LiveFile]]:
    """Files that follow each other."""
    run: list[LiveFile] = []
    for file in sorted(files, key=lambda file: (file.date, file.spans)):
        if run and not _follows(run[-1], file):
            yield run
            run = []
        run.append(file)
    if run:
        yield run


def _follows(before: LiveFile, after: LiveFile) -> bool:
    number, _, end = before.spans[0]
    return before.date == after.date and after.spans[0][:2] == (number, end)


def _merge(group: list[LiveFile]) -> Iterator[Merge]:
    if len(group) > 1:
        number, start, _ = group[0].spans[0]
        yield Merge(
            paths=tuple(file.path for file in group),
            date=group[0].date,
            partition=number,
            start=start,
            end=group[-1].spans[0][2],
            rows=sum(file.rows for file in group),
            size_bytes=sum(file.size_bytes for file in group),
        )
