"""The archive job as a schedule would start it, and how it is killed in the middle."""

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path

from quickstart import BrokerProcess, proof

LOOK_EVERY_S = 0.005
DONE, NOTHING_TO_DO = 0, 2


class Jobs:
    """Runs of one broker's archive, one after the other."""

    def __init__(self, broker: BrokerProcess, lake: Path) -> None:
        self.kills = 0
        self.runs = 0
        self._broker = broker
        self._lake = lake

    async def run(self) -> None:
        """One run to its end."""
        self.runs += 1
        with self._started() as job:
            await self._wait(job, files=None)
            output, errors = job.communicate()
        proof.check(job.returncode in (DONE, NOTHING_TO_DO), f"archive: {output}{errors}")

    async def run_and_kill(self) -> bool:
        """One run, ended the hard way once it has written a file; False when it wrote none."""
        self.runs += 1
        with self._started() as job:
            if await self._wait(job, files=self._files()):
                job.kill()
                self.kills += 1
                return True
        return False

    async def _wait(self, job: "subprocess.Popen[str]", *, files: int | None) -> bool:
        """Whether the table's folder got more than `files` before the job ended."""
        while job.poll() is None:
            if files is not None and self._files() > files:
                return True
            await asyncio.sleep(LOOK_EVERY_S)
        return False

    def _files(self) -> int:
        return sum(1 for _ in self._lake.rglob("*.parquet"))

    @contextlib.contextmanager
    def _started(self) -> "contextlib.Generator[subprocess.Popen[str]]":
        command = [sys.executable, "-m", "ibrik_spark", "archive", "--period", "0s"]
        command += ["--data", str(self._broker.data), "--target", str(self._lake)]
        command += ["--admin", self._broker.admin_url]
        job = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield job
        finally:
            if job.poll() is None:
                job.kill()
            job.communicate()
