"""What a start says about the logs that it had to repair."""

from pathlib import Path

from structlog.testing import capture_logs

from tests.broker.partitions.engine_support import message, running_engine


def segment_of(data: Path) -> Path:
    (segment,) = data.glob("topics/*/0/*.log")
    return segment


async def leave_a_log(data: Path) -> Path:
    """Three records in batches of their own."""
    async with running_engine(data) as rig:
        topic = await rig.topic()
        for value in (b"a", b"b", b"c"):
            await rig.engine.publish(topic, [message(value)])
    return segment_of(data)


async def test_a_clean_start_says_nothing(tmp_path: Path) -> None:
    await leave_a_log(tmp_path)
    async with running_engine(tmp_path) as rig:
        with capture_logs() as lines:
            await rig.topic()
    assert lines == []


async def test_a_torn_tail_is_told_with_its_size_and_its_quarantine(tmp_path: Path) -> None:
    segment = await leave_a_log(tmp_path)
    segment.write_bytes(segment.read_bytes() + b"torn")
    async with running_engine(tmp_path) as rig:
        with capture_logs() as lines:
            await rig.topic()
    (line,) = lines
    assert (line["event"], line["topic"], line["partition"]) == ("torn tail cut", "orders", 0)
    assert (line["cut_bytes"], line["end_offset"]) == (4, 3)
    assert Path(line["quarantine"]).read_bytes() == b"torn"


async def test_a_damaged_range_is_told_with_its_offsets(tmp_path: Path) -> None:
    segment = await leave_a_log(tmp_path)
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 1  # in the second of three batches of one size
    segment.write_bytes(content)
    segment.with_name("clean").unlink()
    async with running_engine(tmp_path) as rig:
        with capture_logs() as lines:
            await rig.topic()
    (line,) = [each for each in lines if each["event"] == "records damaged and not served"]
    assert (line["from_offset"], line["to_offset"], line["record_count"]) == (1, 2, 1)
