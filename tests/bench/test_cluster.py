"""A place of the load sees what a broker answered and stored."""

import socket
import sys
from pathlib import Path

from bench.cluster.places import TOPIC, Place
from bench.ibrik import broker_with

REQUEST = f"POST /v1/topics/{TOPIC}/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx"


def test_a_look_publishes_one_message_and_counts_the_lines_of_its_answer(tmp_path: Path) -> None:
    with broker_with(tmp_path / "data", {TOPIC: {}}) as broker:
        address, port = broker.http_url.removeprefix("http://").split(":")
        place = Place((), sys.executable, str(tmp_path), address, int(port))
        looks = [place.look() for _ in range(3)]
        assert [look.messages for look in looks] == [1, 2, 3]
        with socket.create_connection((address, int(port)), timeout=10) as connection:
            connection.sendall(REQUEST.encode())
            answer = connection.makefile("rb")
            head = list(iter(answer.readline, b"\r\n"))
            size = next(int(line.split()[1]) for line in head if b"content-length" in line.lower())
            lines = len(head) + 1 + answer.read(size).count(b"\n")
        assert {look.lines for look in looks} == {lines}
