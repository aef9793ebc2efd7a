"""Messages from files: lines, JSON, CSV, archives; keys; broken input with its line."""

import io
import zipfile
from pathlib import Path

import msgspec
import pytest

from ibrik_cli.failures import Failure
from ibrik_cli.records import InputFormat, Value, cell_value, open_source, read_values

LINES, JSON, CSV = InputFormat.LINES, InputFormat.JSON, InputFormat.CSV


def read(
    content: bytes, form: InputFormat, key: str | None = None, is_whole: bool = False
) -> list[Value]:
    batches = read_values(io.BytesIO(content), form, key=key, is_whole=is_whole)
    return [value for batch in batches for value in batch]


def test_each_line_is_a_message_as_it_is() -> None:
    assert [v.content for v in read(b"a\r\n\n\xff\nlast", LINES)] == [b"a", b"", b"\xff", b"last"]


def test_the_whole_input_can_be_one_message() -> None:
    assert read(b'{"k":\n1}\n', LINES, "k", is_whole=True) == [Value(b'{"k":\n1}\n', "1")]


def test_json_lines_travel_unchanged_and_empty_ones_are_skipped() -> None:
    values = read(b'{"x": 1.10}\n\n[1]\n', JSON)
    assert [bytes(v.content) for v in values] == [b'{"x": 1.10}', b"[1]"]
    assert all(isinstance(v.content, msgspec.Raw) for v in values)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        (b'{"a":"x"}', "x"),
        (b'{"a":7}', "7"),
        (b'{"a":true}', "true"),
        (b'{"a":null}', None),
        (b'{"b":1}', None),
        (b"[1]", None),
    ],
)
def test_a_key_is_a_field_of_the_message(line: bytes, key: str | None) -> None:
    assert read(line, LINES, "a")[0].key == key


def test_a_key_can_lie_deeper() -> None:
    assert read(b'{"a":{"b":"x"}}', JSON, "a.b")[0].key == "x"


def test_a_broken_line_is_named() -> None:
    with pytest.raises(Failure, match="line 2 is no JSON"):
        read(b"{}\n{oops\n", JSON)


def test_a_row_becomes_an_object() -> None:
    content = b'\xef\xbb\xbfcarrier,delay,note\nUA,-3,"a, b"\nAA,NA,\n'
    assert read(content, CSV, "carrier") == [
        Value({"carrier": "UA", "delay": -3, "note": "a, b"}, "UA"),
        Value({"carrier": "AA", "delay": None, "note": None}, "AA"),
    ]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("", None),
        ("NA", None),
        ("0", 0),
        ("-12", -12),
        ("1.5", 1.5),
        ("007", "007"),
        ("1e5", "1e5"),
        ("1_000", "1_000"),
        ("inf", "inf"),
        ("1.10", "1.10"),
        ("N14228", "N14228"),
    ],
)
def test_a_cell_is_a_number_only_when_it_reads_back_the_same(cell: str, value: object) -> None:
    assert cell_value(cell) == value


def test_rows_that_do_not_fit_are_refused() -> None:
    with pytest.raises(Failure, match="other fields than the first"):
        read(b"a,b\n1\n", CSV)
    with pytest.raises(Failure, match="other fields than the first"):
        read(b"a,b\n1,2,3\n", CSV)
    with pytest.raises(Failure, match="no column 'c': a, b"):
        read(b"a,b\n1,2\n", CSV, "c")
    with pytest.raises(Failure, match="line"):
        read(b"a,b\n\xff,1\n", CSV)


def test_an_archive_with_one_file_is_read_through(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("rows.csv", "a\n1\n")
    with open_source(str(path)) as source:
        batches = list(read_values(source, CSV, key=None, is_whole=False))
    assert batches == [[Value({"a": 1}, None)]]
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("more.csv", "")
    with pytest.raises(Failure, match="found 2"), open_source(str(path)):
        pass
