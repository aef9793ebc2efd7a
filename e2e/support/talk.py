"""Runs in a pod, beside the applications: publishes, reads, and counts what was acknowledged.

    talk.py publish URL TOPIC FIRST COUNT     each message is its number; prints their places
    talk.py batch URL TOPIC                   lines of its input are messages; prints their places
    talk.py read URL TOPIC PARTITIONS         prints every message that can be read
    talk.py probe URL TOPIC SECONDS           publishes all the time, retrying as a client does
    talk.py call METHOD URL [BODY]            one request; prints status (0: no answer) and body
    talk.py listen PORT                       answers 204 to everything and prints each body

Only the standard library: what a shell script with curl would do.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TIMEOUT_S = 10
RETRY_S = 0.2
GIVE_UP_S = 90
BATCH = 100


def request(
    method: str, url: str, body: bytes | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes]:
    asked = urllib.request.Request(url, data=body, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(asked, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def publish_one(url: str, topic: str, number: int) -> dict[str, object]:
    """Publish until it is acknowledged, with an id, so that a repeat is no second message."""
    headers = {"Idempotency-Key": f"n-{number}", "Ibrik-Key": str(number)}
    deadline = time.monotonic() + GIVE_UP_S
    pause = threading.Event()
    while True:
        try:
            status, answer = request(
                "POST", f"{url}/v1/topics/{topic}/messages", str(number).encode(), headers
            )
        except OSError as error:
            status, answer = 0, str(error).encode()
        if status in {200, 201}:  # 200: a repeat of what was acknowledged before.
            receipt: dict[str, object] = json.loads(answer)
            return receipt
        if time.monotonic() > deadline:
            raise SystemExit(f"message {number} was never acknowledged: {status} {answer!r}")
        pause.wait(RETRY_S)


def publish(url: str, topic: str, first: int, count: int) -> None:
    receipts = [publish_one(url, topic, number) for number in range(first, first + count)]
    print(json.dumps([[one["partition"], one["offset"]] for one in receipts]))


def publish_lines(url: str, topic: str) -> None:
    """As they are, many in a request."""
    events = sys.stdin.read().splitlines()
    places = []
    for first in range(0, len(events), BATCH):
        body = "\n".join(f'{{"value":{event}}}' for event in events[first : first + BATCH])
        headers = {"Content-Type": "application/x-ndjson"}
        status, answer = request("POST", f"{url}/v1/topics/{topic}/batch", body.encode(), headers)
        if status not in {200, 201}:
            raise SystemExit(f"{status} {answer!r}")
        places += [[one["partition"], one["offset"]] for one in json.loads(answer)["messages"]]
    print(json.dumps(places))


def probe(url: str, topic: str, seconds: float) -> None:
    """Publishes for so long and reads all the time; ends when all acknowledged is read."""
    end = time.monotonic() + seconds
    acknowledged: set[int] = set()
    reader = Reader(url, topic)
    slowest = 0.0
    while time.monotonic() < end:
        begun = time.monotonic()
        publish_one(url, topic, len(acknowledged))
        slowest = max(slowest, time.monotonic() - begun)
        acknowledged.add(len(acknowledged))
        reader.go_on()
    deadline = time.monotonic() + GIVE_UP_S
    while acknowledged - set(reader.seen) and time.monotonic() < deadline:
        reader.go_on()
    report = {
        "acknowledged": len(acknowledged),
        "lost": len(acknowledged - set(reader.seen)),
        "twice": len(reader.seen) - len(set(reader.seen)),
        "slowest_s": round(slowest, 3),
    }
    print(json.dumps(report))


class Reader:
    """Reads partition 0 on and on; what cannot be read now is read later."""

    def __init__(self, url: str, topic: str) -> None:
        self.place = f"{url}/v1/topics/{topic}/partitions/0/messages"
        self.offset = 0
        self.seen: list[int] = []

    def go_on(self) -> bool:
        """Whether there was something."""
        try:
            status, answer = request("GET", f"{self.place}?offset={self.offset}&max=1000")
        except OSError:
            return False
        if status != 200:
            return False
        document = json.loads(answer)
        self.offset = document["next_offset"]
        self.seen += [int(message["value"]) for message in document["messages"]]
        return bool(document["messages"])


def read(url: str, topic: str, partitions: int) -> None:
    found: list[object] = []
    for partition in range(partitions):
        place = f"{url}/v1/topics/{topic}/partitions/{partition}/messages"
        offset = 0
        while True:
            status, answer = request("GET", f"{place}?offset={offset}&max=1000")
            if status == 204:  # Nothing more.
                break
            if status != 200:
                raise SystemExit(f"{place}: {status} {answer!r}")
            document = json.loads(answer)
            offset = document["next_offset"]
            found += [message["value"] for message in document["messages"]]
    print(json.dumps(found))


def call(method: str, url: str, body: str = "") -> None:
    try:
        status, answer = request(method, url, body.encode() if body else None)
    except OSError as error:
        status, answer = 0, str(error).encode()
    print(json.dumps([status, answer.decode(errors="replace")]))


class Sink(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        print(body.decode(), flush=True)
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing: what is printed is what arrived."""


def main(verb: str, *arguments: str) -> None:
    match verb, arguments:
        case "publish", (url, topic, first, count):
            publish(url, topic, int(first), int(count))
        case "batch", (url, topic):
            publish_lines(url, topic)
        case "read", (url, topic, partitions):
            read(url, topic, int(partitions))
        case "probe", (url, topic, seconds):
            probe(url, topic, float(seconds))
        case "call", (method, url, *body):
            call(method, url, *body)
        case "listen", (port,):
            ThreadingHTTPServer(("", int(port)), Sink).serve_forever()
        case _:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
