"""The broker program: what it says at the start, what stops it, how it ends. Real processes."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from ibrik_broker.telemetry.metrics import METRICS
from tests.support.broker import COMMAND, FREE_PORTS, START_TIMEOUT_S, Broker, running_broker

pytestmark = pytest.mark.slow

PATIENCE_S = 20.0


def start(folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a broker that is expected to end by itself."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    settings = {"IBRIK_DATA": str(folder / "data")} | FREE_PORTS | env
    return subprocess.run(
        COMMAND,
        env=inherited | settings,
        capture_output=True,
        text=True,
        timeout=START_TIMEOUT_S,
        check=False,
    )


def refusal(folder: Path, **env: str) -> str:
    ended = start(folder, **env)
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.count("\n") == 1, "one sentence, no trace"
    return ended.stderr.removeprefix("error: ").strip()


def exchange(address: tuple[str, int], stream: bytes) -> bytes:
    with socket.create_connection(address, timeout=START_TIMEOUT_S) as connection:
        connection.sendall(stream)
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        while received := connection.recv(65_536):
            answer += received
        return answer


def log_lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_first_line_names_the_doors_and_their_real_ports(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        assert broker.banner.startswith(f"ibrik 0.1.0  data {tmp_path / 'data'}  http 127.0.0.1:")
        assert broker.banner.endswith(f"docs {broker.http_url}/docs")
        assert exchange(broker.tcp_address, b"PING\r\n") == b"PONG\r\n"


def test_what_was_acknowledged_is_there_after_a_stop_and_after_a_kill(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_DEV="true") as broker:
        assert exchange(broker.tcp_address, b"PUB orders 5\r\nfirst") == b"OK 0\r\n"
        assert broker.terminate() == 0
    with running_broker(tmp_path) as broker:
        assert exchange(broker.tcp_address, b"PUB orders 6\r\nsecond") == b"OK 1\r\n"
        broker.kill()
    with running_broker(tmp_path) as broker:
        answer = exchange(broker.tcp_address, b"FETCH orders 0\r\nFETCH orders 1\r\n")
        assert answer == b"MSG 0 5\r\nfirst\r\nMSG 1 6\r\nsecond\r\n"


def test_the_log_is_one_json_object_a_line_and_holds_no_payload(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_DEV="true") as broker:
        exchange(broker.tcp_address, b"PUB orders 6\r\nsecret")
        broker.terminate()
    messages = [line["message"] for line in log_lines(broker.errors)]
    assert messages[0] == "broker ready"
    assert messages[-1] == "broker stopped"
    assert "secret" not in broker.errors.read_text()


def test_a_second_broker_on_the_same_folder_is_refused_with_the_first_ones_pid(
    tmp_path: Path,
) -> None:
    with running_broker(tmp_path) as broker:
        said = refusal(tmp_path)
        assert said == (
            f"{broker.data} is in use by process {broker.process.pid}. "
            "Choose another folder with --data, or stop that broker."
        )
        assert exchange(broker.tcp_address, b"PING\r\n") == b"PONG\r\n"


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refusal(tmp_path, IBRIK_TCP__PORT=str(port))
        assert said.startswith(f"cannot listen on 127.0.0.1:{port} (Address already in use).")
        assert "choose another port" in said


def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    said = refusal(tmp_path, IBRIK_HTTP__HOST="192.0.2.1")
    assert said.startswith("cannot listen on 192.0.2.1:0 (")


def test_a_data_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = refusal(tmp_path, IBRIK_DATA=str(tmp_path / "file" / "data"))
    assert str(tmp_path / "file" / "data") in said


def test_a_folder_with_a_foreign_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "thesis.tex").write_text("years of work")
    assert "thesis.tex" in refusal(tmp_path)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["thesis.tex"]


def test_a_folder_of_another_format_is_left_alone(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        broker.terminate()
    (tmp_path / "data" / "FORMAT").write_text("ibrik 999\n")
    assert "ibrik 999" in refusal(tmp_path)


def test_an_unknown_setting_stops_the_start_with_the_nearest_name(tmp_path: Path) -> None:
    assert refusal(tmp_path, IBRIK_LOG__SEGMENT_BYTE="1") == (
        "unknown setting IBRIK_LOG__SEGMENT_BYTE (did you mean IBRIK_LOG__SEGMENT_BYTES?)"
    )


def test_an_unreachable_database_stops_the_start_without_its_password(tmp_path: Path) -> None:
    url = "postgresql+asyncpg://ibrik:hunter2@127.0.0.1:1/ibrik"
    said = refusal(tmp_path, IBRIK_METADATA__URL=url)
    assert "database" in said
    assert "hunter2" not in said


def test_the_tcp_door_can_stay_closed(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        # Were it opened, the taken port would stop the start.
        ended = start_and_stop(tmp_path, IBRIK_TCP__ENABLED="false", IBRIK_TCP__PORT=port)
        assert "  tcp off  " in ended


def start_and_stop(folder: Path, **env: str) -> str:
    """The first line of a broker that is stopped right after it."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    settings = {"IBRIK_DATA": str(folder / "data")} | FREE_PORTS | env
    with subprocess.Popen(
        COMMAND, env=inherited | settings, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        banner = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(START_TIMEOUT_S) == 0
        return banner


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_right_after_the_banner_ends_it_in_order(
    tmp_path: Path, number: signal.Signals
) -> None:
    with running_broker(tmp_path) as broker:
        broker.process.send_signal(number)
        assert broker.process.wait(START_TIMEOUT_S) == 0


def test_every_declared_metric_is_exposed(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_DEV="true") as broker:
        exchange(broker.tcp_address, b"PUB orders 1\r\nxFETCH orders 0\r\nFETCH orders 9\r\n")
        with urllib.request.urlopen(f"{broker.admin_url}/readyz") as answer:
            assert answer.status == 200
        desire(
            broker,
            resource("Topic", "copies", archive={"enabled": True}),
            resource("Channel", "denied", http={"url": "http://169.254.169.254/latest"}),
            pushing("to-denied", channelRef={"name": "denied"}),
            pushing("to-copies", push={"topic": {"name": "copies"}}),
        )
        declared = {spec.name for spec in METRICS}
        deadline = time.monotonic() + PATIENCE_S
        while (found := exposed(broker)) != declared and time.monotonic() < deadline:
            pass  # what is pushed takes a moment
    assert found == declared


def resource(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def pushing(name: str, **destination: Any) -> dict[str, Any]:
    return resource("Subscription", name, topicRef={"name": "orders"}, mode="push", **destination)


def desire(broker: Broker, *resources: dict[str, Any]) -> None:
    request = urllib.request.Request(
        f"{broker.admin_url}/admin/v1/desired",
        json.dumps({"resources": resources}).encode(),
        {"Content-Type": "application/json"},
        method="PUT",
    )
    with urllib.request.urlopen(request) as answer:
        results = json.load(answer)["results"]
    assert [result["result"] for result in results] == ["applied"] * len(resources)


def exposed(broker: Broker) -> set[str]:
    """The families that have samples."""
    with urllib.request.urlopen(f"{broker.admin_url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return {line.split()[2] for line in lines if line.startswith("# TYPE")}


def test_a_segment_rolls_at_the_size_that_the_setting_allows(tmp_path: Path) -> None:
    with running_broker(tmp_path, IBRIK_DEV="true", IBRIK_LOG__SEGMENT_BYTES="64Ki") as broker:
        message = b"PUB orders 30000\r\n" + b"x" * 30_000
        for _ in range(10):
            exchange(broker.tcp_address, message)
        segments = list(broker.data.glob("topics/*/0/*.log"))
        assert len(segments) >= 4
