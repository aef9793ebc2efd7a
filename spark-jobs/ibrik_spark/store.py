"""Where the files of a table lie: the one place that makes them, and makes them last.

A file is never overwritten, and it is there for good, with its name, before it is committed. How
that is done say `folder` and `bucket`; `target` knows which one it is.
"""

from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from typing import BinaryIO

import pyarrow as pa
from pyarrow.fs import FileSystem

from .errors import JobError, TableFailed

ADVICE = "check that the target is mounted, writable and not full. The next run goes on from here"


class Store(ABC):
    """The place of one table. Errors are a job's: who asks need not know what kind it is."""

    location: str

    @property
    def options(self) -> dict[str, str]:
        """What delta-rs has to know besides the location."""
        return {}

    @property
    @abstractmethod
    def filesystem(self) -> FileSystem:
        """The place as Arrow's own threads read it, which run no Python.

        delta-rs would give them one written in Python, and a thread that still holds a file of it
        when the interpreter ends aborts the process (delta-rs issue 2184).
        """

    @abstractmethod
    def make(self) -> None:
        """Make the place itself, durably."""

    @abstractmethod
    def is_in_use(self) -> bool:
        """Whether something lies there that is not the beginning of a table."""

    @abstractmethod
    def folders(self) -> list[str]:
        """The names of the folders in it; none when it is not there."""

    @abstractmethod
    def create(self, path: str) -> AbstractContextManager[BinaryIO]:
        """A new file; when the block ends without an error, file and name survive a power cut."""

    @abstractmethod
    def read(self, path: str) -> pa.NativeFile:
        """An open file of the table."""

    @abstractmethod
    def size_bytes(self, path: str) -> int:
        """How large a file became."""

    @abstractmethod
    def delete(self, path: str) -> None:
        """Delete a file of the table; one that is gone already is none to worry about."""

    @abstractmethod
    def flush_log(self) -> None:
        """Make the commits survive a power cut.

        Only then may anybody be told, who deletes what is in the table from the log.
        """

    def failure(self, what: str, said: str) -> JobError:
        """What to say and do when a library could not do `what`, and said so in its own words."""
        return TableFailed(f"cannot {what} the table {self.location}: {said[:300]}; {ADVICE}")
