"""Every code that the TCP door can say is in the one table of errors, so it has a page."""

import ast
from pathlib import Path

import pytest

from ibrik_api.errors import CODES

BROKER = Path(__file__).resolve().parents[3] / "broker"
SPEAKERS = {"Invalid", "Refusal", "_fail", "encode_failure"}
FILES = [*(BROKER / "ibrik_wire").glob("*.py"), *(BROKER / "ibrik_broker/tcp").glob("*.py")]


def said_codes(path: Path) -> set[str]:
    """First arguments of everything that makes a refusal."""
    calls = (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call))
    return {
        call.args[0].value
        for call in calls
        if ast.unparse(call.func).split(".")[-1] in SPEAKERS
        and call.args
        and isinstance(call.args[0], ast.Constant)
        and isinstance(call.args[0].value, str)
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_code_is_in_the_table(path: Path) -> None:
    assert said_codes(path) <= CODES.keys()


def test_the_test_finds_codes_at_all() -> None:
    found = set[str]().union(*map(said_codes, FILES))
    assert {"unknown-command", "request-timeout", "too-many-connections", "buffer-full"} <= found
