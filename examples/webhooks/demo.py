"""`make demo-webhooks`: 329 real webhooks, four endpoints of which three are in trouble.

Runs the parts in order; `payloads` has the source, `sinks` the endpoints, `expectations` the
checks. Ends by itself: 0 when every count was right, 1 when one was not, 130 on Ctrl-C.
"""

import argparse
import asyncio
import base64
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

import expectations
import payloads as source
from expectations import Figures, Row
from payloads import Payload
from quickstart import IBRIK, BrokerProcess, proof, run_demo, screen
from sinks import Sinks, listening, takes

import ibrik_client

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".demo" / "webhooks"
PACKAGES = ROOT / ".demo" / "pkgs"
LOCK_FILE = ROOT / "requirements" / "node.lock"
HERE = Path("examples/webhooks")
TOPIC, DEAD_LETTERS = "github", "github.hanging.dlq"
SECRET_VARIABLE = "IBRIK_SECRET_GITHUB"
PATIENCE_S = 40.0
LOOK_EVERY_S = 0.05


def run_ibrik(*arguments: str, url: Sequence[str]) -> None:
    """As a person does it: the command line."""
    done = subprocess.run(
        [IBRIK, *arguments, *url], cwd=ROOT, text=True, capture_output=True, check=False
    )
    screen.line(f"$ ibrik {' '.join(arguments)}")
    proof.check(done.returncode == 0, done.stderr.strip())
    for line in done.stdout.splitlines():
        screen.line(line)


