"""What the guide "read the table" shows of Spark is what it prints."""

from pathlib import Path

import pytest

from tests.spark.guide import make_lake, snippets


@pytest.mark.slow
def test_the_snippet_of_spark_prints_what_is_shown(tmp_path: Path) -> None:
    make_lake(tmp_path)
    (snippet,) = [found for found in snippets() if found.uses("pyspark")]
    assert snippet.output(tmp_path) == f"{snippet.shown}\n"
