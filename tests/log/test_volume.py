"""The data folder: whose it is, which format, which topics; what is refused and what is kept."""

import errno
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from ibrik_log.errors import (
    ForeignFile,
    StorageFailed,
    UnknownFormat,
    UnreadableDocument,
    VolumeInUse,
)
from ibrik_log.files import AppendFile
from ibrik_log.log import Log
from ibrik_log.volume import TopicFolder, Volume
from tests.log.logs import REAL, SMALL, fill
from tests.simulation.disk import PowerLoss, SimulatedDisk

DATA = Path("/data")
TOPIC = "7d17946a-9a18-4514-abf6-3d9d8f745ba5"


def create(volume: Volume, topic_id: str = TOPIC, partitions: int = 2) -> TopicFolder:
    return volume.create_topic(topic_id, "orders", 1_700_000_000_000, "hash", partitions)


def listing(folder: Path) -> dict[str, bytes]:
    return {str(p): p.read_bytes() if p.is_file() else b"" for p in folder.rglob("*")}


def test_a_new_volume_has_ids_that_stay(tmp_path: Path) -> None:
    volume = Volume.open(REAL, tmp_path / "a/b")
    ids = (volume.cluster_id, volume.volume_id)
    assert all(str(uuid.UUID(text)) == text for text in ids)
    assert ids[0] != ids[1]
    assert volume.topics() == []
    volume.close()
    volume.close()
    again = Volume.open(REAL, tmp_path / "a/b")
    assert (again.cluster_id, again.volume_id) == ids
    again.close()
    assert (tmp_path / "a/b/FORMAT").read_bytes() == bytes.fromhex("69 62 72 69 6b 20 31 0a")


