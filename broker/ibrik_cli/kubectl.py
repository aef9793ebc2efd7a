"""The one door to a cluster: kubectl as a process of ours.

Whoever has a cluster has kubectl, and with it the plug-ins by which it signs in. What kubectl says
when it fails becomes one sentence with the next step. Secrets are read and never shown.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import signal
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from ibrik_api.kubernetes import (
    HTTP_PORT,
    admin_secret_name,
    object_name,
    pod_selector,
    selector_text,
)
from ibrik_cli.cluster import Cluster
from ibrik_cli.failures import Failure
from ibrik_cli.pods import is_ready, pod_state

PROGRAM = "kubectl"
ANSWER_WITHIN_S = 30.0
READY_WITHIN_S = 20.0
"""Until a port is forwarded, or was forwarded again after it broke."""
RESTART_PAUSE_S = 0.5
END_WITHIN_S = 5.0
FORWARDING = re.compile(r"^Forwarding from 127\.0\.0\.1:(\d+) ")
LOG_LINE = re.compile(r"^([EWI]\d{4} |Warning: )")
KEPT_LINES = 20
MAX_OUTPUT_LINE_BYTES = 1024 * 1024


async def run(cluster: Cluster, *arguments: str) -> str:
    """What kubectl prints. Raises Failure with a sentence for people."""
    process = await _start(cluster, *arguments, stderr=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(ANSWER_WITHIN_S):
            output, errors = await process.communicate()
    except TimeoutError as error:
        raise Failure(
            f"the API server of {cluster.text} did not answer within {ANSWER_WITHIN_S:.0f} s; "
            "check it with: kubectl get --raw /readyz"
        ) from error
    finally:
        await _end(process)
    if process.returncode:
        raise Failure(explain(errors.decode(errors="replace"), cluster))
    return output.decode(errors="replace")


def items_of(output: str) -> list[dict[str, Any]]:
    """The documents of `get --output=json`: none, one, or a list."""
    if not output.strip():
        return []
    document: dict[str, Any] = json.loads(output)
    if not str(document.get("kind", "List")).endswith("List"):
        return [document]
    items: list[dict[str, Any]] = document.get("items", [])
    return items


async def admin_token(cluster: Cluster) -> str:
    """The admin token of the pool, from its Secret; needs the right to read that."""
    name = admin_secret_name(cluster.pool)
    encoded = await run(cluster, "get", "secret", name, "--output=jsonpath={.data.current}")
    if not encoded:
        raise Failure(f"the Secret {name} has no key 'current'; is the operator running?")
    return base64.b64decode(encoded).decode().strip()


@asynccontextmanager
async def forwarded(
    cluster: Cluster, target: str = "", port: int = HTTP_PORT
) -> AsyncIterator[str]:
    """The address on this machine that leads to a port of the pool, as long as the block lasts.

    `target` is a pod or a service, the pool's own when empty. A forward that breaks is made again
    at the same address, so that a client which tries again finds the broker.
    """
    forward = Forward(cluster, target or f"service/{object_name(cluster.pool)}", port)
    try:
        await forward.start()
    except Failure as error:
        raise Failure(await _say_why(cluster, str(error))) from error
    tasks = asyncio.TaskGroup()
    await tasks.__aenter__()
    keeper = tasks.create_task(forward.keep())
    try:
        yield f"http://127.0.0.1:{forward.local_port}"
    finally:
        keeper.cancel()
        try:
            await tasks.__aexit__(None, None, None)
        finally:
            await forward.end()


class Forward:
    """One `kubectl port-forward`, and the next one when it breaks."""

    def __init__(self, cluster: Cluster, target: str, port: int) -> None:
        self.cluster = cluster
        self.target = target
        self.port = port
        self.local_port = 0
        self._process: asyncio.subprocess.Process | None = None
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)

    async def start(self) -> None:
        """Forward, to the same local port if there was one. Raises Failure."""
        local = self.local_port or ""
        self._process = process = await _start(
            self.cluster,
            "port-forward",
            "--address=127.0.0.1",
            f"--pod-running-timeout={READY_WITHIN_S / 2:.0f}s",
            self.target,
            f"{local}:{self.port}",
            stderr=asyncio.subprocess.STDOUT,
        )
        self._lines.clear()
        try:
            async with asyncio.timeout(READY_WITHIN_S):
                while line := await _line_of(process):
                    if found := FORWARDING.match(line):
                        self.local_port = int(found[1])
                        return
                    self._lines.append(line)
        except TimeoutError as error:
            await _end(process)
            raise Failure(f"kubectl port-forward {self.target} did not begin in time") from error
        await process.wait()
        raise Failure(explain("\n".join(self._lines), self.cluster))

    async def keep(self) -> None:
        """Read what it says, so that it never blocks, and start it again when it has ended.

        Gives up after a while without success; the client then says that nobody answers.
        """
        while True:
            assert self._process is not None
            while await _line_of(self._process):
                pass
            await self._process.wait()
            try:
                async with asyncio.timeout(READY_WITHIN_S):
                    await self._start_again()
            except TimeoutError:
                return

    async def end(self) -> None:
        if self._process is not None:
            await _end(self._process)

    async def _start_again(self) -> None:
        while True:
            try:
                await self.start()
            except Failure:
                await asyncio.sleep(RESTART_PAUSE_S)
            else:
                return


async def _start(cluster: Cluster, *arguments: str, stderr: int) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            PROGRAM,
            *cluster.flags,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=stderr,
            limit=MAX_OUTPUT_LINE_BYTES,
            # Ctrl-C is for us: what is printed is still acknowledged, through this forward.
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise Failure(
            "kubectl is not installed, or not on PATH: ibrik reaches a cluster through it. "
            "See https://kubernetes.io/docs/tasks/tools/"
        ) from error


async def _line_of(process: asyncio.subprocess.Process) -> str:
    """The next line with its end; empty at the end of the output."""
    assert process.stdout is not None
    return (await process.stdout.readline()).decode(errors="replace")


async def _end(process: asyncio.subprocess.Process) -> None:
    """End it if it still runs, and wait until it has."""
    _signal(process, signal.SIGTERM)
    try:
        async with asyncio.timeout(END_WITHIN_S):
            await process.wait()
    except TimeoutError:
        _signal(process, signal.SIGKILL)
        await process.wait()


def _signal(process: asyncio.subprocess.Process, number: signal.Signals) -> None:
    """Not `process.terminate()`: that looks for the exit code, which asyncio then waits for."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)


