"""The S3-compatible store of the tests: a bucket `lake` on loopback, in a process of its own."""

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

PYTHON = Path(sys.prefix) / "s3" / "bin" / "python"
"""Made by `make test` from requirements/s3.lock."""
KEY_ID, SECRET, SESSION = "AKIAIBRIKTEST", "not-to-be-seen", "nor-this"


@dataclass(frozen=True, slots=True)
class Bucket:
    endpoint: str

    @property
    def url(self) -> str:
        return "s3://lake/tables"

    @property
    def environment(self) -> dict[str, str]:
        """What a job is given."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEY_ID,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_SESSION_TOKEN": SESSION,
            "AWS_REGION": "eu-central-1",
        }

    def ask(self, method: str, path: str) -> None:
        with urllib.request.urlopen(
            urllib.request.Request(f"{self.endpoint}{path}", method=method)
        ) as answer:
            answer.read()


@contextmanager
def bucket() -> Iterator[Bucket]:
    program = Path(__file__).with_name("s3_server.py")
    with subprocess.Popen(
        [PYTHON, program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    ) as server:  # fmt: skip
        try:
            assert server.stdout is not None
            found = Bucket(server.stdout.readline().strip())
            found.ask("PUT", "/lake")
            yield found
        finally:
            server.kill()
