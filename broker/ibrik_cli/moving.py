"""Moving metadata from one database to another, with the data folder locked meanwhile."""

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ibrik_cli.failures import Failure
from ibrik_cli.progress import open_progress

if TYPE_CHECKING:
    from sqlalchemy import URL


def move(source_url: str, target_url: str, data: Path | None) -> dict[str, Any]:
    """Copy everything, or nothing; what was copied, table by table.

    Raises VolumeInUse while the broker of the data folder runs.
    """
    try:
        from ibrik_broker.metadata.copy import copy
        from ibrik_broker.metadata.database import parse_url
    except ModuleNotFoundError as error:
        raise Failure(
            f"the broker is not installed ({error.name} is missing): pip install 'ibrik[broker]'"
        ) from error
    source, target = parse_url(source_url), parse_url(target_url)
    with ExitStack() as held:
        cluster_ids = [
            held.enter_context(locked(folder)) for folder in data_folders(source, target, data)
        ]
        if len(set(cluster_ids)) > 1:
            raise Failure("the data folders are of two clusters; name databases of one cluster")
        progress = held.enter_context(open_progress("copying"))
        counts: dict[str, int] = {}

        def on_progress(table: str, rows: int) -> None:
            counts[table] = rows
            progress.show(sum(counts.values()))

        copied = asyncio.run(copy(source_url, target_url, on_progress, *cluster_ids[:1]))
    return {
        "from": source.get_backend_name(),
        "to": target.get_backend_name(),
        "clusterId": copied.cluster_id,
        "rows": sum(t.rows for t in copied.tables),
        "tables": [{"table": t.table, "rows": t.rows} for t in copied.tables],
    }


def data_folders(source: "URL", target: "URL", data: Path | None) -> list[Path]:
    """The folders that a broker could be running on: the one named, and those of SQLite files."""
    found = [data] if data is not None else []
    for url in (source, target):
        if url.get_backend_name() == "sqlite" and url.database:
            folder = Path(url.database).parent
            if (folder / "CLUSTER_ID").is_file():
                found.append(folder)
    return list({folder.resolve(): folder for folder in found}.values())


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Keep brokers out of a data folder; its cluster id."""
    from ibrik_log.files import RealDisk
    from ibrik_log.volume import Volume

    if not (folder / "CLUSTER_ID").is_file():
        raise Failure(f"{folder} is no data folder of Ibrik: it has no file CLUSTER_ID")
    volume = Volume.open(RealDisk(), folder)
    try:
        yield volume.cluster_id
    finally:
        volume.close()
