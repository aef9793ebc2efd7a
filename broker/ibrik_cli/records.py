"""Messages in and out of the command line: lines, CSV and JSON of a file; text of a message.

Pure but for reading the file. `produce` publishes what `read_values` gives, `consume` prints.
"""

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from ibrik_cli.failures import Failure

if TYPE_CHECKING:
    from ibrik_client import Message


READ_BYTES = 64 * 1024
CSV_ROWS = 500
MAX_LINE_BYTES = 64 * 1024 * 1024


class InputFormat(StrEnum):
    LINES = "lines"
    JSON = "json"
    CSV = "csv"


class OutputFormat(StrEnum):
    TEXT = "text"
    VALUE = "value"
    JSON = "json"


class Value(NamedTuple):
    content: Any
    """What the client publishes: bytes as they are, or an object to write as JSON."""
    key: str | None


@contextmanager
def open_source(file: str) -> Iterator[BinaryIO]:
    """A file, the only member of a zip archive, or `-` for standard input."""
    if file == "-":
        # Not sys.stdin: its lock, held by a thread that waits for a line, would stop the exit.
        yield open(0, "rb", closefd=False)  # noqa: SIM115 - a descriptor, not a path
    elif file.endswith(".zip"):
        with zipfile.ZipFile(file) as archive:
            names = [n for n in archive.namelist() if not n.endswith("/")]
            if len(names) != 1:
                raise Failure(f"{file}: expected one file in the archive, found {len(names)}")
            with archive.open(names[0]) as content:
                yield cast("BinaryIO", content)
    else:
        with Path(file).open("rb") as content:
            yield content


def read_values(
    source: BinaryIO, form: InputFormat, *, key: str | None, is_whole: bool
) -> Iterator[list[Value]]:
    """The messages of an open source in order, as many at a time as there are already."""
    if is_whole:
        content = source.read()
        yield [Value(content, _key_of(_parsed(content, 1), key) if key else None)]
        return
    match form:
        case InputFormat.CSV:
            yield from _csv_values(source, key)
        case InputFormat.JSON | InputFormat.LINES:
            number = 0
            for lines in _lines(source):
                yield [
                    _line_value(line, form, key, number + n)
                    for n, line in enumerate(lines, 1)
                    if line or form is InputFormat.LINES
                ]
                number += len(lines)


def _lines(source: BinaryIO) -> Iterator[list[bytes]]:
    """Whole lines as they arrive, without their ends; the last one may lack its own."""
    rest = b""
    read = getattr(source, "read1", source.read)
    while chunk := read(READ_BYTES):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise Failure(f"a line is longer than {MAX_LINE_BYTES // 2**20} MiB; see --whole")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest.removesuffix(b"\r")]


def _line_value(line: bytes, form: InputFormat, key: str | None, number: int) -> Value:
    from ibrik_client import RawJson

    parsed = _parsed(line, number) if key or form is InputFormat.JSON else None
    content = RawJson(line.strip()) if form is InputFormat.JSON else line
    return Value(content, _key_of(parsed, key) if key else None)


def _csv_values(source: BinaryIO, key: str | None) -> Iterator[list[Value]]:
    text = io.TextIOWrapper(source, encoding="utf-8-sig", newline="")
    rows = csv.DictReader(text, strict=True)
    try:
        names = rows.fieldnames or ()
        if key is not None and key not in names:
            raise Failure(f"there is no column {key!r}: {', '.join(names)}")
        while batch := list(islice(rows, CSV_ROWS)):
            if any(None in row or None in row.values() for row in batch):
                raise Failure(f"up to line {rows.line_num}: a row with other fields than the first")
            yield [
                Value({k: cell_value(v) for k, v in row.items()}, row[key] if key else None)
                for row in batch
            ]
    except (csv.Error, UnicodeDecodeError) as error:
        raise Failure(f"line {rows.line_num}: {error}") from error


def cell_value(cell: str) -> Any:
    """A cell as JSON: null when empty or NA, a number when it reads back the same, else text.

    `007` and `1e5` stay text: a post code is no number.
    """
    if cell in ("", "NA"):
        return None
    if cell[-1].isdigit():
        for kind in (int, float):
            try:
                number = kind(cell)
            except ValueError:
                continue
            if str(number) == cell:
                return number
    return cell


def _parsed(content: bytes, number: int) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise Failure(f"line {number} is no JSON: {error}") from error


def _key_of(parsed: Any, field: str) -> str | None:
    """The field of a JSON object as a key; `a.b` looks inside."""
    for name in field.split("."):
        parsed = parsed.get(name) if isinstance(parsed, dict) else None
    if parsed is None or isinstance(parsed, str):
        return parsed
    return json.dumps(parsed, separators=(",", ":"))


def readable(content: bytes | None) -> str:
    """Bytes for a terminal: text on one line; base64 where they are no text."""
    if content is None:
        return "null"
    try:
        text = content.decode()
    except UnicodeDecodeError:
        import base64

        return "base64:" + base64.b64encode(content).decode()
    # Control characters of a stranger's payload must not drive this terminal.
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def message_document(message: "Message") -> dict[str, Any]:
    """A message as a JSON object, as the broker writes it."""
    document: dict[str, Any] = {
        "topic": message.topic,
        "partition": message.partition,
        "offset": message.offset,
        "timestamp": message.timestamp,
        "id": message.id,
        "key": None if message.key is None else readable(message.key),
        "headers": {
            k: readable(v) if isinstance(v, bytes) else v for k, v in message.headers.items()
        },
    }
    try:
        document["value"] = message.json()
    except ValueError:
        document["value"] = readable(message.value)
    return document
