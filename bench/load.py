"""Starts the load generators: the compiled one for line protocols, wrk for HTTP.

Without a C compiler an asyncio generator stands in; it is slower, so it says so in the row's note.
"""

import asyncio
import json
import re
import shutil
import statistics
import struct
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.framework import WORK_FOLDER, NotMeasured

SOURCE = Path(__file__).with_name("generator.c")
WRK_HINT = "needs wrk (Debian: apt-get install wrk)"
_WRK_UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


@dataclass(frozen=True, slots=True)
class Load:
    rate: float
    p50_ms: float
    p99_ms: float
    p999_ms: float
    replies: int
    bytes_per_second: float = 0.0


@dataclass(frozen=True, slots=True)
class Shape:
    """Connections, requests in flight on each, and for how long."""

    connections: int
    window: int
    seconds: float
    warm_up_seconds: float = 0.5


def compiled(source: Path, *, is_static: bool = False) -> Path | None:
    """A program of C, built when it is older than its source; None without a compiler.

    A static one runs in any container, too.
    """
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    WORK_FOLDER.mkdir(exist_ok=True)
    program = WORK_FOLDER / (f"{source.stem}-static" if is_static else source.stem)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        with tempfile.TemporaryDirectory(dir=WORK_FOLDER) as folder:
            built = Path(folder, source.stem)
            link = ["-static"] if is_static else []
            subprocess.run([compiler, "-O2", *link, "-o", built, source], check=True)
            built.replace(program)  # whole or not there: others may start it at this moment
    return program


def run_generator(
    port: int, requests: Sequence[bytes], shape: Shape, *, newlines_per_reply: int = 1
) -> Load:
    """Offer the requests to a line-acknowledged server; connection i sends request i % count."""
    program = compiled(SOURCE)
    if program is None:
        return asyncio.run(_generate(port, requests, shape, newlines_per_reply))
    with tempfile.NamedTemporaryFile(dir=WORK_FOLDER) as file:
        file.write(packed(requests))
        file.flush()
        arguments = generator_arguments("127.0.0.1", port, shape, newlines_per_reply, file.name)
        command = [str(program), *arguments]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return parse_generator(output)


def packed(requests: Sequence[bytes]) -> bytes:
    """The file of requests, as the compiled generator reads it."""
    return b"".join(struct.pack("<I", len(request)) + request for request in requests)


def generator_arguments(
    address: str, port: int, shape: Shape, newlines_per_reply: int, file: str
) -> list[str]:
    """What the compiled generator is started with; `file` holds what `packed` made."""
    warm_up_ms, measure_ms = round(shape.warm_up_seconds * 1000), round(shape.seconds * 1000)
    numbers = (port, shape.connections, shape.window, warm_up_ms, measure_ms, newlines_per_reply)
    return [address, *map(str, numbers), file]


def parse_generator(output: str) -> Load:
    """The line that the compiled generator ends with."""
    found = json.loads(output)
    assert found["errors"] == 0, f"{found['errors']} refusals under load"
    return Load(
        rate=found["replies"] / found["seconds"],
        p50_ms=found["p50_us"] / 1000,
        p99_ms=found["p99_us"] / 1000,
        p999_ms=found["p999_us"] / 1000,
        replies=found["replies"],
    )


async def _generate(
    port: int, requests: Sequence[bytes], shape: Shape, newlines_per_reply: int
) -> Load:
    latencies: list[float] = []
    refused: list[bytes] = []
    begin = time.perf_counter() + shape.warm_up_seconds
    end = begin + shape.seconds

    async def connection(request: bytes) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        sent_at = deque([time.perf_counter()] * shape.window)
        writer.write(request * shape.window)
        newlines = 0
        while (now := time.perf_counter()) < end:
            received = await reader.read(1 << 18)
            if received.startswith((b"ERR", b"-")):
                refused.append(received)
            newlines += received.count(b"\n")
            count, newlines = divmod(newlines, newlines_per_reply)
            answered = time.perf_counter()
            taken = [answered - sent_at.popleft() for _ in range(count)]
            if now >= begin:
                latencies.extend(taken)
            sent_at.extend([answered] * count)
            writer.write(request * count)
        writer.transport.abort()

    async with asyncio.TaskGroup() as group:
        for index in range(shape.connections):
            group.create_task(connection(requests[index % len(requests)]))
    assert not refused, f"{len(refused)} refusals under load"
    cuts = statistics.quantiles(latencies, n=1000)
    return Load(
        rate=len(latencies) / shape.seconds,
        p50_ms=cuts[499] * 1000,
        p99_ms=cuts[989] * 1000,
        p999_ms=cuts[998] * 1000,
        replies=len(latencies),
    )


def run_wrk(
    url: str,
    shape: Shape,
    *,
    method: str = "GET",
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> Load:
    """Offer one request over and over, one in flight a connection; any non-2xx is a failure."""
    wrk = shutil.which("wrk")
    if wrk is None:
        raise NotMeasured(WRK_HINT)
    with tempfile.TemporaryDirectory(dir=WORK_FOLDER) as folder:
        body_file = Path(folder, "body")
        body_file.write_bytes(body)
        script = Path(folder, "request.lua")
        script.write_text(
            f'wrk.method = "{method}"\n'
            f'local file = io.open("{body_file}", "rb"); local body = file:read("*a")\n'
            "if #body > 0 then wrk.body = body end\n"
            + "".join(f'wrk.headers["{k}"] = "{v}"\n' for k, v in (headers or {}).items())
        )
        command = [wrk, "--latency", "-t1", f"-c{shape.connections}", "-s", str(script)]
        if shape.warm_up_seconds:
            _wrk(command, shape.warm_up_seconds, url)
        output = _wrk(command, shape.seconds, url)
    return parse_wrk(output)


def _wrk(command: list[str], seconds: float, url: str) -> str:
    # wrk takes whole seconds only.
    timed = [*command, f"-d{max(1, round(seconds))}s", url]
    return subprocess.run(timed, check=True, capture_output=True, text=True).stdout


def parse_wrk(output: str) -> Load:
    if problem := re.search(r"(Non-2xx.*|Socket errors: .*)", output):
        raise RuntimeError(f"wrk: {problem.group(0)}")
    percentiles = {
        name: float(value) * _WRK_UNITS_MS[unit]
        for name, value, unit in re.findall(r"^\s+(\d+)%\s+([\d.]+)(us|ms|s)\s*$", output, re.M)
    }
    rate_found = re.search(r"Requests/sec:\s+([\d.]+)", output)
    transfer = re.search(r"Transfer/sec:\s+([\d.]+)([KMG]?)B", output)
    replies = re.search(r"(\d+) requests in", output)
    assert rate_found is not None, output
    assert transfer is not None, output
    assert replies is not None, output
    scale = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[transfer.group(2)]
    return Load(
        rate=float(rate_found.group(1)),
        p50_ms=percentiles["50"],
        p99_ms=percentiles["99"],
        p999_ms=float("nan"),
        replies=int(replies.group(1)),
        bytes_per_second=float(transfer.group(1)) * scale,
    )