# --- what went wrong ------------------------------------------------------------------------------


async def _say_why(cluster: Cluster, text: str) -> str:
    """Why no port of a pool can be forwarded: kubectl often only says that it waited."""
    selector = selector_text(pod_selector(cluster.pool))
    try:
        await run(cluster, "get", "service", object_name(cluster.pool), "--output=name")
        pods = items_of(await run(cluster, "get", "pods", f"-l={selector}", "--output=json"))
    except Failure as error:
        return str(error)
    if any(is_ready(pod) for pod in pods):
        return text
    states = ", ".join(pod_state(pod) for pod in pods) or "it has no pods"
    return (
        f"no broker of pool '{cluster.pool}' can be reached: {states}. "
        f"See what is wrong with: {cluster.doctor}"
    )


def explain(errors: str, cluster: Cluster) -> str:
    """What kubectl wrote as one sentence with the next step."""
    # Lines such as `E1128 08:56:19.006 …` are kubectl's own log. Of several faults, each in a line
    # of its own, the first is enough.
    lines = [" ".join(line.split()) for line in errors.splitlines() if not LOG_LINE.match(line)]
    text = re.sub(r"^(error|Error[^:]*): ", "", next(filter(None, lines), ""))
    for pattern, sentence in _SENTENCES:
        if re.search(pattern, text):
            return sentence.format(
                context=cluster.context, pool=cluster.pool, where=cluster.text, text=text
            )
    return f"kubectl: {text or 'failed without a word'}"


_SENTENCES = (
    (
        r"context .*(does not exist|was not found)|no context exists",
        "there is no context '{context}' in your kubeconfig. "
        "List them with: kubectl config get-contexts",
    ),
    (
        r'services? "ibrik-[^"]*" not found|secrets "ibrik-[^"]*" not found',
        "there is no pool '{pool}' in this namespace. List the pools with: "
        "kubectl get brokerpools.ibrik.dev --all-namespaces; name one with --pool and --namespace",
    ),
    (
        r"doesn't have a resource type|could not find the requested resource",
        "Ibrik is not installed in the cluster of {where} ({text}). Install it with: helm install",
    ),
    (
        r"is forbidden",
        "you may not do that in the cluster of {where}: {text}. Ask whoever administers it",
    ),
    (
        r"Unauthorized|must be logged in|getting credentials",
        "the cluster of {where} does not know you ({text}). Sign in to it, then try again",
    ),
    (
        r"localhost:8080",
        "your kubeconfig names no cluster. Name one with --context (kubectl config get-contexts "
        "lists them), or a broker with --server",
    ),
    (
        r"connection to the server|Unable to connect|refused|no such host|i/o timeout",
        "the API server of {where} does not answer ({text}). "
        "Check the context with: kubectl config get-contexts",
    ),
)
