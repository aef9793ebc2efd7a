"""A mounted volume: whose it is, what it holds, and that a wrong mount is never an empty one."""

import shutil
from pathlib import Path

import pytest

from ibrik_spark.errors import ExitCode, UnreadablePartition, WrongVolume
from ibrik_spark.volume import MountedVolume
from tests.spark.volumes import TOPIC, fill, listed, new_log


@pytest.fixture
def data(tmp_path: Path) -> Path:
    log = new_log(tmp_path)
    fill(log, 2)
    fill(log, 1)
    log.close()
    return tmp_path


def test_a_volume_names_its_cluster_topics_and_sealed_ranges(data: Path) -> None:
    cluster_id = (data / "CLUSTER_ID").read_text().strip()
    volume = MountedVolume.open(data, cluster_id=cluster_id)
    (topic,) = volume.topics()
    assert (volume.cluster_id, topic.topic_id, topic.partitions) == (cluster_id, TOPIC, 2)
    partition = volume.partition(topic, 1)
    ranges = [(segment.base_offset, segment.next_offset) for segment in partition.segments]
    assert ranges == [(0, 6), (6, 9)]
    empty = volume.partition(topic, 0)
    assert (empty.segments, empty.start_offset, empty.end_offset) == ((), 0, 0)


def test_an_empty_folder_is_no_volume(tmp_path: Path) -> None:
    for data in (tmp_path, tmp_path / "missing"):
        with pytest.raises(WrongVolume, match="claim is mounted there") as refusal:
            MountedVolume.open(data)
        assert refusal.value.exit_code == ExitCode.CONFIGURATION == 64


@pytest.mark.parametrize("content", [None, "", "no id\n"])
def test_a_volume_without_a_cluster_id_is_refused(data: Path, content: str | None) -> None:
    (data / "CLUSTER_ID").unlink()
    if content is not None:
        (data / "CLUSTER_ID").write_text(content)
    with pytest.raises(WrongVolume, match="CLUSTER_ID"):
        MountedVolume.open(data)


def test_the_volume_of_another_cluster_another_format_or_anything_else_is_refused(
    data: Path,
) -> None:
    with pytest.raises(WrongVolume, match="belongs to cluster"):
        MountedVolume.open(data, cluster_id=TOPIC)
    (data / "FORMAT").write_text("ibrik 9\n")
    with pytest.raises(WrongVolume, match="ibrik 9"):
        MountedVolume.open(data)
    (data / "photos").mkdir()
    with pytest.raises(WrongVolume, match="photos"):
        MountedVolume.open(data)


@pytest.mark.parametrize("topic_id", ["00000000-0000-0000-0000-000000000000", "..", "a/b", "\0"])
def test_a_topic_that_is_not_there_is_refused_by_its_id(data: Path, topic_id: str) -> None:
    with pytest.raises(WrongVolume, match="check the topic's id"):
        MountedVolume.open(data).topic(topic_id)


def test_a_topic_that_cannot_be_read_is_not_left_out_of_the_list(data: Path) -> None:
    (data / "topics" / TOPIC / "topic.json").write_text("{}")
    with pytest.raises(WrongVolume, match=TOPIC):
        MountedVolume.open(data).topics()


def test_a_partition_that_is_not_there_is_refused(data: Path) -> None:
    volume = MountedVolume.open(data)
    topic = volume.topic(TOPIC)
    shutil.rmtree(topic.path / "0")
    for number in (-1, 0, 2):
        with pytest.raises(WrongVolume, match="does not hold partition"):
            volume.partition(topic, number)


@pytest.mark.parametrize("name", ["sealed.json", "epochs"])
def test_a_partition_whose_documents_are_lost_or_damaged_is_no_empty_one(
    data: Path, name: str
) -> None:
    path = data / "topics" / TOPIC / "1" / name
    path.write_text("{}")
    with pytest.raises(UnreadablePartition) as refusal:
        listed(data)
    assert refusal.value.exit_code == ExitCode.RETRY == 75
    path.unlink()
    with pytest.raises(UnreadablePartition, match=name):
        listed(data)
