"""What the guide "read the table" shows is what its snippets print."""

from pathlib import Path

import pytest

from tests.spark.guide import Snippet, make_lake, snippets

PLAIN = [snippet for snippet in snippets() if not snippet.uses("pyspark")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("guide")
    make_lake(made)
    return made


@pytest.mark.slow
@pytest.mark.parametrize("snippet", PLAIN, ids=range(len(PLAIN)))
def test_a_snippet_prints_what_is_shown(snippet: Snippet, folder: Path) -> None:
    assert snippet.shown
    assert snippet.output(folder) == snippet.shown


def test_no_snippet_is_overlooked() -> None:
    assert len(PLAIN) == 4