def test_a_second_process_is_told_who_holds_the_volume(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from ibrik_log.files import RealDisk;"
        "from ibrik_log.volume import Volume;"
        "v = Volume.open(RealDisk(), Path(sys.argv[1]));"
        "print('open', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "open\n"
        before = listing(tmp_path)
        with pytest.raises(VolumeInUse) as error:
            Volume.open(REAL, tmp_path)
        assert error.value.pid == holder.pid
        assert str(holder.pid) in str(error.value)
        assert listing(tmp_path) == before
        Volume.open(REAL, tmp_path, read_only=True).close()
        holder.kill()
    Volume.open(REAL, tmp_path).close()


def test_an_unknown_holder_is_no_lie(tmp_path: Path) -> None:
    Volume.open(REAL, tmp_path).close()
    lock = AppendFile(REAL, tmp_path / "lock")
    REAL.lock(lock.file_descriptor())
    lock.truncate(0)
    with pytest.raises(VolumeInUse, match="another process"):
        Volume.open(REAL, tmp_path)
    lock.close()


@pytest.mark.parametrize(
    ("content", "found"), [(b"ibrik 2\n", "ibrik 2"), (b"", "empty"), (b"\xff\xfe", "\ufffd")]
)
def test_a_folder_of_another_version_is_refused_with_both_versions(
    tmp_path: Path, content: bytes, found: str
) -> None:
    Volume.open(REAL, tmp_path).close()
    (tmp_path / "FORMAT").write_bytes(content)
    before = listing(tmp_path)
    with pytest.raises(UnknownFormat) as error:
        Volume.open(REAL, tmp_path)
    assert found in error.value.found
    assert "ibrik 1" in str(error.value)
    assert listing(tmp_path) == before


def test_topics_without_a_format_are_not_touched(tmp_path: Path) -> None:
    (tmp_path / "topics").mkdir()
    with pytest.raises(UnknownFormat):
        Volume.open(REAL, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["topics"]


def test_a_foreign_file_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    (tmp_path / "holiday.jpg").write_bytes(b"")
    with pytest.raises(ForeignFile, match=r"holiday\.jpg"):
        Volume.open(REAL, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["holiday.jpg"]


def test_files_that_belong_beside_the_log_are_no_strangers(tmp_path: Path) -> None:
    for name in ("metadata.db", "metadata.db-wal", "x.quarantine", "FORMAT.tmp"):
        (tmp_path / name).write_bytes(b"")
    (tmp_path / "lost+found").mkdir()
    Volume.open(REAL, tmp_path).close()


@pytest.mark.parametrize("name", ["CLUSTER_ID", "VOLUME_ID"])
def test_an_unreadable_id_is_not_replaced(tmp_path: Path, name: str) -> None:
    Volume.open(REAL, tmp_path).close()
    (tmp_path / name).write_bytes(b"garbage\xff")
    with pytest.raises(UnreadableDocument):
        Volume.open(REAL, tmp_path)
    assert (tmp_path / name).read_bytes() == b"garbage\xff"
    (tmp_path / name).unlink()
    Volume.open(REAL, tmp_path).close()


def test_a_topic_is_found_again_by_its_folder(tmp_path: Path) -> None:
    volume = Volume.open(REAL, tmp_path)
    topic = create(volume)
    assert create(volume) == topic
    volume.close()
    again = Volume.open(REAL, tmp_path)
    assert again.topics() == [topic]
    assert again.partition_folder(TOPIC, 1).is_dir()
    assert again.add_partitions(TOPIC, 5).partitions == 5
    assert again.topics()[0].partitions == 5
    assert again.partition_folder(TOPIC, 4).is_dir()
    again.close()


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"\xff", b"null", b'{"kind":"topic","version":1,"crc32c":"x","body":{}}', None],
)
def test_a_topic_with_an_unreadable_file_is_kept_reported_and_not_served(
    tmp_path: Path, content: bytes | None
) -> None:
    volume = Volume.open(REAL, tmp_path)
    topic = create(volume)
    other = create(volume, str(uuid.UUID(int=1)))
    path = topic.path / "topic.json"
    path.unlink() if content is None else path.write_bytes(content)
    assert volume.topics() == [other]
    assert volume.unreadable == [TOPIC]
    assert (topic.path / "0").is_dir()
    volume.close()


def test_a_topics_file_in_another_topics_folder_is_not_believed(tmp_path: Path) -> None:
    volume = Volume.open(REAL, tmp_path)
    topic = create(volume)
    other = create(volume, str(uuid.UUID(int=1)))
    (other.path / "topic.json").write_bytes((topic.path / "topic.json").read_bytes())
    assert volume.topics() == [topic]
    assert volume.unreadable == [other.topic_id]
    volume.close()


def test_a_deleted_topic_is_gone_at_once_and_its_bytes_later(tmp_path: Path) -> None:
    volume = Volume.open(REAL, tmp_path)
    topic = create(volume)
    log = Log.open(REAL, volume.partition_folder(TOPIC, 0), SMALL)
    fill(log, 10)
    log.close()
    volume.delete_topic(TOPIC)
    assert volume.topics() == []
    assert volume.unreadable == []
    assert topic.path.with_name(TOPIC + ".deleted").is_dir()
    assert volume.remove_deleted() == 1
    assert list((tmp_path / "topics").iterdir()) == []
    assert volume.remove_deleted() == 0
    volume.close()


def test_a_topics_id_leads_nowhere_else(tmp_path: Path) -> None:
    volume = Volume.open(REAL, tmp_path)
    for topic_id in ("../../etc", "", TOPIC.upper()):
        with pytest.raises((AssertionError, ValueError)):
            volume.topic_folder(topic_id)
    volume.close()


def test_a_folder_that_cannot_be_listed_is_a_storage_failure() -> None:
    disk = SimulatedDisk()
    Volume.open(disk, DATA).close()
    disk.fail("list_folder", errno.EACCES)
    with pytest.raises(StorageFailed):
        Volume.open(disk, DATA)


@pytest.mark.parametrize("crash_at", range(1, 60))
def test_a_topic_that_was_created_survives_any_crash_and_one_that_was_not_harms_nothing(
    crash_at: int,
) -> None:
    for seed in range(5):
        disk = SimulatedDisk(seed)
        disk.crash_at = crash_at
        created = 0
        try:
            volume = Volume.open(disk, DATA)
            for number in range(3):
                create(volume, str(uuid.UUID(int=number)))
                created = number + 1
        except PowerLoss:
            pass
        disk.lose_power()
        volume = Volume.open(disk, DATA)
        topics = volume.topics()
        assert created <= len(topics) <= created + 1
        assert all(disk.is_folder(topic.path / "1") for topic in topics)


def test_a_volume_that_joins_has_no_cluster_until_it_is_told(tmp_path: Path) -> None:
    volume = Volume.open(REAL, tmp_path, joins=True)
    assert volume.cluster_id == ""
    volume.close()
    again = Volume.open(REAL, tmp_path, joins=True)  # it ended in between
    again.join(TOPIC)
    again.close()
    joined = Volume.open(REAL, tmp_path)
    assert joined.cluster_id == TOPIC
    joined.close()
