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
    java = tmp_path / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def started(
    path: str, *arguments: str, env: dict[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": path, "SPARK_CONF_DIR": "/opt/spark/conf"} | (env or {})
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


@pytest.mark.parametrize(
    ("master", "is_told"),
    [("k8s\\://https\\://kubernetes.default.svc\\:443", True), ("local[2,4]", False)],
)
def test_spark_is_told_of_a_master_that_is_not_the_pod_itself(
    path: str, tmp_path: Path, master: str, is_told: bool
) -> None:
    (tmp_path / "python").write_text(
        '#!/bin/sh\nprintf "%s\\n" "${PYSPARK_SUBMIT_ARGS:-nothing}"\n'
    )
    properties = tmp_path / "spark.properties"
    properties.write_text(f"spark.app.name=flights\nspark.master={master}\n")
    submitted = ["driver", "--properties-file", str(properties), *SUBMITTED[3:]]
    ended = started(path, *submitted, *JOB, env={"SPARK_DRIVER_BIND_ADDRESS": "10.0.0.7"})
    told = (
        f"--deploy-mode client --properties-file {properties} "
        "--conf spark.driver.bindAddress=10.0.0.7 pyspark-shell"
    )
    assert ended.stdout.strip() == (told if is_told else "nothing")


def test_an_executor_gets_what_spark_left_in_its_variables(path: str) -> None:
    env = {
        "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
        "SPARK_JAVA_OPT_1": "--add-opens=java.base/java.net=ALL-UNNAMED -Dwith=a space",
        "SPARK_EXECUTOR_MEMORY": "512m",
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
        "SPARK_EXECUTOR_ID": "1",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_APPLICATION_ID": "spark-1",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "flights-exec-1",
        "SPARK_HOME": "/opt/ibrik/spark",
    }
    ended = started(path, "executor", env=env)
    assert ended.returncode == 0
    assert ended.stdout.splitlines() == [
        *(env[f"SPARK_JAVA_OPT_{number}"] for number in range(2)),
        "-Xms512m",
        "-Xmx512m",
        "-cp",
        "/opt/ibrik/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", env["SPARK_DRIVER_URL"]),
        *("--executor-id", "1"),
        *("--cores", "2"),
        *("--app-id", "spark-1"),
        *("--hostname", "10.0.0.8"),
        *("--resourceProfileId", "0"),
        *("--podName", "flights-exec-1"),
    ]
