"""`make lake-demo`: 336,776 flights into a table, the job killed three times, every flight once.

Ends by itself: 0 when the table equals the source, 1 when it does not, 130 on Ctrl-C.
"""

import argparse
import asyncio
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
from deltalake import DeltaTable
from jobs import Jobs
from pyarrow.fs import LocalFileSystem, SubTreeFileSystem
from quickstart import IBRIK, BrokerProcess, proof, run_demo, screen
from quickstart import flights as source

import ibrik_client

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".demo" / "lake"
PACKAGES = ROOT / ".demo" / "pkgs"
TOPIC_FILE = ROOT / "examples" / "lake" / "topic.yaml"
TOPIC = "flights"
KILLS = 3
SHOW_EVERY = 500

Places = dict[tuple[int, int], bytes]


def apply_topic(broker: BrokerProcess) -> None:
    command = [IBRIK, "apply", "-f", str(TOPIC_FILE), "--admin", broker.admin_url]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    proof.check(done.returncode == 0, done.stderr.strip())
    screen.line(done.stdout.strip())


class Publishing:
    """Flights on their way, and where the broker says that each is."""

    def __init__(self, ibrik: ibrik_client.Client, bar: screen.Bar) -> None:
        self._ibrik = ibrik
        self._bar = bar
        self._sent: list[tuple[bytes, asyncio.Future[ibrik_client.Ack]]] = []

    async def publish(self, flights: Sequence[source.Flight]) -> None:
        async with self._ibrik.publisher(TOPIC) as publisher:
            for flight in flights:
                event = ibrik_client.RawJson(flight.event)
                sent = await publisher.send(event, key=flight.carrier)
                self._sent.append((flight.event, sent))
                if len(self._sent) % SHOW_EVERY == 0:
                    self._bar.show(len(self._sent) - publisher.pending_records)

    def places(self) -> Places:
        acks = [(event, sent.result()) for event, sent in self._sent]
        return {(ack.partition, ack.offset): event for event, ack in acks}


async def publish_and_archive(
    ibrik: ibrik_client.Client, jobs: Jobs, flights: Sequence[source.Flight]
) -> Places:
    """Publish in parts; beside each but the first a run, killed when it has written a file."""
    part = -(-len(flights) // (KILLS + 1))
    with screen.bar("publishing", len(flights)) as bar:
        publishing = Publishing(ibrik, bar)
        await publishing.publish(flights[:part])
        for number in range(1, KILLS + 1):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(jobs.run_and_kill())
                tasks.create_task(publishing.publish(flights[number * part : (number + 1) * part]))
    return publishing.places()


def compare(folder: Path, flights: Sequence[source.Flight], places: Places) -> None:
    """The table against the source: rows, places, counts, the sum of distances."""
    columns = ["partition", "offset", "value", "gap_to"]
    files = SubTreeFileSystem(str(folder), LocalFileSystem())
    table = DeltaTable(str(folder)).to_pyarrow_table(columns=columns, filesystem=files)
    rows = [table.column(name).to_pylist() for name in columns]
    proof.check(len(rows[0]) == len(flights), f"the table has {len(rows[0]):,} rows")
    proof.check(not any(rows[3]), "a gap was recorded")
    held = dict(zip(zip(rows[0], rows[1], strict=True), rows[2], strict=True))
    proof.check(held == places, "a flight is missing, changed or elsewhere")
    events = [msgspec.json.decode(value) for value in rows[2]]
    carriers = Counter(event["carrier"] for event in events)
    distance = sum(event["distance"] for event in events)
    expected = Counter(flight.carrier for flight in flights)
    proof.check(carriers == expected, "the counts per carrier differ from the source")
    proof.check(distance == sum(flight.distance for flight in flights), "another sum of distances")
    screen.carriers_table(carriers.most_common())
    screen.good(
        f"{len(rows[0]):,} flights, {len(carriers)} carriers, {distance:,} miles: "
        "the table equals the source, row by row"
    )


async def demonstrate(broker: BrokerProcess, lake: Path, most: int | None) -> None:
    # A supervisor's SIGTERM unwinds like Ctrl-C does, so that broker and jobs are ended as well.
    demonstration = asyncio.current_task()
    assert demonstration is not None, "a coroutine runs in a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, demonstration.cancel)
    screen.step(1, "Start a broker, and apply a topic that wishes to be archived")
    broker.start()
    apply_topic(broker)
    flights = source.read(source.fetch(ROOT / "requirements" / "demo.lock", PACKAGES))
    if most is None:
        proof.check_source(flights)
    flights = flights[:most]
    jobs = Jobs(broker, lake)
    async with ibrik_client.connect(broker.http_url, admin_url=broker.admin_url) as ibrik:
        screen.step(2, f"Publish {len(flights):,} flights, and archive them meanwhile")
        places = await publish_and_archive(ibrik, jobs, flights)
        proof.check(jobs.kills == KILLS, f"{jobs.kills} runs were killed, not {KILLS}")
        screen.line(f"{KILLS} runs killed, each when it had just written a file")
        screen.step(3, "A last run, which nobody disturbs")
        await jobs.run()
        view = await ibrik.admin.archive(TOPIC)
    proof.check(view["lag"] == 0, f"{view['lag']:,} messages are not archived")
    screen.step(4, "Compare the table with the source")
    compare(lake / view["topicId"], flights, places)


def main() -> int:
    parser = argparse.ArgumentParser(description="Archive the flights of 2013, with three kills.")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where broker and table are")
    parser.add_argument("--flights", type=int, default=None, help="only the first ones")
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(parents=True, exist_ok=True)
    lake = folder / "lake"
    shutil.rmtree(lake, ignore_errors=True)
    broker = BrokerProcess(folder)
    return run_demo(
        broker,
        partial(demonstrate, broker, lake, arguments.flights),
        without_source="pip could not bring the flights",
    )


if __name__ == "__main__":
    sys.exit(main())
