"""The demo's broker: a real process in its own folder, ended by its own id, whatever happens."""

import os
import queue
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO

BANNER = re.compile(r"^ibrik \S+ .*\bhttp (\S+)\s+tcp (\S+)\s+admin (\S+)")
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
IBRIK = str(Path(sys.executable).with_name("ibrik"))


class BrokerFailed(Exception):
    """The broker did not start; the text says what it said."""


class BrokerProcess:
    """`ibrik serve` on free ports; a second start takes the ports of the first."""

    def __init__(self, folder: Path, **environ: str) -> None:
        """`environ`: variables for the broker, such as secrets."""
        self.data = folder / "data"
        self.log = folder / "broker.log"
        self.http_url = ""
        self.admin_url = ""
        self.started_s = 0.0
        self._environ = environ
        self._ports = ["0", "0", "0"]
        self._process: subprocess.Popen[str] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    def start(self) -> None:
        """Start it and wait until it serves."""
        began_s = time.monotonic()
        http, tcp, admin = self._ports
        command = [IBRIK, "serve", "--data", str(self.data), "--port", http]
        command += ["--tcp-port", tcp, "--admin-port", admin]
        with self.log.open("a") as log:
            self._process = subprocess.Popen(
                command,
                # Settings of the person's own shell are not the demo's.
                env={k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
                | self._environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,  # Ctrl-C is for the demo, which then ends its broker
            )
        addresses = self._wait_for_banner(self._process)
        self._ports = [address.rpartition(":")[2] for address in addresses]
        self.http_url, self.admin_url = f"http://{addresses[0]}", f"http://{addresses[2]}"
        self.started_s = time.monotonic() - began_s

    def kill(self) -> None:
        """As a crash would: no warning, no flush, no goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(STOP_TIMEOUT_S)

    def stop(self) -> int:
        """Ask it to end, then insist; its exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def clear(self) -> None:
        """Begin with an empty folder. Refuses while another broker serves it."""
        from ibrik_log.files import RealDisk
        from ibrik_log.volume import Volume

        if self.data.exists():
            Volume.open(RealDisk(), self.data).close()
            shutil.rmtree(self.data)
        self.log.unlink(missing_ok=True)

    def _wait_for_banner(self, process: "subprocess.Popen[str]") -> tuple[str, str, str]:
        assert process.stdout is not None
        lines: queue.Queue[str] = queue.Queue()

        def drain(stream: IO[str]) -> None:
            with stream:
                for line in stream:
                    lines.put(line)
            lines.put("")

        threading.Thread(target=drain, args=(process.stdout,), daemon=True).start()
        ends_s = time.monotonic() + START_TIMEOUT_S
        try:
            while line := lines.get(timeout=max(0.0, ends_s - time.monotonic())):
                if match := BANNER.match(line):
                    return match[1], match[2], match[3]
        except queue.Empty:
            pass
        self.kill()
        tail = self.log.read_text()[-2_000:]
        raise BrokerFailed(f"the broker did not start; {self.log} ends with:\n{tail}")
