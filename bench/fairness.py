"""Channels beside each other: what the others notice of those whose endpoint hangs."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bench import delivering
from bench.framework import (
    Bench,
    NotMeasured,
    Row,
    milliseconds,
    new_folder,
    times,
    unmeasured,
)
from bench.ibrik import broker_with
from bench.sink import Sink, Taken, running_sink
from tests.support.broker import Broker

CHANNELS = 200
HANGING = 20
TOPICS = 10
VALUE = b"x" * 1024
PUBLISHED_RATE = 20
"""Messages a second over all topics; each goes to the 20 channels of its topic."""
TIMEOUT_S = 1
"""The shortest: so that hanging requests also end, fail, and open circuits within a round."""
ROUNDS = 5
BAR = 1.5
NAME = f"p99 of {CHANNELS - HANGING} channels while {HANGING} others hang"


def measure(bench: Bench) -> list[Row]:
    try:
        with (
            new_folder() as name,
            running_sink() as sink,
            broker_with(Path(name), {}) as broker,
        ):
            delivering.apply(broker, list(_resources(sink)))
            return [_compare(bench, broker, sink)]
    except NotMeasured as missing:
        return [unmeasured(NAME, f"≤ {BAR}x", str(missing))]


def _topic(number: int) -> str:
    return f"fair-{number % TOPICS}"


def _is_hanging(number: int) -> bool:
    """Two of each topic's twenty."""
    return number < HANGING


def _resources(sink: Sink) -> Iterable[dict[str, object]]:
    """Topics first, then each channel with the subscription that pushes to it."""
    for number in range(TOPICS):
        yield delivering.resource("Topic", _topic(number))
    for number in range(CHANNELS):
        url = sink.url("/hang" if _is_hanging(number) else "/taken")
        yield delivering.resource(
            "Channel", f"to-{number}", http={"url": url}, timeout=f"{TIMEOUT_S}s"
        )
        yield delivering.resource(
            "Subscription",
            f"of-{number}",
            topicRef={"name": _topic(number)},
            channelRef={"name": f"to-{number}"},
            mode="push",
        )


def _compare(bench: Bench, broker: Broker, sink: Sink) -> Row:
    """Rounds with the hanging channels paused and with them at work, in turn."""
    for number in range(HANGING):
        delivering.pause(broker, "channels", f"to-{number}")
    seconds = bench.seconds
    _round(broker, sink, bench.warm_up_seconds)
    seen = []
    for _ in range(bench.scaled(ROUNDS, 1)):
        without = _round(broker, sink, seconds)
        assert without.held == 0, "nothing goes to a paused channel"
        with Hanging(broker):
            seen.append((without, _round(broker, sink, seconds)))
    without_ms = bench.median(each[0].p99_ms for each in seen)
    with_ms = bench.median(each[1].p99_ms for each in seen)
    ratio = bench.median(each[1].p99_ms / each[0].p99_ms for each in seen)
    held = bench.median(each[1].held for each in seen)
    deliveries = PUBLISHED_RATE * (CHANNELS - HANGING) // TOPICS
    return Row(
        f"{NAME}, {deliveries} deliveries/s",
        f"{milliseconds(with_ms)} ({held:.0f} requests hang)",
        f"without them {milliseconds(without_ms)}",
        times(ratio),
        values={"p99_ms": with_ms, "p99_without_ms": without_ms, "held": held},
    ).judged(f"≤ {BAR}x", ratio <= BAR and held > 0)


@dataclass(frozen=True, slots=True)
class Hanging:
    """The hanging channels at work; resuming one closes its circuit."""

    broker: Broker

    def __enter__(self) -> None:
        for number in range(HANGING):
            delivering.resume(self.broker, "channels", f"to-{number}")

    def __exit__(self, *_: object) -> None:
        for number in range(HANGING):
            delivering.pause(self.broker, "channels", f"to-{number}")
        threading.Event().wait(TIMEOUT_S + 0.5)  # what hangs ends


def _round(broker: Broker, sink: Sink, seconds: float) -> Taken:
    sink.reset()
    count = round(PUBLISHED_RATE * seconds / TOPICS) * TOPICS
    topics = [_topic(number) for number in range(TOPICS)]
    delivering.publish_steadily(broker, topics, VALUE, per_second=PUBLISHED_RATE, count=count)
    seen = sink.wait_for(count * (CHANNELS - HANGING) // TOPICS)
    delivering.assert_timed(seen)
    return seen
