"""`make demo-shared`: 336,776 flights, four workers, two hard kills, every flight accounted for.

Runs the parts in order; `worker` is what each process does, `ledger` what it leaves, `accounts` the
ending. Ends by itself: 0 when every flight is accounted for, 1 when one is not, 130 on Ctrl-C.
"""

import argparse
import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import accounts
import ledger
from accounts import Accounts, Expected
from ledger import Ledger, Place
from quickstart import IBRIK, BrokerProcess, proof, run_demo, screen
from quickstart import flights as source

import ibrik_client

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".demo" / "shared-group"
PACKAGES = ROOT / ".demo" / "pkgs"
HERE = Path("examples/shared-group")
TOPIC, SUBSCRIPTION = "flights", "departures"
WORKERS = ("north", "east", "south", "west")
KILLED = ("north", "south")
"""One is killed after a third of the flights, the other after two thirds."""
LEASE_MOST = 1_000
FLIGHTS_LEAST = 2_000
"""With fewer, nobody could be killed in the middle."""
SHOW_EVERY = 500
LOOK_EVERY_S = 0.05
PATIENCE_S = 300.0


class Group:
    """The workers, by name."""

    def __init__(self, folder: Path, url: str, batch: int) -> None:
        self.paths = {name: folder / f"{name}.ledger" for name in WORKERS}
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        program = str(ROOT / HERE / "worker.py")
        for name, path in self.paths.items():
            path.unlink(missing_ok=True)
            command = [sys.executable, program, url, SUBSCRIPTION, name, str(path), str(batch)]
            self._processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, start_new_session=True
            )

    async def kill(self, name: str) -> int:
        """As a crash would, in the middle of a batch; its process id.

        It is stopped to look whether it is there, so that every run proves the same.
        """
        process = self._processes[name]
        ends_s = time.monotonic() + PATIENCE_S
        while not self._is_within(process, self.paths[name]):
            process.send_signal(signal.SIGCONT)
            proof.check(time.monotonic() < ends_s, f"the worker {name} never had work in hand")
            await asyncio.sleep(LOOK_EVERY_S / 10)
        process.kill()
        process.wait()
        return process.pid

    def _is_within(self, process: subprocess.Popen[bytes], path: Path) -> bool:
        """Stop the process; whether it has taken flights that it has not touched yet."""
        process.send_signal(signal.SIGSTOP)
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        proof.check(os.WIFSTOPPED(status), "a worker ended by itself")
        return ledger.read(path).untouched > 0

    def check(self) -> None:
        """Nobody ends but by the demo's hand."""
        for name, process in self._processes.items():
            proof.check(process.poll() in (None, -signal.SIGKILL), f"the worker {name} failed")

    def end(self) -> None:
        """Ask those that live to end, and wait for them."""
        for process in self._processes.values():
            process.terminate()
        for name, process in self._processes.items():
            code = process.wait(60)
            is_killed = name in KILLED and code == -signal.SIGKILL
            proof.check(code == 0 or is_killed, f"the worker {name} ended with exit code {code}")

    def close(self) -> None:
        for process in self._processes.values():
            process.kill()
            process.wait()


@contextmanager
def working(folder: Path, url: str, batch: int) -> Iterator[Group]:
    """Four workers, which end with the block, whatever happens."""
    group = Group(folder, url, batch)
    try:
        yield group
    finally:
        group.close()


def apply(broker: BrokerProcess) -> None:
    """As a person does it: the command line and the files."""
    command = [IBRIK, "apply", "-f", str(HERE), "--admin", broker.admin_url]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    screen.line(f"$ ibrik apply -f {HERE}")
    proof.check(done.returncode == 0, done.stderr.strip())
    for line in done.stdout.splitlines():
        screen.line(line)


async def publish(
    ibrik: ibrik_client.Client, flights: Sequence[source.Flight]
) -> dict[Place, Expected]:
    """Publish the flights, keyed by carrier; what has to be at each place."""
    screen.step(2, f"Publish {len(flights):,} flights, keyed by carrier")
    began_s = time.monotonic()
    futures: list[asyncio.Future[ibrik_client.Ack]] = []
    with screen.bar("publishing", len(flights)) as bar:
        async with ibrik.publisher(TOPIC) as publisher:
            for count, flight in enumerate(flights, 1):
                event = ibrik_client.RawJson(flight.event)
                futures.append(await publisher.send(event, key=flight.carrier))
                if count % SHOW_EVERY == 0:
                    bar.show(count - publisher.pending_records)
    seconds = time.monotonic() - began_s
    screen.line(f"acknowledged in {seconds:.1f} s: {len(flights) / seconds:,.0f}/s")
    acks = [future.result() for future in futures]
    return {
        (ack.partition, ack.offset): Expected(
            ledger.checksum_of(flight.event), flight.carrier, flight.distance
        )
        for flight, ack in zip(flights, acks, strict=True)
    }


