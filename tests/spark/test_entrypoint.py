"""The image starts a job with its own arguments, whoever starts the pod."""

import os
import subprocess
from pathlib import Path

import pytest

from ibrik_operator.desired.archive import MAIN_FILE

ENTRYPOINT = Path(__file__).resolve().parents[2] / "spark-jobs" / "entrypoint.sh"
JOB = ["archive", "--data", "/var/lib/ibrik", "--topic", "driver"]
SUBMITTED = [
    "driver",
    "--properties-file",
    "/opt/spark/conf/spark.properties",
    "--class",
    "org.apache.spark.deploy.PythonRunner",
    MAIN_FILE,
]


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where `python` only says what it was given."""
    stand_in = tmp_path / "python"
    stand_in.write_text('#!/bin/sh\nprintf "%s\\n" "${SPARK_CONF_DIR:-none}" "$@"\n')
    stand_in.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def started(path: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": path, "SPARK_CONF_DIR": "/opt/spark/conf"}
    command = ["/bin/sh", str(ENTRYPOINT), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", [JOB, [*SUBMITTED, *JOB]])
def test_the_job_gets_its_arguments_and_no_settings_of_others(
    path: str, arguments: list[str]
) -> None:
    ended = started(path, *arguments)
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == ["none", "-m", "ibrik_spark", *JOB]


def test_a_driver_without_the_file_is_a_matter_for_a_person(path: str) -> None:
    ended = started(path, *SUBMITTED[:-1], *JOB)
    assert ended.returncode == 64
    assert MAIN_FILE in ended.stderr
