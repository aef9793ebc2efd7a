"""`make demo`: a broker, 336,776 real flights, a hard kill, and proof that nothing was lost.

Runs the parts in order; `flights` has the source, `process` the broker, `proof` the checks,
`screen` the output. Ends by itself: 0 when every check held, 1 when one did not, 130 on Ctrl-C.
"""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import flights as source
import proof
import screen
from ending import run_demo
from flights import Flight
from process import IBRIK, BrokerProcess

import ibrik_client

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".demo"
TOPIC_FILE = Path("examples/quickstart/topic.yaml")
TOPIC = "flights"
AGAIN = 100_000
"""Flights of the second publish, which the kill interrupts."""
KILL_AFTER = 30_000
SHOW_EVERY = 500
PATIENCE = ibrik_client.RetryPolicy(deadline_s=60)


async def publish(
    ibrik: ibrik_client.Client,
    flights: Sequence[Flight],
    label: str,
    futures: list[asyncio.Future[ibrik_client.Ack]],
    milestone: asyncio.Event | None = None,
) -> float:
    """Publish the events in order, keyed by carrier; the seconds it took.

    `futures` grows; `milestone` is set at the acknowledgement of event KILL_AFTER.
    """
    began_s = time.monotonic()
    with screen.bar(label, len(flights)) as bar:
        async with ibrik.publisher(TOPIC) as publisher:
            for count, flight in enumerate(flights, 1):
                event = ibrik_client.RawJson(flight.event)
                futures.append(await publisher.send(event, key=flight.carrier))
                if count == KILL_AFTER and milestone is not None:
                    futures[-1].add_done_callback(lambda _: milestone.set())
                if count % SHOW_EVERY == 0:
                    bar.show(count - publisher.pending_records)
    return time.monotonic() - began_s


def apply_topic(broker: BrokerProcess) -> None:
    """As a person does it: the command line and the file."""
    command = [IBRIK, "apply", "-f", str(TOPIC_FILE), "--admin", broker.admin_url]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    screen.line(f"$ ibrik apply -f {TOPIC_FILE}")
    proof.check(done.returncode == 0, done.stderr.strip())
    screen.line(done.stdout.strip())


async def publish_all(ibrik: ibrik_client.Client, flights: Sequence[Flight]) -> proof.ReadBack:
    """The first publish, read back and checked."""
    screen.step(3, f"Publish {len(flights):,} flights, one JSON event each, keyed by carrier")
    carriers = proof.check_source(flights)
    futures: list[asyncio.Future[ibrik_client.Ack]] = []
    seconds = await publish(ibrik, flights, "publishing", futures)
    size_mb = sum(len(flight.event) for flight in flights) / 1e6
    screen.line(
        f"acknowledged {len(futures):,} in {seconds:.1f} s: {len(futures) / seconds:,.0f}/s, "
        f"{size_mb / seconds:.1f} MB/s, each flushed to the disk before its acknowledgement"
    )
    screen.step(4, "Read them back and compare with the source")
    began_s = time.monotonic()
    found = await proof.read_back(ibrik, TOPIC)
    seconds = time.monotonic() - began_s
    acks = [future.result() for future in futures]
    proof.check_acknowledged(found, flights, acks)
    proof.check_order(acks)
    proof.check(found.carriers == carriers, "the counts per carrier differ from the source")
    proof.check(found.distance == proof.DISTANCE, "the distances add up to another sum")
    count = len(found.values)
    screen.line(f"read {count:,} in {seconds:.1f} s: {count / seconds:,.0f}/s")
    screen.offsets_table(found.ranges)
    screen.carriers_table(found.carriers.most_common())
    screen.good(
        f"{len(found.carriers)} carriers, {len(found.values):,} flights, {found.distance:,} miles: "
        "equal to the source, event by event"
    )
    return found


