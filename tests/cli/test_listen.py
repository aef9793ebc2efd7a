"""`ibrik listen` as a process, with real requests: signed right, signed wrong, too large."""

import base64
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from ibrik_api.signatures import parse_secrets, sign
from ibrik_cli.listening import Counts, arrival_document, arrival_line
from tests.cli.conftest import IBRIK

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
OTHER = "whsec_" + base64.b64encode(bytes(32)).decode()
PLACE = {
    "Ibrik-Topic": "orders",
    "Ibrik-Partition": "0",
    "Ibrik-Offset": "17",
    "Ibrik-Subscription": "billing",
    "Ibrik-Attempt": "2",
    "Ibrik-Key": "customer%207",
    "ce-type": "order.paid",
}


@dataclass
class Listener:
    process: subprocess.Popen[str]
    url: str

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def post(self, body: bytes, headers: Mapping[str, str] = {}, method: str = "POST") -> int:
        request = urllib.request.Request(
            f"{self.url}/hook?token=private", data=body, headers=dict(headers), method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                return int(response.status)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code

    def end(self) -> str:
        """Ctrl-C; what it says in the end."""
        self.process.send_signal(signal.SIGINT)
        _, errors = self.process.communicate(timeout=10)
        assert self.process.returncode == 0
        return errors


@contextmanager
def listening(*options: str, **environment: str) -> Iterator[Listener]:
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    process = subprocess.Popen(
        [IBRIK, "listen", "0", *options],
        env=inherited | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        first = process.stderr if "json" in options else process.stdout
        assert first is not None
        said = first.readline()
        assert said.startswith("listening on http://127.0.0.1:")
        yield Listener(process, said.split()[-1])
    finally:
        process.kill()
        process.communicate()


def signed(secret: str, body: bytes, at_s: float) -> dict[str, str]:
    timestamp_s = int(at_s)
    return {
        "webhook-id": "m-1",
        "webhook-timestamp": str(timestamp_s),
        "webhook-signature": sign(parse_secrets(secret), "m-1", timestamp_s, body),
    }


def test_what_arrives_is_a_line(tmp_path: Path) -> None:
    with listening() as listener:
        assert listener.post(b'{"order_id":101}', PLACE, "PUT") == 200
        cells = listener.line().rstrip("\n").split("  ")
        assert cells[1:] == [
            "200",
            "orders/0/17",
            "billing",
            "attempt 2",
            "order.paid",
            "key=customer 7",
            '{"order_id":101}',
        ]
        assert listener.post(b"plain") == 200
        line = listener.line()
        assert line.endswith("  200  POST /hook  plain\n")
        assert "private" not in line
        assert listener.end() == "2 requests: 2 accepted, 0 refused\n"


def test_signatures_are_checked(tmp_path: Path) -> None:
    secret = tmp_path / "billing.secret"
    secret.write_text(f"{SECRET}\n")
    body, now_s = b'{"paid":true}', time.time()
    with listening("--verify", "--secret-file", str(secret)) as listener:
        assert listener.post(body, signed(SECRET, body, now_s)) == 200
        assert "  200  POST /hook  signature ok  " in listener.line()
        assert listener.post(body, signed(OTHER, body, now_s)) == 401
        assert "  401  POST /hook  signature wrong  " in listener.line()
        assert listener.post(b'{"paid":false}', signed(SECRET, body, now_s)) == 401
        assert "signature wrong" in listener.line()
        assert listener.post(body, signed(SECRET, body, now_s - 3_600)) == 401
        assert "signature wrong" in listener.line()
        assert listener.post(body) == 401
        assert "signature missing" in listener.line()
        assert listener.end() == (
            "5 requests: 1 accepted, 4 refused, 4 with a signature that is wrong or missing\n"
        )


def test_the_secret_may_come_from_the_environment() -> None:
    body = b"x"
    with listening("--secret-env", "IBRIK_SECRET_HOOK", IBRIK_SECRET_HOOK=SECRET) as listener:
        assert listener.post(body, signed(SECRET, body, time.time())) == 200


def test_large_bodies_are_refused_whether_they_say_their_size_or_not() -> None:
    with listening("--max-body", "1Ki", "--output", "json") as listener:
        assert listener.post(b"x" * 1_025) == 413
        refused = json.loads(listener.line())
        assert (refused["status"], "body" in refused) == (413, False)
        chunked = {"Transfer-Encoding": "chunked"}
        assert listener.post(b"401\r\n" + b"x" * 1_025 + b"\r\n0\r\n\r\n", chunked) == 413
        assert json.loads(listener.line())["status"] == 413
        assert listener.post(b"x" * 1_024) == 200
        taken = json.loads(listener.line())
        assert (taken["size_bytes"], len(taken["body"])) == (1_024, 200)
        assert "2 too large" in listener.end()


def test_failures_come_as_asked_for() -> None:
    with listening("--fail-every", "2", "--status", "202", "--delay", "1ms") as listener:
        assert [listener.post(b"x") for _ in range(4)] == [202, 503, 202, 503]
        assert listener.end() == "4 requests: 2 accepted, 2 refused\n"


def test_a_secret_that_is_none_is_refused_by_its_file(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("plain\n")
    done = subprocess.run(
        [IBRIK, "listen", "0", "--secret-file", "s"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr == "error: s: line 1 does not begin with whsec_\n"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"\x1b[2J", "\\x1b[2J"),
        (b"\xff\xfe", "base64://4="),
        (b"x" * 199 + "ü".encode(), "x" * 199 + "…"),
        (b"", ""),
    ],
)
def test_a_body_cannot_drive_the_terminal(body: bytes, shown: str) -> None:
    document = arrival_document({}, "POST /\x1b", body, 0) | {"status": 200}
    assert arrival_line(document) == f"00:00:00.000  200  POST /\\x1b  {shown}"


def test_the_end_counts() -> None:
    assert Counts(requests=1, accepted=1).text() == "1 request: 1 accepted, 0 refused"
    assert Counts(requests=1_000, accepted=1, too_large=3).text() == (
        "1,000 requests: 1 accepted, 999 refused, 3 too large"
    )
