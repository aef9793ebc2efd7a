"""One line that moves on a terminal; a line for each tenth elsewhere, so that a log stays short."""

import sys
from types import TracebackType
from typing import Self


class Progress:
    def __init__(self, what: str, total: int) -> None:
        self._what = what
        self._total = total
        self._is_terminal = sys.stderr.isatty()
        self._shown_tenth = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._is_terminal:
            print(file=sys.stderr)

    def show(self, done: int, note: str = "") -> None:
        line = f"{self._what} {done:,} / {self._total:,}  {note}"
        if self._is_terminal:
            bar = "█" * (24 * done // max(self._total, 1))
            print(f"\r{bar:<24} {line}\x1b[K", end="", file=sys.stderr, flush=True)
            return
        tenth = 10 * done // max(self._total, 1)
        if tenth > self._shown_tenth:
            self._shown_tenth = tenth
            print(line, file=sys.stderr, flush=True)
