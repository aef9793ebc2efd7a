"""What a crash leaves between the database and the volume is finished, cleaned or reported."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ibrik_api.durations import MAX_MS
from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.metadata.topics import TopicState
from tests.support.registry import NOW_MS, TOPIC_ID, Parts, open_parts, row_of


async def leave(
    folder: Path, state: TopicState, *, row_partitions: int = 1, folder_partitions: int = 0
) -> None:
    """Stop between two steps: a row in `state`, and a folder when it has partitions."""
    async with open_parts(folder) as parts:
        await parts.rows.insert(row_of("orders", state, partitions=row_partitions))
        if folder_partitions:
            parts.volume.create_topic(TOPIC_ID, "orders", NOW_MS, "hash", folder_partitions)


def is_served(parts: Parts, name: str = "orders") -> bool:
    return name in {topic.name for topic in parts.engine.topics()}


async def assert_unavailable(parts: Parts, told: str) -> None:
    """Kept, reported, not served, and no new topic takes its name."""
    (finding,) = parts.registry.findings
    assert told in finding.detail
    assert not is_served(parts)
    for attempt in (parts.registry.create_topic, parts.registry.put_topic):
        with pytest.raises(Refusal) as refused:
            await attempt("orders", TopicSpec())
        assert refused.value.code == "topic-unavailable"


async def test_a_creation_without_its_folder_is_forgotten(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.CREATING)
    async with open_parts(tmp_path) as parts:
        assert await parts.rows.all() == []
        assert parts.registry.findings == []
        await parts.registry.create_topic("orders", TopicSpec())


async def test_a_creation_with_half_a_folder_is_forgotten(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.CREATING)
    (tmp_path / "topics" / TOPIC_ID / "0").mkdir(parents=True)
    async with open_parts(tmp_path) as parts:
        assert await parts.rows.all() == []
        assert parts.registry.findings == []
    assert not (tmp_path / "topics" / TOPIC_ID).exists()


async def test_a_creation_with_its_folder_is_finished(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.CREATING, folder_partitions=1)
    async with open_parts(tmp_path) as parts:
        (row,) = await parts.rows.all()
        assert row.state is TopicState.READY
        assert is_served(parts)
        assert parts.registry.findings == []


@pytest.mark.parametrize("folder_partitions", [0, 1])
async def test_a_removal_is_finished(tmp_path: Path, folder_partitions: int) -> None:
    await leave(tmp_path, TopicState.DELETING, folder_partitions=folder_partitions)
    async with open_parts(tmp_path) as parts:
        assert await parts.rows.all() == []
        assert parts.volume.topics() == []
        assert parts.registry.findings == []


async def test_partitions_that_only_the_database_knows_are_added(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.READY, row_partitions=3, folder_partitions=1)
    async with open_parts(tmp_path) as parts:
        assert len(parts.engine.topic("orders").partitions) == 3
        assert parts.volume.topic(TOPIC_ID).partitions == 3


async def test_a_topic_whose_folder_is_gone_is_reported_and_not_made_anew(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.READY)
    async with open_parts(tmp_path) as parts:
        await assert_unavailable(parts, "its folder is not on the volume")
        assert len(await parts.rows.all()) == 1
        await parts.registry.delete_topic("orders")
        with pytest.raises(Refusal, match="Retain"):
            parts.engine.topic("orders")


async def test_a_topic_whose_partition_is_gone_is_reported_and_not_emptied(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.READY, row_partitions=3, folder_partitions=3)
    shutil.rmtree(tmp_path / "topics" / TOPIC_ID / "1")
    async with open_parts(tmp_path) as parts:
        await assert_unavailable(parts, "the folders of partitions 1 are gone")
    assert not (tmp_path / "topics" / TOPIC_ID / "1").exists()


async def test_a_database_older_than_the_folder_is_reported(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.READY, row_partitions=1, folder_partitions=2)
    async with open_parts(tmp_path) as parts:
        await assert_unavailable(parts, "the database says 1 partitions, its folder 2")


@pytest.mark.parametrize("has_row", [True, False])
async def test_an_unreadable_topic_file_is_kept_and_reported(
    tmp_path: Path, *, has_row: bool
) -> None:
    await leave(tmp_path, TopicState.READY, folder_partitions=1)
    file = tmp_path / "topics" / TOPIC_ID / "topic.json"
    file.write_bytes(b"{")
    if not has_row:
        for database in tmp_path.glob("metadata.db*"):
            database.unlink()
    async with open_parts(tmp_path) as parts:
        (finding,) = parts.registry.findings
        assert "topic.json" in finding.detail
        assert finding.topic_id == TOPIC_ID
    assert file.read_bytes() == b"{"


async def test_a_row_that_this_version_cannot_read_is_kept_and_reported(tmp_path: Path) -> None:
    await leave(tmp_path, TopicState.READY, folder_partitions=1)
    async with open_parts(tmp_path, load=False) as parts:
        (row,) = await parts.rows.all()
        await parts.rows.update(row, now_ms=NOW_MS, spec={"fromTheFuture": 1})
    async with open_parts(tmp_path) as parts:
        (finding,) = parts.registry.findings
        assert "fromTheFuture" in finding.detail
        assert not is_served(parts)
        assert len(await parts.rows.all()) == 1


async def test_a_lost_database_loses_no_topic(tmp_path: Path) -> None:
    async with open_parts(tmp_path) as parts:
        await parts.registry.create_topic("orders", TopicSpec(partitions=2))
        await parts.publish("orders", b"one")
        topic_id = parts.engine.topic("orders").id
    for file in tmp_path.glob("metadata.db*"):
        file.unlink()
    async with open_parts(tmp_path) as parts:
        await assert_unavailable(parts, f"ibrik log adopt {topic_id}")
        adopted = await parts.registry.adopt(topic_id)
        assert adopted.spec.partitions == 2
        assert adopted.spec.retention.time_ms == MAX_MS, "nobody said that anything may go"
        assert parts.messages("orders") == 1
        assert parts.registry.findings == []
        with pytest.raises(Refusal) as refused:
            await parts.registry.adopt(topic_id)
        assert refused.value.code == "topic-exists"
        with pytest.raises(Refusal, match="holds no topic"):
            await parts.registry.adopt(TOPIC_ID)
    async with open_parts(tmp_path) as parts:
        assert parts.messages("orders") == 1


WORK = """
import asyncio, os, signal, sys
from pathlib import Path
from sqlalchemy import event
from sqlalchemy.engine import Engine
from ibrik_api.resources.topic import TopicSpec
from tests.support.registry import open_parts

