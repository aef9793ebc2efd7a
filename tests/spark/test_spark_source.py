"""The format `ibrik` in a real Spark: counts, filters that arrive, and damage as Spark tells it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PythonException

from ibrik_spark.source import IbrikSource
from ibrik_spark.work import spark
from tests.spark.sessions import STARTS_SPARK
from tests.spark.volumes import break_a_batch, fill, new_log

pytestmark = STARTS_SPARK


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    with spark(2) as made:
        made.dataSource.register(IbrikSource)
        yield made


@pytest.fixture
def reader(tmp_path: Path, session: Any) -> Any:
    log = new_log(tmp_path)
    for _ in range(4):
        fill(log, 2)
    log.close()
    options = {"path": str(tmp_path), "topic": "orders", "sliceBytes": "1"}
    return session.read.format("ibrik").options(**options)


def test_a_frame_answers_one_query_after_another(reader: Any) -> None:
    frame = reader.load()
    assert frame.rdd.getNumPartitions() == 4
    few = frame.where("offset >= 13 and partition = 1 and date = '2023-11-14'")
    assert [bytes(row.value) for row in few.orderBy("offset").collect()] == [
        b"v%d" % offset for offset in range(13, 24)
    ]
    assert frame.where("timestamp < '2020-01-01' or offset = 3").count() == 1
    assert frame.where("offset < 5").union(few).count() == 16
    assert frame.count() == 24
    assert reader.option("fromOffset", 13).load().rdd.getNumPartitions() == 2


def test_filters_arrive_where_that_is_asked_for(reader: Any, session: Any) -> None:
    session.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    frame = reader.option("pushFilters", "true").load()
    few = frame.where("offset >= 13 and timestamp > '2023-01-01' and partition = 1")
    assert few.rdd.getNumPartitions() == 2
    assert few.count() == 11


def test_damage_is_spoken_of_as_it_is(reader: Any, tmp_path: Path) -> None:
    break_a_batch(tmp_path)
    with pytest.raises(PythonException, match="damage=record-gap, which makes a row of them"):
        reader.load().count()
