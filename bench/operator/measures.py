"""The rows of the operator: one resource, a crowd of them, and nothing to do."""

import statistics
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence

from bench.framework import Row
from bench.operator.crowd import CONNECTIONS, Created, Crowd, create
from bench.operator.rig import changing_admin_calls, peak_memory_mib, running_rig
from tests.support.cluster import Write
from tests.support.declared import TOPIC, topic
from tests.support.shop import Shop

SINGLE_TOPICS = 20
SETTLE_TIMEOUT_S = 180
STEADY = 'ibrik_operator_resyncs_total{result="steady"}'


def measure(crowd: Crowd, idle_s: int) -> list[Row]:
    with running_rig() as shop:
        _say("one Topic after another")
        rows = [_single_topics(shop, "alone", "empty cluster")]
        _say(f"{crowd.size:,} resources")
        since = shop.cluster.audit_position()
        created = create(shop, crowd)
        settled = _settle(shop)
        rows += [*_crowd_rows(crowd, created), _writes_row(crowd, shop.operator.writes(since))]
        _say(f"{idle_s} s without a change")
        rows += _idle_rows(shop, idle_s, settled)
        _say("one Topic after another")
        rows.append(_single_topics(shop, "among", f"beside {crowd.size:,} resources"))
        peak = peak_memory_mib(shop)
    memory = Row("operator: peak resident memory", f"{peak:.0f} MiB", values={"mib": peak})
    return [*rows, memory.judged("≤ 200 MiB", peak <= 200)]


def _single_topics(shop: Shop, prefix: str, where: str) -> Row:
    seconds = []
    for number in range(SINGLE_TOPICS):
        name = f"{prefix}-{number}"
        started = time.monotonic()
        shop.apply(topic(name, shop.namespace, partitions=1))
        shop.ready(TOPIC, name)
        seconds.append(time.monotonic() - started)
    p50, worst = statistics.median(seconds), max(seconds)
    return Row(
        f"one Topic: apply to Ready, {where}, p50",
        f"{p50:.2f} s",
        note=f"longest of {SINGLE_TOPICS}: {worst:.2f} s",
        values={"p50_s": p50, "max_s": worst},
    ).judged("≤ 1.5 s", p50 <= 1.5)


def _crowd_rows(crowd: Crowd, created: Created) -> list[Row]:
    what = f"{crowd.topics:,} Topics, {crowd.subscriptions:,} Subscriptions"
    rate = crowd.size / created.create_s
    return [
        Row(
            f"{what}: created over {CONNECTIONS} connections",
            f"{rate:.0f}/s",
            note=f"in {created.create_s:.1f} s",
            values={"per_s": rate},
        ),
        Row(
            f"{what}: last create to all Ready",
            f"{created.ready_s:.1f} s",
            values={"ready_s": created.ready_s},
        ).judged("≤ 90 s", created.ready_s <= 90),
    ]


def _writes_row(crowd: Crowd, writes: Sequence[Write]) -> Row:
    events = sum(write.resource == "events" for write in writes)
    each = (len(writes) - events) / crowd.size
    return Row(
        "operator: writes for each of them, without Events",
        f"{each:.2f}",
        note=f"{events / crowd.size:.2f} Events more; {_summary(writes)}",
        values={"writes": each, "events": events / crowd.size},
    ).judged("≤ 2", each <= 2)


def _idle_rows(shop: Shop, idle_s: int, is_settled: bool) -> list[Row]:
    since, calls = shop.cluster.audit_position(), changing_admin_calls(shop)
    assert calls, "what made everything was not counted, so nothing would be"
    threading.Event().wait(idle_s)
    writes, calls = shop.operator.writes(since), changing_admin_calls(shop) - calls
    note = "" if is_settled else "no comparison before was without a difference; "
    return [
        Row(
            f"idle for {idle_s} s: writes of the operator, without its Lease",
            f"{len(writes)}",
            note=note + _summary(writes),
            values={"writes": len(writes)},
        ).judged("0", not writes),
        Row(
            f"idle for {idle_s} s: changing admin calls that the brokers saw",
            f"{calls}",
            values={"calls": calls},
        ).judged("0", calls == 0),
    ]


def _settle(shop: Shop) -> bool:
    """Whether the operator found nothing to do in a whole comparison, before patience ended."""
    pause, end = threading.Event(), time.monotonic() + SETTLE_TIMEOUT_S
    before = shop.operator.metric(STEADY)
    while shop.operator.metric(STEADY) == before:
        if time.monotonic() > end:
            return False
        pause.wait(1.0)
    return True


def _summary(writes: Sequence[Write]) -> str:
    """The most frequent writes with their statuses."""
    counted = Counter(
        f"{write.verb} {'/'.join(filter(None, (write.resource, write.subresource)))} {write.status}"
        for write in writes
    )
    return ", ".join(f"{count:,} {what}" for what, count in counted.most_common(6))


def _say(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)