left = int(sys.argv[2])

def step(*_):
    global left
    left -= 1
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)

async def main():
    async with open_parts(Path(sys.argv[1])) as parts:
        event.listen(Engine, "before_cursor_execute", step)
        event.listen(Engine, "commit", step)
        sys.addaudithook(lambda name, _: step() if name in ("os.mkdir", "os.rename") else None)
        for number in range(3):
            name = f"t{number}"
            await parts.registry.create_topic(name, TopicSpec.parse({"deletionPolicy": "Delete"}))
            print("made", name, flush=True)
            await parts.registry.put_topic(name, TopicSpec(partitions=2))
            print("grown", name, flush=True)
            await parts.registry.delete_topic(name)
            print("detached", name, flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("step", [2, 5, 8, 11, 14, 17, 20, 23, 26, 29])
async def test_after_a_kill_at_any_step_every_answer_still_holds(tmp_path: Path, step: int) -> None:
    folder = tmp_path / "data"
    killed = subprocess.run(
        [sys.executable, "-c", WORK, str(folder), str(step)],
        check=False,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert killed.returncode == -signal.SIGKILL
    said = dict(reversed(line.split()) for line in killed.stdout.splitlines())
    async with open_parts(folder) as parts:
        assert parts.registry.findings == []
        states = {row.name: row.state for row in await parts.rows.all()}
        for name, last in said.items():
            if last == "detached":
                assert states[name] is TopicState.DETACHED
            elif is_served(parts, name):
                assert len(parts.engine.topic(name).partitions) >= (2 if last == "grown" else 1)
            else:
                assert (last, states[name]) == ("grown", TopicState.DETACHED)
