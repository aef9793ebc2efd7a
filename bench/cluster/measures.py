"""The rows of a cluster: a pool that was not there before, and publishing from a pod.

The same load runs against the broker of the cluster, from a pod through its Service, and against a
container of the same image on the machine, in alternation; kind runs meanwhile. Both keep their
data in the engine's folder, so on one disk, and flush before they acknowledge.
"""

import sys
import time

from bench.cluster.places import Place, inside, outside
from bench.framework import Bench, Row, milliseconds, rate, times
from bench.load import Load, Shape
from e2e.support.cluster import ROOT, Cluster

EXAMPLE = ROOT / "examples" / "quickstart" / "topic.yaml"
CONNECTIONS = 32
ROUNDS = 5
POOLS = 3
RATIO_BAR, POOL_BAR_S = 0.7, 30


def measure(cluster: Cluster, bench: Bench) -> list[Row]:
    cluster.install()
    return [_pools_from_nothing(cluster, bench), _publishing(cluster, bench)]


def _pools_from_nothing(cluster: Cluster, bench: Bench) -> Row:
    """From `kubectl apply` of a Topic in an empty namespace, which brings the pool with it."""
    seconds = []
    for number in range(1 if bench.is_quick else POOLS):
        _say(f"pool {number + 1} from nothing")
        namespace = cluster.new_namespace(f"bench-pool-{number}")
        started = time.monotonic()
        cluster.kubectl("apply", "--namespace", namespace, "--filename", str(EXAMPLE))
        cluster.wait_condition("topics.ibrik.dev", "flights", namespace, "Ready=True")
        seconds.append(time.monotonic() - started)
        cluster.delete_namespace(namespace)
    p50, longest = bench.median(seconds), max(seconds)
    return Row(
        "Topic in an empty namespace: apply to Ready, with its pool, p50",
        f"{p50:.1f} s",
        note=f"longest of {len(seconds)}: {longest:.1f} s",
        values={"p50_s": p50, "max_s": longest},
    ).judged(f"≤ {POOL_BAR_S} s", p50 <= POOL_BAR_S)


def _publishing(cluster: Cluster, bench: Bench) -> Row:
    with inside(cluster) as pod, outside(cluster.tag) as container:
        pairs = []
        for number in range(1 if bench.is_quick else ROUNDS):
            _say(f"publishing {number + 1}")
            pairs.append((_load(pod, bench), _load(container, bench)))
    ours, theirs = (bench.median(one.rate for one in side) for side in zip(*pairs, strict=True))
    p50s = [bench.median(one.p50_ms for one in side) for side in zip(*pairs, strict=True)]
    ratio = bench.median(one.rate / other.rate for one, other in pairs)
    return Row(
        f"HTTP POST 1 KiB from a pod, {CONNECTIONS} connections, flushed",
        f"{rate(ours)}, p50 {milliseconds(p50s[0])}",
        f"outside the cluster {rate(theirs)}, p50 {milliseconds(p50s[1])}",
        times(ratio),
        values={"rate": ours, "outside_rate": theirs, "ratio": ratio},
    ).judged(f"≥ {RATIO_BAR}x", ratio >= RATIO_BAR)


def _load(place: Place, bench: Bench) -> Load:
    load, stored = place.publish(Shape(CONNECTIONS, 1, bench.seconds, bench.warm_up_seconds))
    # The generator counts lines: only the log says that they were acknowledgements.
    assert load.replies <= stored, f"{load.replies} answers, {stored} messages stored"
    return load


def _say(what: str) -> None:
    print(f"{what} …", file=sys.stderr, flush=True)