async def until(what: str, is_so: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that has to happen."""
    ends_s = time.monotonic() + PATIENCE_S
    while not await is_so():
        proof.check(time.monotonic() < ends_s, f"{what}: not within {PATIENCE_S:.0f} s")
        await asyncio.sleep(LOOK_EVERY_S)


async def publish(ibrik: ibrik_client.Client, payloads: Sequence[Payload]) -> None:
    """Each payload as a CloudEvent in binary mode: its bytes, with attributes beside them."""
    screen.step(3, f"Publish {len(payloads)} webhooks as CloudEvents")
    began_s = time.monotonic()
    for payload in payloads:
        attributes = {
            "ce-specversion": "1.0",
            "ce-id": payload.id,
            "ce-source": payload.source,
            "ce-type": f"github.{payload.event}",
        }
        if payload.action is not None:
            attributes["ce-action"] = payload.action
        body = ibrik_client.RawJson(payload.body)
        await ibrik.publish(TOPIC, body, headers=attributes, id=payload.id)
    seconds = time.monotonic() - began_s
    size_mb = sum(len(payload.body) for payload in payloads) / 1e6
    events = len({payload.event for payload in payloads})
    screen.line(
        f"acknowledged {len(payloads)} of {events} types in {seconds:.1f} s, {size_mb:.1f} MB, one "
        "request each"
    )


async def deliver(ibrik: ibrik_client.Client, wanted: dict[str, list[Payload]]) -> None:
    """Wait until three subscriptions are done, and the fourth has stopped."""
    screen.step(4, "Four endpoints: one is well, one fails, one hangs, one is gone")

    def is_done(name: str) -> Callable[[], Awaitable[bool]]:
        async def look() -> bool:
            return bool((await ibrik.admin.lag(name))["backlog"] == 0)

        return look

    async def has_stopped() -> bool:
        return bool((await ibrik.admin.channel_stats("gone"))["circuit"] == "gone")

    for name in ("pulls", "issues", "hanging"):
        await until(f"the backlog of {name} is empty", is_done(name))
    await until("the channel gone has stopped", has_stopped)
    backlog = (await ibrik.admin.lag("gone"))["backlog"]
    kept = len(wanted["gone"])
    proof.check(backlog >= kept, f"gone has a backlog of {backlog}, less than the {kept} it wants")
    screen.line("pulls    took everything at the first attempt")
    screen.line("issues   answered 503 to every odd attempt; strict order held all the same")
    screen.line("hanging  never answered; after two attempts of 1 s each its messages are dead")
    screen.line(f"gone     answered 410 once: the channel stopped, all of its {kept} messages wait")


async def bring_back(ibrik: ibrik_client.Client, broker: BrokerProcess, sinks: Sinks) -> None:
    """The endpoint that was gone is back; a person says so."""
    screen.step(5, "The endpoint that was gone comes back")
    attempts = sinks.gone.attempts.total()
    proof.check(attempts == 1, f"the endpoint that was gone was called {attempts} times, not once")
    sinks.gone.behaviour = takes
    await asyncio.to_thread(
        run_ibrik, "channel", "resume", "gone", url=("--server", broker.http_url)
    )

    async def is_done() -> bool:
        return bool((await ibrik.admin.lag("gone"))["backlog"] == 0)

    await until("the backlog of gone is empty", is_done)


async def look(
    ibrik: ibrik_client.Client, sinks: Sinks, wanted: dict[str, list[Payload]]
) -> list[Row]:
    """The figures of the broker and its sinks, beside those of the source."""
    rows = []
    for name, payloads in wanted.items():
        sink = sinks.by_name[name]
        stats = await ibrik.admin.channel_stats(name)
        history = await ibrik.admin.channel_attempts(name, limit=1_000)
        status = (await ibrik.admin.subscription(name))["status"]
        dead = status["deadLettered"]
        found = Figures(len(sink.taken), sink.attempts.total(), len(history), dead)
        told = Figures(stats["delivered"], stats["delivered"] + stats["failed"], len(history), dead)
        proof.check(told == found, f"{name}: the broker counted {told}, its sink {found}")
        rows.append(Row(name, expectations.expected(name, len(payloads)), found))
    return rows


async def compare(
    ibrik: ibrik_client.Client, sinks: Sinks, wanted: dict[str, list[Payload]]
) -> None:
    screen.step(6, "Compare with the source: what was found, and what had to be")
    rows = await look(ibrik, sinks, wanted)
    table = screen.new_table("SUBSCRIPTION", *(name.upper() for name in Figures._fields))
    for row in rows:
        pairs = zip(row.found, row.expected, strict=True)
        table.add_row(row.name, *(f"{found} / {expected}" for found, expected in pairs))
    screen.console.print(table)
    for row in rows:
        proof.check(row.found == row.expected, f"{row.name} differs from the source")
    for name, payloads in wanted.items():
        expectations.check_sink(name, sinks.by_name[name], [] if name == "hanging" else payloads)
    letters = [message async for message in ibrik.scan(DEAD_LETTERS, 0, 0)]
    expectations.check_dead_letters(letters, wanted["hanging"])
    total = sum(row.found.delivered for row in rows)
    screen.good(
        f"{total} deliveries, each signed, each exactly once, byte for byte; {len(letters)} dead "
        f"letters in {DEAD_LETTERS}, with the reason"
    )


async def demonstrate(broker: BrokerProcess, secret: str) -> None:
    # A supervisor's SIGTERM unwinds like Ctrl-C does, so that the broker is ended as well.
    demonstration = asyncio.current_task()
    assert demonstration is not None, "a coroutine runs in a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, demonstration.cancel)
    screen.step(1, "Fetch the webhooks that GitHub's integrators test with")
    payloads = source.read(source.fetch(LOCK_FILE, PACKAGES))
    wanted = expectations.wanted(payloads)
    screen.line(f"{source.PACKAGE} {source.VERSION}: {len(payloads)} payloads")
    screen.step(2, "Start a broker and four endpoints; apply topic, channels, subscriptions")
    broker.start()
    screen.line(f"$ {SECRET_VARIABLE}=whsec_… ibrik serve")
    async with (
        listening(secret) as sinks,
        ibrik_client.connect(broker.http_url) as ibrik,
    ):
        admin = ("--admin", broker.admin_url)
        await asyncio.to_thread(run_ibrik, "apply", "-f", str(HERE), url=admin)
        await publish(ibrik, payloads)
        await deliver(ibrik, wanted)
        await bring_back(ibrik, broker, sinks)
        await compare(ibrik, sinks, wanted)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the broker keeps data")
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    secret = "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()
    broker = BrokerProcess(folder, **{SECRET_VARIABLE: secret})
    return run_demo(
        broker,
        partial(demonstrate, broker, secret),
        without_source="npm could not bring the webhooks",
        foreseen=(source.WrongArchive, OSError),
    )


if __name__ == "__main__":
    sys.exit(main())
