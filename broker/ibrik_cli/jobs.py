"""Runs a data job as a process of its own: it carries Arrow and Spark, which no command needs."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from ibrik_cli.failures import REFUSED, Failure

GOOD = (0, 2, 3)
"""Done, nothing to do, superseded by another run."""


def run_on_data(job: str, data: Path, arguments: Sequence[str]) -> int:
    """A job over a data folder."""
    return run_job(job, ["--data", str(data), *arguments])


def run_job(job: str, arguments: Sequence[str]) -> int:
    """The exit code of the command: 1 when somebody has to look, or a run failed."""
    if find_spec("pyarrow") is None or find_spec("ibrik_spark") is None:
        raise Failure(
            "the data jobs are not installed here; install them with: pip install 'ibrik[spark]'"
        )
    command = [sys.executable, "-m", "ibrik_spark", job, *arguments]
    sys.stdout.flush()
    ended = subprocess.run(command, check=False)  # noqa: S603 - our own program
    return 0 if ended.returncode in GOOD else REFUSED


def topic_arguments(topics: Sequence[str] | None) -> list[str]:
    return [argument for topic in topics or () for argument in ("--topic", topic)]
