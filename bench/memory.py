"""Resident memory: of a broker with nothing to do, and of one whose disk does not answer."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path

from bench.framework import Bench, Row, new_folder
from bench.ibrik import broker_with, create_topic, pub_command, resident_bytes
from tests.support.broker import Broker, running_broker

IDLE_BAR = 120 * 2**20
TOPIC = "stuck"
PARTITIONS = 16
CONNECTIONS = 64
# What the settings and the topic allow to wait: the broker's limit of bytes in flight, and a fifth.
IN_FLIGHT = 128 * 2**20
GROWTH_BAR = IN_FLIGHT * 1.2


def measure(bench: Bench) -> list[Row]:
    return [_idle(), _stuck(bench)]


def _idle() -> Row:
    with new_folder() as name, broker_with(Path(name), {"idle": {}}) as broker:
        threading.Event().wait(2)
        resident = resident_bytes(broker.process.pid)
    row = Row("resident memory, idle", _mib(resident), values={"bytes": resident})
    return row.judged(f"≤ {_mib(IDLE_BAR)}", resident <= IDLE_BAR)


def _stuck(bench: Bench) -> Row:
    """The real program, whose door to the disk stops at a signal: no flush ends any more."""
    seconds = bench.scaled(20, 5)
    command = (sys.executable, "-m", "bench.stuck_disk")
    with new_folder() as name, running_broker(Path(name), command) as broker:
        create_topic(broker, TOPIC, {"partitions": PARTITIONS})
        before = resident_bytes(broker.process.pid)
        os.kill(broker.process.pid, signal.SIGUSR1)
        most = _offer(broker, seconds)
        broker.kill()
    growth = most - before
    return Row(
        f"growth in {seconds} s under a stuck disk, {CONNECTIONS} connections at full load",
        _mib(growth),
        f"limits.in_flight_bytes {_mib(IN_FLIGHT)}",
        values={"bytes": growth, "before_bytes": before},
    ).judged(f"≤ {_mib(int(GROWTH_BAR))}", growth <= GROWTH_BAR)


def _offer(broker: Broker, seconds: int) -> int:
    """Push commands into every connection as far as the broker reads; the most it held."""
    blocks = [pub_command(f"{TOPIC}/{index}", b"x" * 1000) * 64 for index in range(PARTITIONS)]
    blocks *= CONNECTIONS // PARTITIONS
    left = list(blocks)
    sockets = [socket.create_connection(broker.tcp_address) for _ in blocks]
    most = 0
    for connection in sockets:
        connection.setblocking(False)
    for _ in range(seconds * 20):
        for index, connection in enumerate(sockets):
            left[index] = _push(connection, left[index], blocks[index])
        most = max(most, resident_bytes(broker.process.pid))
        threading.Event().wait(0.05)
    for connection in sockets:
        connection.close()
    return most


def _push(connection: socket.socket, left: bytes, block: bytes) -> bytes:
    """Send until the socket takes no more; what is left of the last block, to keep the framing."""
    try:
        while True:
            sent = connection.send(left)
            left = left[sent:] or block
    except BlockingIOError:
        return left


def _mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:,.0f} MiB"
