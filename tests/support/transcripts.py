"""Pages as tests: the commands that a page shows are run, and what they print is compared.

A block counts when the line above its fence is `<!-- run -->`. Three kinds of block:

* `console`: lines after `$ ` are commands, the lines between are what they print;
* `python`: a whole program, which has to end well;
* any other under `<!-- run: file NAME -->`: a file that later commands of the page read.

In what a command prints, `…` stands for anything within a line, and a line of only `…` for any
number of lines. Runs of blanks count as one. All blocks of a page share a folder and a broker; the
addresses that the page shows stand for the broker's real ones.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.broker import Broker

STEP_TIMEOUT_S = 60.0
DIRECTIVE = re.compile(r"<!-- run(?:: file (?P<file>\S+))? -->")
FENCE = re.compile(r"```(?P<language>\w*)")
STAND_INS = {
    name: Path(__file__).with_name(f"{file}.py")
    for name, file in (("nc", "netcat"), ("curl", "curl"))
}


@dataclass(frozen=True, slots=True)
class Block:
    """One fenced block to run; `line` is that of its fence, `file` the name to write it to."""

    language: str
    line: int
    text: str
    file: str | None


@dataclass(frozen=True, slots=True)
class Step:
    command: str
    expected: str


def runnable_blocks(page: str) -> list[Block]:
    lines = iter(enumerate(page.splitlines(), 1))
    found = []
    for _, line in lines:
        directive = DIRECTIVE.fullmatch(line.strip())
        if directive is None:
            continue
        number, fence = next(lines)
        opening = FENCE.fullmatch(fence.strip())
        assert opening, f"line {number}: a run comment stands right above a fenced block"
        text = "\n".join(_until_fence(lines))
        found.append(Block(opening["language"], number, text + "\n", directive["file"]))
    return found


def _until_fence(lines: Iterator[tuple[int, str]]) -> Iterator[str]:
    for _, line in lines:
        if line.strip() == "```":
            return
        yield line
    raise AssertionError("a fenced block does not end")


def steps(block: Block) -> list[Step]:
    """The commands of a `console` block, each with the output below it."""
    found: list[tuple[str, list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        elif found:
            found[-1][1].append(line)
        else:
            raise AssertionError(f"line {block.line}: the first line is a command: $ …")
    return [Step(command, "\n".join(output)) for command, output in found]


def is_as_shown(expected: str, printed: str) -> bool:
    """Whether `printed` has the shape of `expected`; see the head of this file for `…`."""
    return re.fullmatch(_pattern(expected), _normal(printed)) is not None


def _normal(text: str) -> str:
    text = text.replace("\r", "")
    return "".join(f"{' '.join(line.split())}\n" for line in text.splitlines())


def _pattern(expected: str) -> str:
    parts = []
    for line in _normal(expected).splitlines():
        if line == "…":
            parts.append(r"(?:.*\n)*")
        else:
            parts.append(".*".join(map(re.escape, line.split("…"))) + r"\n")
    return "".join(parts)


class Reader:
    """A person at a shell, in a folder of their own, who does what a page says."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self.folder = folder
        host, port = broker.tcp_address
        self._addresses = {
            "localhost:8080": broker.http_url.removeprefix("http://"),
            "localhost:8081": broker.admin_url.removeprefix("http://"),
            "localhost 7070": f"{host} {port}",
        }
        self._environment = self._make_environment(broker)

    def follow(self, block: Block) -> None:
        """Do what the block says. AssertionError names the command that went another way."""
        if block.file is not None:
            (self.folder / block.file).write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            code, printed = self._run([sys.executable, "-c", self._real(block.text)])
            assert code == 0, f"line {block.line}: exit {code}\n{printed}"
        else:
            for step in steps(block):
                self._take(step, block.line)

    def _take(self, step: Step, line: int) -> None:
        code, printed = self._run(["/bin/sh", "-c", self._real(step.command)])
        said = f"line {line}: $ {step.command}\n--- shown\n{step.expected}\n--- printed\n{printed}"
        assert is_as_shown(step.expected, printed), said
        assert (code != 0) == step.expected.startswith("error"), f"exit {code}: {said}"

    def _real(self, text: str) -> str:
        for shown, real in self._addresses.items():
            text = text.replace(shown, real)
        return text

    def _run(self, command: list[str]) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=STEP_TIMEOUT_S,
            check=False,
        )
        return done.returncode, done.stdout.decode()

    def _make_environment(self, broker: Broker) -> Mapping[str, str]:
        programs = [str(Path(sys.executable).parent), os.environ["PATH"]]
        missing = [name for name in STAND_INS if shutil.which(name) is None]
        if missing:
            programs.insert(0, str(_stand_ins(self.folder / "bin", missing)))
        inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
        return inherited | {
            "PATH": os.pathsep.join(programs),
            "IBRIK_SERVER": broker.http_url,
            "IBRIK_ADMIN_URL": broker.admin_url,
            "COLUMNS": "200",
            "NO_COLOR": "1",
        }


def _stand_ins(folder: Path, names: list[str]) -> Path:
    """A folder with our own small programs for those that the machine lacks."""
    folder.mkdir()
    for name in names:
        program = folder / name
        code = f'#!/bin/sh\nexec "{sys.executable}" "{STAND_INS[name]}" "$@"\n'
        program.write_text(code, encoding="utf-8")
        program.chmod(0o755)
    return folder
