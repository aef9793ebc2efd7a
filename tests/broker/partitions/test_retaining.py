"""Retention beside an archive: what is held back, for how long, and what happens then."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from ibrik_api.archiving import ArchiveReport
from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.partitions.engine import EngineConfig
from ibrik_broker.partitions.retaining import retain
from ibrik_broker.partitions.topic import Topic
from ibrik_log.watermark import ARCHIVE_FILE
from tests.broker.partitions.engine_support import Rig, message, running_engine

HOUR_MS = 3_600_000
ENABLED = {"enabled": True}
QUIET = EngineConfig(min_free_bytes=0, maintenance_seconds=3_600)
"""Retention has its turn when the test says so."""


def spec(**archive: Any) -> dict[str, Any]:
    return {"archive": ENABLED | archive, "retention": {"time": "1h"}}


async def fill(rig: Rig, topic: Topic, segments: int = 3) -> None:
    """Segments of one message of a hundred bytes each, and an empty active one."""
    for _ in range(segments):
        await rig.engine.publish(topic, [message(b"x" * 100)])
        await rig.engine.roll_topic(topic, 0)


async def report(rig: Rig, topic: Topic, archived_up_to: int, **changes: Any) -> None:
    document = {
        "topicId": topic.id,
        "table": {"id": "t1", "url": "/lake/orders", "version": 1},
        "partitions": [{"partition": 0, "archivedUpTo": archived_up_to}],
    }
    await rig.engine.note_archived(topic, ArchiveReport.parse(document | changes))


def starts(topic: Topic, rig: Rig) -> int:
    """The log start after retention had its turn."""
    retain(topic.partitions[0], rig.clock())
    return topic.partitions[0].earliest


async def test_what_is_not_archived_stays_whatever_its_age(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic)
        rig.clock.now_ms += 10 * HOUR_MS
        assert starts(topic, rig) == 0
        await report(rig, topic, 2)
        assert starts(topic, rig) == 2
        await report(rig, topic, 3)
        assert starts(topic, rig) == 3


async def test_what_is_archived_stays_as_long_as_retention_says(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic)
        await report(rig, topic, 3)
        assert starts(topic, rig) == 0


async def test_a_segment_that_is_archived_in_part_stays(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await rig.engine.publish(topic, [message(b"a"), message(b"b")])
        await rig.engine.roll_topic(topic, 0)
        await report(rig, topic, 1)
        rig.clock.now_ms += 10 * HOUR_MS
        assert starts(topic, rig) == 0


async def test_without_an_archive_nothing_is_held_back(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic)
        rig.clock.now_ms += 10 * HOUR_MS
        assert starts(topic, rig) == 0
        await rig.engine.update_topic(topic, TopicSpec.parse({"retention": {"time": "1h"}}))
        assert starts(topic, rig) == 3


async def test_the_watermark_is_there_after_a_crash(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET, close=False) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic)
        await report(rig, topic, 2)
    async with running_engine(tmp_path, config=QUIET, clock=rig.clock) as rig:
        topic = await rig.topic(**spec())
        assert topic.partitions[0].archived_up_to == 2
        rig.clock.now_ms += 10 * HOUR_MS
        assert starts(topic, rig) == 2


@pytest.mark.parametrize("content", [b"", b"{}", b"\x00" * 300])
async def test_an_unreadable_watermark_deletes_nothing(tmp_path: Path, content: bytes) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic)
        await report(rig, topic, 3)
        (tmp_path / "topics" / topic.id / ARCHIVE_FILE).write_bytes(content)
    async with running_engine(tmp_path, config=QUIET, clock=rig.clock) as rig:
        topic = await rig.topic(**spec())
        rig.clock.now_ms += 10 * HOUR_MS
        assert starts(topic, rig) == 0
        await report(rig, topic, 1)
        assert starts(topic, rig) == 1


async def test_a_watermark_that_is_ahead_of_the_log_deletes_nothing(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic)
        await report(rig, topic, 3)
        kept = (tmp_path / "topics" / topic.id / ARCHIVE_FILE).read_bytes()
    async with running_engine(tmp_path / "older", config=QUIET, clock=rig.clock) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic, 2)
        (tmp_path / "older/topics" / topic.id / ARCHIVE_FILE).write_bytes(kept)
    async with running_engine(tmp_path / "older", config=QUIET, clock=rig.clock) as rig:
        topic = await rig.topic(**spec())
        rig.clock.now_ms += 10 * HOUR_MS
        assert starts(topic, rig) == 0


async def test_a_report_never_moves_back(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic)
        await report(rig, topic, 3)
        await report(rig, topic, 1)
        assert topic.partitions[0].archived_up_to == 3


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topicId": "other"}, "other-topic-id"),
        ({"partitions": [{"partition": 1, "archivedUpTo": 0}]}, "unknown-partition"),
        ({"partitions": [{"partition": 0, "archivedUpTo": 2}]}, "beyond-sealed"),
    ],
)
async def test_a_report_that_is_not_of_this_log_changes_nothing(
    tmp_path: Path, changes: dict[str, Any], code: str
) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec())
        await fill(rig, topic, 1)
        await rig.engine.publish(topic, [message(b"active")])
        with pytest.raises(Refusal) as caught:
            await report(rig, topic, 1, **changes)
        assert caught.value.code == code
        assert topic.partitions[0].archived_up_to == 0
        assert not (tmp_path / "topics" / topic.id / ARCHIVE_FILE).exists()


# --- holdMax --------------------------------------------------------------------------------------


async def held_back(rig: Rig, **hold: Any) -> Topic:
    """Three segments, two hours older than retention wants them, and the archive is down."""
    topic = await rig.topic(**spec(holdMax=hold))
    await fill(rig, topic)
    rig.clock.now_ms += 3 * HOUR_MS
    return topic


def levels(logs: Sequence[Any]) -> list[str]:
    return [entry["log_level"] for entry in logs]


async def test_an_alarm_is_told_once_and_nothing_else_happens(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await held_back(rig, bytes=300)
        partition = topic.partitions[0]
        with capture_logs() as logs:
            assert [starts(topic, rig) for _ in range(3)] == [0, 0, 0]
        assert levels(logs) == ["error"]
        assert partition.held.size_bytes == partition.size_bytes > 300
        await rig.engine.publish(topic, [message(b"x")])
        await report(rig, topic, 3)
        with capture_logs() as logs:
            assert [starts(topic, rig) for _ in range(2)] == [3, 3]
        assert levels(logs) == ["info"]
        assert partition.held.size_bytes == 0


async def test_block_refuses_publishing_until_the_archive_has_caught_up(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await held_back(rig, time="90m", action="block")
        starts(topic, rig)
        with pytest.raises(Refusal, match="Publishing resumes by itself") as caught:
            await rig.engine.publish(topic, [message(b"x")])
        assert caught.value.code == "archive-behind"
        assert topic.partitions[0].earliest == 0
        await report(rig, topic, 3)
        starts(topic, rig)
        await rig.engine.publish(topic, [message(b"x")])


async def test_block_ends_when_the_archive_is_turned_off(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await held_back(rig, bytes=1, action="block")
        starts(topic, rig)
        await rig.engine.update_topic(topic, TopicSpec())
        starts(topic, rig)
        await rig.engine.publish(topic, [message(b"x")])


async def test_drop_deletes_the_oldest_and_counts_them(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await held_back(rig, bytes=400, action="drop")
        partition = topic.partitions[0]
        await report(rig, topic, 0)
        with capture_logs() as logs:
            assert starts(topic, rig) == 1
        assert [entry["event"] for entry in logs] == [
            "archive behind",
            "unarchived messages dropped",
        ]
        assert (logs[1]["from_offset"], logs[1]["to_offset"], logs[1]["count"]) == (0, 1, 1)
        assert partition.unarchived_dropped_count == 1
        assert starts(topic, rig) == 1
        assert partition.unarchived_dropped_count == 1


async def test_drop_lets_go_what_is_held_for_too_long(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await held_back(rig, time="2h", action="drop")
        assert starts(topic, rig) == 0
        rig.clock.now_ms += 1
        assert starts(topic, rig) == 3
        assert topic.partitions[0].unarchived_dropped_count == 3


async def test_what_retention_wants_anyway_is_not_held_back(tmp_path: Path) -> None:
    async with running_engine(tmp_path, config=QUIET) as rig:
        topic = await rig.topic(**spec(holdMax={"bytes": 1, "action": "drop"}))
        await fill(rig, topic)
        assert starts(topic, rig) == 0
        assert topic.partitions[0].held.size_bytes == 0
