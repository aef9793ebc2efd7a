"""Where the load runs: in a pod beside the brokers, and on the machine beside a container."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from bench.framework import NotMeasured, new_folder
from bench.ibrik import post
from bench.load import SOURCE, Load, Shape, compiled, generator_arguments, packed, parse_generator
from e2e.support.cluster import Cluster, run, until
from e2e.support.pods import pod, wait_ready
from e2e.support.resources import resource, topic

TOPIC, NAME = "bench", "ibrik-bench-cluster"
BODY = b"x" * 1024
PORT = 18_080
POD_FOLDER = "/load"
LOOK = Path(__file__).with_name("look.py")
FOREVER = ["python", "-c", "import signal; signal.pause()"]
PATIENCE_S = 120


class Seen(NamedTuple):
    lines: int
    """Of an answer to a message."""
    messages: int
    """Stored in the topic."""


@dataclass(frozen=True, slots=True)
class Place:
    """Somewhere a command can run, with the generator in a folder, and a broker it reaches."""

    shell: tuple[str, ...]
    """What comes before a command, so that it runs there."""
    python: str
    folder: str
    address: str
    port: int

    def look(self) -> Seen:
        where = (self.address, str(self.port), TOPIC)
        return Seen(**json.loads(self.run(self.python, "-", *where, stdin=LOOK.read_bytes())))

    def publish(self, shape: Shape) -> tuple[Load, int]:
        """Offer one message over and over; the load, and how many messages were stored by it."""
        before = self.look()
        arguments = generator_arguments(
            self.address, self.port, shape, before.lines, f"{self.folder}/request"
        )
        load = parse_generator(self.run(f"{self.folder}/generator", *arguments))
        return load, self.look().messages - before.messages

    def furnish(self) -> None:
        """Bring the generator and what it sends."""
        program = compiled(SOURCE, is_static=True)
        if program is None:
            raise NotMeasured("needs a C compiler (Debian: apt-get install gcc libc6-dev)")
        head = (
            f"POST /v1/topics/{TOPIC}/messages HTTP/1.1\r\nHost: {self.address}\r\n"
            f"Content-Length: {len(BODY)}\r\n\r\n"
        )
        files = {"request": packed([head.encode() + BODY]), "generator": program.read_bytes()}
        for name, content in files.items():
            path = f"{self.folder}/{name}"
            self.run("sh", "-c", f"cat > {path} && chmod 0755 {path}", stdin=content)

    def run(self, *command: str, stdin: bytes = b"") -> str:
        ended = subprocess.run(
            (*self.shell, *command),
            input=stdin,
            capture_output=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert ended.returncode == 0, f"{command}: {ended.stderr.decode()}"
        return ended.stdout.decode()


@contextmanager
def inside(cluster: Cluster) -> Iterator[Place]:
    """A pod, and the Service of a pool that came by itself."""
    namespace = cluster.new_namespace(NAME, restricted=True)
    load = pod("load", cluster.tag, FOREVER)
    load["spec"]["volumes"] = [{"name": "load", "emptyDir": {}}]
    load["spec"]["containers"][0]["volumeMounts"] = [{"name": "load", "mountPath": POD_FOLDER}]
    cluster.apply(load, topic(TOPIC), namespace=namespace)
    wait_ready(cluster, "load", namespace)
    cluster.wait_condition("topics.ibrik.dev", TOPIC, namespace, "Ready=True")
    service = cluster.find("service", "ibrik-default", namespace)
    assert service is not None
    shell = ("kubectl", f"--kubeconfig={cluster.kubeconfig}", "exec", "--stdin", "load")
    place = Place(
        (*shell, "--namespace", namespace, "--"),
        "python",
        POD_FOLDER,
        service["spec"]["clusterIP"],
        8080,
    )
    place.furnish()
    yield place
    cluster.delete_namespace(namespace)


@contextmanager
def outside(tag: str) -> Iterator[Place]:
    """A container of the same image on the machine's own network, and the machine."""
    run(
        "docker", "run", "--detach", "--rm", "--name", NAME, "--network", "host",
        "--env", f"IBRIK_HTTP__PORT={PORT}", "--env", "IBRIK_HTTP__HOST=127.0.0.1",
        "--env", "IBRIK_HTTP__OPEN_REGISTRATION=true", "--env", "IBRIK_TCP__PORT=0",
        "--env", "IBRIK_ADMIN__PORT=0", f"ibrik/broker:{tag}",
    )  # fmt: skip
    try:
        with new_folder() as folder:
            place = Place((), sys.executable, folder, "127.0.0.1", PORT)
            until("the container answers", lambda: _create_topic(place))
            place.furnish()
            yield place
    finally:
        run("docker", "rm", "--force", "--volumes", NAME)


def _create_topic(place: Place) -> bool:
    body = json.dumps(resource("Topic", TOPIC)).encode()
    try:
        post(f"http://{place.address}:{place.port}/v1/topics", body, "application/json")
    except OSError:
        return False
    return True
