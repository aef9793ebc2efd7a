"""The marks of a file whose tests start Spark: patience, since a JVM takes ten seconds and more."""

import pytest

STARTS_SPARK = [
    pytest.mark.slow,
    # A timeout in the middle of an answer of the JVM would spoil the next test, too.
    pytest.mark.timeout(600),
    # Of pyspark's own making.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
]
