"""A progress line for people; silent when nobody looks. Used by `produce` and by `bench`."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import rich.progress


class Progress:
    """Counts what is done; draws only on a terminal."""

    def __init__(self, bar: "rich.progress.Progress | None", label: str) -> None:
        self._bar = bar
        self._task = bar.add_task(label, total=None, rate="") if bar else None
        self._started_s = time.monotonic()
        self._seconds = 0.0
        self.count = 0

    def show(self, count: int) -> None:
        self.count = count
        self._seconds = time.monotonic() - self._started_s
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=count, rate=self.rate_text())

    def rate_text(self) -> str:
        return f"{self.count / max(self._seconds, 1e-3):,.0f}/s"


@contextmanager
def open_progress(label: str) -> Iterator[Progress]:
    if not sys.stderr.isatty():
        yield Progress(None, label)
        return
    from rich.console import Console
    from rich.progress import Progress as Bar
    from rich.progress import SpinnerColumn, TextColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}  {task.completed:,.0f}  {task.fields[rate]}"),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        yield Progress(bar, label)
