"""A pool of real broker processes on one real Postgres, each on an address of its own.

with running_pool(tmp_path, postgres.new_database()) as pool:
    pool.request(0, "PUT", "/v1/topics/orders", {...})
    pool.brokers[1].kill()
    pool.start(1)                      # the same data again
"""

import contextlib
import json
import socket
import urllib.error
import urllib.request
from base64 import b64decode
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.broker import Broker, running_broker

TOKEN = "token-of-the-pool"
TIMEOUT_S = 60.0


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class PoolOfBrokers:
    folder: Path
    url: str
    stack: ExitStack
    brokers: dict[int, Broker] = field(default_factory=dict)

    def start(self, *numbers: int) -> None:
        """Start brokers at the same time, or start them again on the same data."""
        with ThreadPoolExecutor(len(numbers)) as threads:
            starting = [threads.submit(self._start, number) for number in numbers]
        for number, started in zip(numbers, starting, strict=True):
            manager, self.brokers[number] = started.result()
            self.stack.push(manager.__exit__)

    def _start(self, number: int) -> tuple[AbstractContextManager[Broker], Broker]:
        host = f"127.0.0.{number + 2}"
        manager = running_broker(
            self.folder / f"broker-{number}",
            IBRIK_HTTP__HOST=host,
            IBRIK_TCP__HOST=host,
            IBRIK_ADMIN__HOST=host,
            IBRIK_ADMIN__TOKEN_FILE=str(self.folder / "token"),
            IBRIK_POOL__ADVERTISE_HOST=host,
            IBRIK_METADATA__URL=self.url,
        )
        return manager, manager.__enter__()

    def name(self, number: int) -> str:
        return f"127.0.0.{number + 2}"

    def request(
        self,
        number: int,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        is_admin: bool = False,
    ) -> Answer:
        """One request at one broker; a body that is no bytes is sent as JSON."""
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        base = self.brokers[number].admin_url if is_admin else self.brokers[number].http_url
        request = urllib.request.Request(base + path, data=content, method=method)
        given = dict(headers or {})
        if is_admin:
            given["Authorization"] = f"Bearer {TOKEN}"
        for name, text in given.items():
            request.add_header(name, text)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return Answer(answer.status, dict(answer.headers), answer.read())
        except urllib.error.HTTPError as refused:
            with contextlib.closing(refused):
                return Answer(refused.code, dict(refused.headers), refused.read())

    def desire(self, number: int, *resources: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The outcomes of `PUT /admin/v1/desired` at one broker."""
        body = {"resources": list(resources)}
        answer = self.request(number, "PUT", "/admin/v1/desired", body, is_admin=True)
        assert answer.status == 200, answer
        results: list[dict[str, Any]] = answer.json["results"]
        return results

    def topic(self, number: int, name: str, **spec: Any) -> Answer:
        """Make a topic through one broker."""
        return self.request(number, "PUT", f"/v1/topics/{name}", topic(name, **spec))

    def publish(self, number: int, name: str, value: bytes, **headers: str) -> Answer:
        path = f"/v1/topics/{name}/messages"
        return self.request(number, "POST", path, value, headers=headers)

    def values(self, number: int, name: str) -> list[str]:
        """All that a topic of one partition holds, read through one broker."""
        path = f"/v1/topics/{name}/partitions/0/messages?offset=0"
        answer = self.request(number, "GET", path, headers={"Accept": "application/json"})
        if answer.status == 204:
            return []
        assert answer.status == 200, answer
        messages = answer.json["messages"]
        return [b64decode(message["value_base64"]).decode() for message in messages]

    def exchange(self, number: int, stream: bytes) -> bytes:
        """What the TCP door of one broker answers until it ends."""
        address = self.brokers[number].tcp_address
        with socket.create_connection(address, timeout=TIMEOUT_S) as connection:
            connection.sendall(stream)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while received := connection.recv(65_536):
                answer += received
            return answer

    def owner(self, name: str) -> int:
        """Which broker has the topic's folder; exactly one does."""
        owners = [
            number
            for number in sorted(self.brokers)
            for file in (self.folder / f"broker-{number}/data/topics").glob("*/topic.json")
            if json.loads(file.read_text())["body"]["name"] == name
        ]
        assert len(owners) == 1, f"{name} is at {owners}"
        return owners[0]


def topic(name: str, **spec: Any) -> dict[str, Any]:
    return resource("Topic", name, **spec)


def resource(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


@contextmanager
def running_pool(folder: Path, url: str, count: int = 3) -> Iterator[PoolOfBrokers]:
    """Start `count` brokers at once, each on a folder of its own."""
    with ExitStack() as stack:
        (folder / "token").write_text(TOKEN)
        pool = PoolOfBrokers(folder, url, stack)
        pool.start(*range(count))
        yield pool
