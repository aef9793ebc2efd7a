"""The places where a test can end the operator: each is reached by the code, none does anything."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ibrik_operator import faults

SOURCES = Path(faults.__file__).parent


def reached() -> list[str]:
    return [
        node.args[0].value
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) == "faults.reach"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    ]


def test_every_point_is_in_the_code_and_no_other() -> None:
    assert set(reached()) == set(faults.POINTS)


def test_nothing_happens_without_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(faults.VARIABLE, raising=False)
    for point in faults.POINTS:
        faults.reach(point)


@pytest.mark.parametrize(("wanted", "lines"), [("status-written", 0), ("status-written:3", 2)])
def test_the_process_ends_when_the_point_is_reached_that_often(wanted: str, lines: int) -> None:
    program = (
        "from ibrik_operator import faults\n"
        "for _ in range(5):\n"
        "    faults.reach('brokers-applied')\n"
        "    faults.reach('status-written')\n"
        "    print('went on', flush=True)\n"
    )
    ended = subprocess.run(
        (sys.executable, "-c", program),
        env=os.environ | {faults.VARIABLE: wanted},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout.count("went on")) == (faults.EXIT_CODE, lines)
