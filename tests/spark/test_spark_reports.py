"""The reports by tasks of a real Spark say what one process says."""

from pathlib import Path
from types import ModuleType

import pytest

from ibrik_spark.jobs import quality, traffic
from ibrik_spark.spread import Options
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
