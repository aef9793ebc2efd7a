"""Jobs by tasks of a real Spark do what one process does."""

from pathlib import Path
from types import ModuleType

import pytest

from ibrik_spark.errors import ExitCode
from ibrik_spark.jobs import optimize, quality, traffic
from ibrik_spark.spread import Options
from tests.spark.lakes import commit, table_of, table_rows, write
from tests.spark.sessions import STARTS_SPARK
from tests.spark.volumes import fill, new_log

pytestmark = STARTS_SPARK


@pytest.mark.parametrize("job", [quality, traffic])
def test_spark_finds_what_one_process_finds(tmp_path: Path, job: ModuleType) -> None:
    log = new_log(tmp_path)
    for _ in range(3):
        fill(log, 2)
    log.close()
    here = job.run(Options(tmp_path))
    spread = job.run(Options(tmp_path, spark_bytes=0, cores=2))
    assert here.rows == 18
    assert here.parts == spread.parts


def test_spark_merges_files(tmp_path: Path) -> None:
    log = new_log(tmp_path / "data")
    for _ in range(3):
        fill(log, 2)
    log.close()
    commit(table_of(tmp_path).create(), write(tmp_path))
    before = table_rows(table_of(tmp_path))
    report = optimize.run(optimize.Options(str(tmp_path / "lake"), spark_bytes=0, cores=2))
    assert (report.code, report.rows) == (ExitCode.DONE, 18)
    assert table_rows(table_of(tmp_path)) == before
    assert len(table_of(tmp_path).opened().live_files()) == 1
