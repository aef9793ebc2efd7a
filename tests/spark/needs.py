"""What a test that starts Spark needs: Java, and patience, since a JVM starts for ten seconds."""

import shutil
from collections.abc import Callable
from typing import Any

import pytest

NEEDS_SPARK = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java"),
    # A timeout in the middle of an answer of the JVM would spoil the next test, too.
    pytest.mark.timeout(600),
    # Of pyspark's own making.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]


def needs_spark(test: Callable[..., Any]) -> Callable[..., Any]:
    """The same for one test of a file."""
    for mark in NEEDS_SPARK:
        test = mark(test)
    return test
