"""A database or a disk that fails in the middle of a change: refused, and mended by a retry."""

import errno
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from sqlalchemy import text

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.metadata.topics import TopicState
from ibrik_log.files import RealDisk
from tests.support.registry import NOW_MS, Parts, open_parts, row_of

DELETE_SPEC = TopicSpec.parse({"deletionPolicy": "Delete"})


class FullDisk(RealDisk):
    """A disk that has no room for another folder while `is_full`."""

    is_full = False

    def make_folder(self, path: Path) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().make_folder(path)


@pytest.fixture
def disk() -> FullDisk:
    return FullDisk()


@pytest.fixture
async def parts(tmp_path: Path, disk: FullDisk) -> AsyncIterator[Parts]:
    async with open_parts(tmp_path, disk=disk) as opened:
        yield opened


async def execute(parts: Parts, statement: str) -> None:
    async with parts.database.transaction() as connection:
        await connection.execute(text(statement))


async def test_a_full_disk_makes_no_half_topic(parts: Parts, disk: FullDisk) -> None:
    disk.is_full = True
    with pytest.raises(Refusal) as refused:
        await parts.registry.create_topic("orders", TopicSpec())
    assert refused.value.code == "storage-full"
    assert await parts.rows.all() == []
    disk.is_full = False
    await parts.registry.create_topic("orders", TopicSpec())
    await parts.publish("orders", b"one")


async def test_a_row_that_changed_behind_the_broker_is_read_anew(parts: Parts) -> None:
    await parts.registry.create_topic("orders", TopicSpec())
    (row,) = await parts.rows.all()
    await parts.rows.update(row, now_ms=NOW_MS, resource_uid="elsewhere")
    with pytest.raises(Refusal) as refused:
        await parts.registry.put_topic("orders", TopicSpec(partitions=2))
    assert refused.value.code == "precondition-failed"
    await parts.registry.put_topic("orders", TopicSpec(partitions=2))
    assert len(parts.engine.topic("orders").partitions) == 2


async def test_a_name_that_only_the_database_knows_is_refused(parts: Parts) -> None:
    await parts.rows.insert(row_of("orders", TopicState.CREATING))
    with pytest.raises(Refusal, match="Restart the broker") as refused:
        await parts.registry.create_topic("orders", TopicSpec())
    assert refused.value.code == "topic-exists"
    assert parts.volume.topics() == []


async def test_a_removal_that_the_database_interrupted_is_finished_by_the_next_wish(
    parts: Parts,
) -> None:
    await parts.registry.create_topic("orders", DELETE_SPEC)
    old_id = parts.engine.topic("orders").id
    # A statement that needs an unknown function fails as an unreachable database does.
    await execute(
        parts, "CREATE TRIGGER down BEFORE DELETE ON topics BEGIN SELECT no_function(); END"
    )
    with pytest.raises(Refusal) as refused:
        await parts.registry.delete_topic("orders")
    assert refused.value.code == "metadata-unavailable"
    with pytest.raises(Refusal, match="There is no topic 'orders'"):
        parts.engine.topic("orders")
    await execute(parts, "DROP TRIGGER down")
    await parts.registry.create_topic("orders", DELETE_SPEC)
    assert parts.engine.topic("orders").id != old_id
    assert len(await parts.rows.all()) == 1


async def test_without_a_database_topics_are_refused_and_messages_are_not(parts: Parts) -> None:
    await parts.registry.create_topic("orders", TopicSpec())
    await execute(parts, "ALTER TABLE topics RENAME TO away")
    for attempt in (
        parts.registry.create_topic("other", TopicSpec()),
        parts.registry.put_topic("orders", TopicSpec(partitions=2)),
        parts.registry.delete_topic("orders"),
        parts.registry.apply(
            [{"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic", "metadata": {"name": "x"}}]
        ),
    ):
        with pytest.raises(Refusal) as refused:
            await attempt
        assert refused.value.code == "metadata-unavailable"
    await parts.publish("orders", b"one")
    assert parts.messages("orders") == 1