async def kill_and_prove(
    ibrik: ibrik_client.Client,
    broker: BrokerProcess,
    flights: Sequence[Flight],
    first: proof.ReadBack,
) -> None:
    """A second publish, a SIGKILL in its middle, a restart; then the log against the promises."""
    screen.step(5, f"Publish {len(flights):,} of them again, and kill the broker in the middle")
    futures: list[asyncio.Future[ibrik_client.Ack]] = []
    async with asyncio.TaskGroup() as tasks:
        in_the_middle = asyncio.Event()
        tasks.create_task(publish(ibrik, flights, "publishing again", futures, in_the_middle))
        await in_the_middle.wait()
        killed_pid = broker.pid
        broker.kill()
        acknowledged = [f.result() for f in futures if f.done()]
        screen.line(
            f"SIGKILL to process {killed_pid}: {len(acknowledged):,} acknowledged, "
            f"{len(futures) - len(acknowledged):,} under way"
        )
        await asyncio.to_thread(broker.start)
        screen.line(f"started again in {broker.started_s:.1f} s; the client goes on by itself")
    starts = {partition: end for partition, (_, end) in first.ranges.items()}
    found = await proof.read_back(ibrik, TOPIC, starts)
    acks = [future.result() for future in futures]
    lost = sum((ack.partition, ack.offset) not in found.values for ack in acknowledged)
    screen.line(f"acknowledged before the kill {len(acknowledged):,}, lost {lost}")
    proof.check_acknowledged(found, flights, acks)
    proof.check_order(acks)
    again = await proof.read_back(ibrik, TOPIC, {p: s for p, (s, _) in first.ranges.items()})
    proof.check(
        all(again.values.get(place) == value for place, value in first.values.items()),
        "an event of the first publish is missing or changed",
    )
    screen.good(
        f"nothing acknowledged is missing, nothing is there twice: {len(again.values):,} events, "
        "each at the offset that was promised"
    )


def say_how_to_go_on() -> None:
    screen.step(6, "Go on by hand")
    for text in (
        "$ .venv/bin/ibrik serve --data .demo/data                 # in one window",
        "$ .venv/bin/ibrik topic ls                                # in another",
        "$ .venv/bin/ibrik consume flights --partition 0 --from earliest --max 3",
        "$ curl -s 'localhost:8080/v1/topics/flights/partitions/0/messages?offset=0&max=1'",
        "$ curl -sX POST localhost:8080/v1/topics/flights/messages -H 'Ibrik-Key: UA' "
        "-d '{\"flight\":1545}'",
        "$ printf 'PUB flights 15\\r\\n{\"flight\":1546}' | nc -q1 localhost 7070",
    ):
        screen.line(text)


async def demonstrate(broker: BrokerProcess) -> None:
    # A supervisor's SIGTERM unwinds like Ctrl-C does, so that the broker is ended as well.
    demonstration = asyncio.current_task()
    assert demonstration is not None, "a coroutine runs in a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, demonstration.cancel)
    screen.step(1, "Start a broker on a folder of its own")
    broker.start()
    screen.line("$ ibrik serve --data .demo/data")
    screen.line(f"process {broker.pid} serves {broker.http_url} after {broker.started_s:.1f} s")
    screen.step(2, "Apply the topic")
    apply_topic(broker)
    archive = source.fetch(ROOT / "requirements" / "demo.lock", FOLDER / "pkgs")
    flights = source.read(archive)
    async with ibrik_client.connect(broker.http_url, retry=PATIENCE) as ibrik:
        first = await publish_all(ibrik, flights)
        await kill_and_prove(ibrik, broker, flights[:AGAIN], first)


def main() -> int:
    FOLDER.mkdir(exist_ok=True)
    broker = BrokerProcess(FOLDER)
    return run_demo(
        broker,
        partial(demonstrate, broker),
        without_source="pip could not bring the flights",
        afterwards=say_how_to_go_on,
    )


if __name__ == "__main__":
    sys.exit(main())
