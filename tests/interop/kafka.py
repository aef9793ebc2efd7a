"""Kafka's own code on our files: its DumpLogSegments, and its library for header values.

Needs Java (17 or later, with javac) and Maven, which fetches org.apache.kafka:kafka_2.13 once.
"""

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.interop.record import ReadRecord

HERE = Path(__file__).parent
CACHE = HERE.parent.parent / ".bench" / "kafka"
MAIN_CLASS = "kafka.tools.DumpLogSegments"
HINT = (
    "make interop needs java, javac and mvn (Debian: apt-get install openjdk-17-jdk-headless maven)"
)

_BATCH = re.compile(
    r"baseOffset: \d+ lastOffset: \d+ count: \d+ .*?producerId: -?\d+ producerEpoch: -?\d+ "
    r"partitionLeaderEpoch: (\d+) .*?position: \d+ LogAppendTime: \d+ size: \d+ magic: 2 "
    r"compresscodec: none crc: \d+ isvalid: (true|false)$"
)
_RECORD = re.compile(
    r"\| offset: (\d+) LogAppendTime: (\d+) keySize: (-?\d+) valueSize: (-?\d+) sequence: -?\d+ "
    r"headerKeys: \[(.*?)\](?: key: ([0-9a-f]*))?(?: payload: ([0-9a-f]*))?$"
)
_INDEX_ENTRY = re.compile(r"^(?:offset: \d+ position: \d+|timestamp: \d+ offset: \d+)$")
# What the tool prints when an index does not fit its log.
_COMPLAINT = re.compile(r"ismatch|out of order|not found|xception|corrupt|failed", re.IGNORECASE)


class ToolMissing(Exception):
    """Java or Maven is not here."""


@dataclass(slots=True)
class Dump:
    """What DumpLogSegments printed of one or more files."""

    records: list[ReadRecord] = field(default_factory=list)
    header_keys: list[str] = field(default_factory=list)
    epochs: set[int] = field(default_factory=set)
    batches: int = 0
    invalid_batches: int = 0
    index_entries: int = 0
    complaints: list[str] = field(default_factory=list)


def fetch() -> None:
    """Maven's copy of the jars and our two classes, made once."""
    if not all(shutil.which(tool) for tool in ("java", "javac", "mvn")):
        raise ToolMissing(HINT)
    jars = CACHE / "jars"
    if not list(jars.glob("kafka_2.13-*.jar")):
        _run(
            "mvn",
            "--quiet",
            "--batch-mode",
            "--file",
            HERE / "pom.xml",
            "dependency:copy-dependencies",
            f"-DoutputDirectory={jars}",
        )
    classes = CACHE / "classes"
    _run("javac", "-d", classes, "-cp", jars / "*", *sorted(HERE.glob("*.java")))


def dump(files: Sequence[Path]) -> Dump:
    """DumpLogSegments over logs and indexes; whatever it cannot place is a complaint."""
    output = _java(
        MAIN_CLASS,
        "--print-data-log",
        "--key-decoder-class",
        "HexDecoder",
        "--value-decoder-class",
        "HexDecoder",
        "--files",
        ",".join(map(str, files)),
    )
    found = Dump()
    for line in output.splitlines():
        if match := _RECORD.match(line):
            _take_record(found, match)
        elif match := _BATCH.match(line):
            found.batches += 1
            found.epochs.add(int(match.group(1)))
            found.invalid_batches += match.group(2) != "true"
        elif _INDEX_ENTRY.match(line):
            found.index_entries += 1
        elif not line.startswith(("Dumping ", "Log starting offset: ")):
            found.complaints.append(line)
    return found


def _take_record(found: Dump, match: re.Match[str]) -> None:
    offset, timestamp, key_size, value_size, header_keys, key, value = match.groups()
    found.records.append(
        ReadRecord(int(offset), int(timestamp), _bytes(key_size, key), _bytes(value_size, value))
    )
    found.header_keys.append(header_keys)


def _bytes(size: str, text: str | None) -> bytes | None:
    if size == "-1":
        return None
    content = bytes.fromhex(text or "")
    assert len(content) == int(size), f"{size} bytes said, {len(content)} printed"
    return content


def check_indexes(indexes: Sequence[Path]) -> list[str]:
    """Let the tool verify offset and time indexes against the logs beside them; its complaints."""
    names = ",".join(map(str, indexes))
    output = _java(MAIN_CLASS, "--verify-index-only", "--files", names)
    output += _java(MAIN_CLASS, "--index-sanity-check", "--files", names)
    passed = len(re.findall(r"passed sanity check", output))
    complaints = [line for line in output.splitlines() if _COMPLAINT.search(line)]
    if passed != len(indexes):
        complaints.append(f"{passed} of {len(indexes)} indexes passed the sanity check")
    return complaints


def read(files: Sequence[Path]) -> list[ReadRecord]:
    """All records with their header values, by Kafka's library."""
    records = []
    for line in _java("PrintRecords", *files).splitlines():
        offset, timestamp, key, value, headers = line.split(" ")
        pairs = [header.split("=") for header in headers.split(",") if header]
        records.append(
            ReadRecord(
                int(offset),
                int(timestamp),
                _unhex(key),
                _unhex(value),
                tuple(((_unhex(name) or b"").decode(), _unhex(content)) for name, content in pairs),
            )
        )
    return records


def _unhex(text: str) -> bytes | None:
    return None if text == "null" else bytes.fromhex(text.removeprefix("x"))


def _java(main_class: str, *arguments: str | Path) -> str:
    class_path = f"{CACHE / 'jars' / '*'}:{CACHE / 'classes'}"
    return _run("java", "-cp", class_path, main_class, *arguments)


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout
