"""The broker under measurement, and plain HTTP to it outside the measured time."""

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from aiokafka.record.default_records import DefaultRecordBatchBuilder

from tests.support.broker import Broker, running_broker

RAW = "application/vnd.ibrik.batch"
TIMEOUT_S = 60.0
_CPU_CLOCK_OF_ALL_THREADS = 2


@contextmanager
def broker_with(
    folder: Path, topics: Mapping[str, Mapping[str, Any]], **settings: str
) -> Iterator[Broker]:
    """A broker on an own folder with these topics (name → spec); stopped at the end."""
    with running_broker(folder, **settings) as broker:
        for name, spec in topics.items():
            create_topic(broker, name, spec)
        yield broker


def create_topic(broker: Broker, name: str, spec: Mapping[str, Any]) -> None:
    topic = {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "Topic",
        "metadata": {"name": name},
        "spec": dict(spec),
    }
    post(f"{broker.http_url}/v1/topics", json.dumps(topic).encode(), "application/json")


def post(
    url: str, body: bytes, content_type: str, headers: Mapping[str, str] | None = None
) -> bytes:
    """POST and return the answer's body; HTTPError on anything but 2xx."""
    request = urllib.request.Request(
        url, data=body, headers={"Content-Type": content_type} | dict(headers or {})
    )
    with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
        content: bytes = answer.read()
    return content


def get_text(url: str) -> str:
    with urllib.request.urlopen(url, timeout=TIMEOUT_S) as answer:
        content: bytes = answer.read()
    return content.decode()


def get_json(url: str) -> Any:
    return json.loads(get_text(url))


def pub_command(topic: str, value: bytes) -> bytes:
    """One `PUB` of the TCP door; the reply is one line."""
    return b"PUB %s %d\r\n%s" % (topic.encode(), len(value), value)


def messages_url(broker: Broker, topic: str) -> str:
    return f"{broker.http_url}/v1/topics/{topic}/messages"


def batch_url(broker: Broker, topic: str) -> str:
    return f"{broker.http_url}/v1/topics/{topic}/batch"


def raw_batch(values: Sequence[bytes]) -> bytes:
    """One record batch, as a client of the raw door builds it."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    for delta, value in enumerate(values):
        builder.append(delta, 0, None, value, [])
    return bytes(builder.build())


def resident_bytes(pid: int) -> int:
    """Memory that a process holds now (VmRSS)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"no VmRSS for process {pid}")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far, to the nanosecond (its CPU clock, Linux)."""
    return time.clock_gettime((~pid << 3) | _CPU_CLOCK_OF_ALL_THREADS)