async def consume(ibrik: ibrik_client.Client, group: Group, count: int) -> None:
    """Let the workers work, kill two of them in the middle, wait until nothing is left."""
    screen.step(3, f"{len(WORKERS)} workers share them; two are killed in the middle")
    began_s = time.monotonic()
    to_kill = [(count // 3, KILLED[0]), (count * 2 // 3, KILLED[1])]
    with screen.bar("working", count) as bar:
        while (backlog := (await ibrik.admin.lag(SUBSCRIPTION))["backlog"]) > 0:
            settled = count - backlog
            bar.show(settled)
            group.check()
            if to_kill and settled >= to_kill[0][0]:
                _, name = to_kill.pop(0)
                pid = await group.kill(name)
                screen.line(f"SIGKILL to {name}, process {pid}: {settled:,} acknowledged so far")
            is_patient = time.monotonic() - began_s < PATIENCE_S
            proof.check(is_patient, f"{backlog:,} flights are left after {PATIENCE_S:.0f} s")
            await asyncio.sleep(LOOK_EVERY_S)
    proof.check(not to_kill, "the flights were done before both workers were killed")
    seconds = time.monotonic() - began_s
    screen.line(
        f"everything acknowledged in {seconds:.1f} s; what the two had in hand came again after "
        "its deadline"
    )
    group.end()


def account(
    expected: dict[Place, Expected], ledgers: dict[str, Ledger], flights: Sequence[source.Flight]
) -> None:
    screen.step(4, "Account for every flight")
    found = accounts.settle(expected, ledgers, KILLED)
    table = screen.new_table("WORKER", "TOOK", "ACKNOWLEDGED", "IN HAND", "END")
    for name, each in ledgers.items():
        end = "SIGKILL" if name in KILLED else "exit 0"
        counts = each.took, len(each.acked), each.in_hand
        table.add_row(name, *(f"{number:,}" for number in counts), end)
    screen.console.print(table)
    show(found, len(flights))
    proof.check(not found.faults, "; ".join(found.faults))
    carriers = Counter(flight.carrier for flight in flights)
    proof.check(found.carriers == carriers, "the counts per carrier differ from the source")
    distance = sum(flight.distance for flight in flights)
    proof.check(found.distance == distance, f"{found.distance:,} miles, not {distance:,}")
    screen.good(
        f"{len(expected):,} flights, {len(carriers)} carriers, {distance:,} miles: each at least "
        "once, twice only what a killed worker had in hand"
    )


def show(found: Accounts, count: int) -> None:
    rows = (
        ("published", count, ""),
        ("done", found.carriers.total(), "each counted once"),
        ("in hand of the two", found.in_hand, "when they were killed"),
        ("handed out again", found.again, "to the others, after the deadline"),
        ("done twice", found.twice, "all of them in hand of the two"),
    )
    for what, number, remark in rows:
        screen.line(f"{what:<18} {number:>9,}   {remark}".rstrip())


async def demonstrate(broker: BrokerProcess, folder: Path, count: int | None) -> None:
    # A supervisor's SIGTERM unwinds like Ctrl-C does, so that the broker is ended as well.
    demonstration = asyncio.current_task()
    assert demonstration is not None, "a coroutine runs in a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, demonstration.cancel)
    screen.step(1, "Start a broker; apply topic and subscription")
    flights = source.read(source.fetch(ROOT / "requirements" / "demo.lock", PACKAGES))
    proof.check_source(flights)
    flights = flights[:count]
    broker.start()
    screen.line("$ ibrik serve")
    apply(broker)
    batch = min(LEASE_MOST, len(flights) // 100)
    async with ibrik_client.connect(broker.http_url) as ibrik:
        expected = await publish(ibrik, flights)
        with working(folder, broker.http_url, batch) as group:
            await consume(ibrik, group, len(flights))
            ledgers = {name: ledger.read(path) for name, path in group.paths.items()}
    account(expected, ledgers, flights)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where data and ledgers go")
    parser.add_argument("--flights", type=int, help="only the first so many")
    options = parser.parse_args()
    if options.flights is not None and options.flights < FLIGHTS_LEAST:
        parser.error(f"--flights is {FLIGHTS_LEAST:,} at least")
    folder: Path = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    broker = BrokerProcess(folder)
    return run_demo(
        broker,
        partial(demonstrate, broker, folder, options.flights),
        without_source="pip could not bring the flights",
    )


if __name__ == "__main__":
    sys.exit(main())
