"""Bringing a topic back whose row is lost: the folder has the data, the database forgot it.

The spec was in the row, so the topic comes back with the default one and as many partitions as its
folder has. Holds the volume's lock, so a running broker is never surprised.
"""

import time
from pathlib import Path

from ibrik_cli.failures import Failure


async def adopt_topic(data: Path, topic_id: str, database_url: str) -> str:
    """Write a row for the folder; the name of the topic."""
    from ibrik_api.resources.topic import TopicSpec
    from ibrik_broker.metadata.database import Database
    from ibrik_broker.metadata.topics import NameTaken, Origin, TopicRow, TopicRows, TopicState
    from ibrik_log.files import RealDisk
    from ibrik_log.volume import Volume

    volume = Volume.open(RealDisk(), data)
    try:
        folder = volume.topic(topic_id)
        database = await Database.open(database_url, volume.cluster_id)
        try:
            rows = TopicRows(database)
            if await rows.get(topic_id) is not None:
                raise Failure(f"{folder.name} is not lost: the database has a row for {topic_id}")
            await rows.insert(
                TopicRow(
                    id=topic_id,
                    name=folder.name,
                    namespace="default",
                    resource_name=folder.name,
                    resource_uid=None,
                    origin=Origin.API,
                    generation=1,
                    spec=TopicSpec(partitions=folder.partitions).document(),
                    state=TopicState.READY,
                    revision=1,
                    created_ms=folder.created_ms,
                    updated_ms=int(time.time() * 1000),
                )
            )
        except NameTaken as error:
            raise Failure(
                f"there is another topic {folder.name!r} now; delete or rename it first"
            ) from error
        finally:
            await database.close()
        return folder.name
    finally:
        volume.close()
