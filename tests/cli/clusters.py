"""A world for the fake kubectl of these tests, and `ibrik` run in it."""

import base64
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cli.conftest import IBRIK

FAKE = Path(__file__).with_name("fake_kubectl.py")


@dataclass(frozen=True)
class World:
    folder: Path

    @classmethod
    def make(cls, folder: Path) -> "World":
        (folder / "ports").mkdir(parents=True)
        (folder / "bin").mkdir()
        program = folder / "bin/kubectl"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} {FAKE} "$@"\n')
        program.chmod(0o755)
        return cls(folder)

    def answer(self, words: str, text: str) -> None:
        (self.folder / words.replace("/", "_")).write_text(text)

    def secret(self, pool: str, token: str) -> None:
        self.answer(f"get secret ibrik-{pool}-admin", base64.b64encode(token.encode()).decode())

    def forward(self, target: str, port: int, url: str) -> None:
        place = self.folder / "ports" / f"{target}:{port}".replace("/", "_")
        place.write_text(url.removeprefix("http://"))

    def notes(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
        path = f"{self.folder / 'bin'}:{os.environ['PATH']}"
        return inherited | {"PATH": path, "FAKE_KUBECTL_WORLD": str(self.folder)}

    def start(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [IBRIK, *arguments],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(
        self, *arguments: str, given: str = "", program: Sequence[str] = (IBRIK,), **env: str
    ) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*program, *arguments],
            input=given,
            env=self.environment | env,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
