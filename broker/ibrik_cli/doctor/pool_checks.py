"""Are the brokers well: pools, pods, volumes, disks? Pure."""

from collections.abc import Iterator

from ibrik_api.kubernetes import PAUSED
from ibrik_api.quantities import parse_quantity
from ibrik_cli.doctor.finding import BrokerSeen, Document, Finding, Seen, name_of, pool_of
from ibrik_cli.doctor.resource_checks import judge
from ibrik_cli.output import size_text, times_text
from ibrik_cli.pods import containers_of, is_ended, is_ready, pod_state

LOW_FACTOR = 2
"""A disk is said to become full when less than twice the smallest permitted space is free."""
DEFAULT_MIN_FREE_BYTES = 256 * 2**20
NAMED_TOPICS = 3
REMEDIES = {
    "ErrImagePull": "Check the name of the image, and spec.imagePullSecrets of the pool",
    "ImagePullBackOff": "Check the name of the image, and spec.imagePullSecrets of the pool",
    "CreateContainerConfigError": "A Secret or ConfigMap that the pod names is missing; its events "
    "say which",
    "CrashLoopBackOff": "Its last log lines say why it ends",
    "Unschedulable": "No node takes it: look at its requests, its affinity and the volumes",
}


def pools_are_ready(seen: Seen) -> Iterator[Finding]:
    if not seen.pools and "resources" not in seen.unseen:
        where = f"in namespace {seen.namespace}" if seen.namespace else "in the cluster"
        yield Finding(
            "fine", f"no pool {where}", "The first Topic brings one: kubectl apply -f topic.yaml"
        )
    for pool in seen.pools:
        finding = judge(pool, "pool", "brokerpools")
        if finding is not None:
            yield finding
        else:
            ready = (pool.get("status") or {}).get("ready", "")
            yield Finding("fine", f"pool {name_of(pool)} {ready}".rstrip())


def nothing_is_paused(seen: Seen) -> Iterator[Finding]:
    kinds = ((seen.pools, "brokerpools"), (seen.topics, "topics"))
    more = ((seen.subscriptions, "subscriptions"), (seen.channels, "channels"))
    for documents, plural in (*kinds, *more):
        for document in documents:
            annotations = document["metadata"].get("annotations") or {}
            if annotations.get(PAUSED) == "true":
                name, namespace = document["metadata"]["name"], document["metadata"]["namespace"]
                yield Finding(
                    "warning",
                    f"{plural} {namespace}/{name} is paused: the operator changes nothing of it",
                    f"kubectl -n {namespace} annotate {plural}.ibrik.dev {name} {PAUSED}-",
                )


def pods_run(seen: Seen) -> Iterator[Finding]:
    for pod in seen.pods:
        if is_ended(pod):
            continue
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        describe = f"kubectl -n {namespace} describe pod {name}"
        if not is_ready(pod):
            state = pod_state(pod).removeprefix(f"{name} ")
            reason = state.partition("(")[2].rstrip(")")
            remedy = REMEDIES.get(reason, "Its events say why")
            yield Finding("problem", f"pod {namespace}/{name} {state}", f"{remedy}: {describe}")
        yield from _restarts(pod, f"{namespace}/{name}")


def _restarts(pod: Document, name: str) -> Iterator[Finding]:
    for container in containers_of(pod):
        last = (container.get("lastState") or {}).get("terminated") or {}
        count = container.get("restartCount", 0)
        if not count or not last:
            continue
        if last.get("reason") == "OOMKilled":
            yield Finding(
                "problem",
                f"pod {name} ran out of memory and was restarted ({times_text(count)})",
                "Raise spec.resources.limits.memory of the pool",
            )
        else:
            yield Finding(
                "warning",
                f"pod {name} was restarted {times_text(count)}, after it ended with exit code "
                f"{last.get('exitCode')} at {last.get('finishedAt', 'an unknown time')}",
                f"Its log before that: kubectl -n {pod['metadata']['namespace']} logs "
                f"{pod['metadata']['name']} --previous",
            )


def claims_are_bound(seen: Seen) -> Iterator[Finding]:
    for claim in seen.claims:
        phase = (claim.get("status") or {}).get("phase")
        if phase in ("Bound", None):
            continue
        said = [
            e.get("message", "")
            for e in seen.events
            if e.get("involvedObject", {}).get("name") == claim["metadata"]["name"]
        ]
        yield Finding(
            "problem",
            f"volume claim {name_of(claim)} is {phase}" + (f": {said[-1]}" if said else ""),
            "Check the StorageClass (kubectl get storageclass) and spec.storage of the pool",
        )


def brokers_are_well(seen: Seen) -> Iterator[Finding]:
    for broker in seen.brokers:
        yield from broker_is_well(broker, seen)


def broker_is_well(broker: BrokerSeen, seen: Seen) -> Iterator[Finding]:
    if broker.fault and seen.kubernetes:
        yield Finding("warning", f"broker {broker.name} could not be asked: {broker.fault}")
        return
    if broker.fault:
        yield Finding(
            "problem",
            f"no broker answers: {broker.fault}",
            "Start one with ibrik serve --dev, name it with --admin, or a cluster with --context",
        )
        return
    if not broker.is_ready:
        yield Finding(
            "problem",
            f"broker {broker.name} takes no requests yet: it is loading, stopping or waiting for "
            "its metadata",
            "If that lasts, its log says why",
        )
    if broker.damaged_records:
        yield Finding(
            "problem",
            f"broker {broker.name} does not serve {broker.damaged_records:,} damaged records",
            "See docs/guides/operate.md, corrupt ranges: restore the segment or accept the gap",
        )
    if broker.is_ready and not broker.is_storage_full and not broker.damaged_records:
        free = "" if broker.free_bytes is None else f", {size_text(broker.free_bytes)} free"
        yield Finding("fine", f"broker {broker.name} {broker.version}{free}")
    yield from _disk(broker, seen)
    if broker.version not in ("", seen.version):
        yield Finding(
            "warning", f"broker {broker.name} is version {broker.version}, this is {seen.version}"
        )


def _disk(broker: BrokerSeen, seen: Seen) -> Iterator[Finding]:
    if broker.free_bytes is None:
        return
    pool = next((p for p in seen.pools if name_of(p) == f"{broker.namespace}/{broker.pool}"), None)
    spec = (pool or {}).get("spec") or {}
    bound = (spec.get("config") or {}).get("minFreeBytes")
    min_free_bytes = parse_quantity(str(bound)) if bound else DEFAULT_MIN_FREE_BYTES
    if not broker.is_storage_full and broker.free_bytes >= LOW_FACTOR * min_free_bytes:
        return
    size = (spec.get("storage") or {}).get("size", "")
    of = f" of {size}" if size else ""
    consequence = "is refused" if broker.is_storage_full else "will soon be refused,"
    yield Finding(
        "problem" if broker.is_storage_full else "warning",
        f"broker {broker.name} has {size_text(broker.free_bytes)} free{of}; publishing "
        f"{consequence} below {size_text(min_free_bytes)}",
        _more_room(broker, seen, size),
    )


def _more_room(broker: BrokerSeen, seen: Seen, size: str) -> str:
    grow = "Grow the disk"
    if size:
        doubled = f"{2 * parse_quantity(size) // 2**30}Gi"
        grow = (
            f"Grow it: kubectl -n {broker.namespace} patch brokerpools.ibrik.dev {broker.pool} "
            f'--type merge -p \'{{"spec":{{"storage":{{"size":"{doubled}"}}}}}}\''
        )
    sizes = {
        topic["metadata"]["name"]: int((topic.get("status") or {}).get("bytes") or 0)
        for topic in seen.topics
        if topic["metadata"].get("namespace") == broker.namespace and pool_of(topic) == broker.pool
    }
    largest = sorted(sizes, key=lambda name: -sizes[name])[:NAMED_TOPICS]
    named = ", ".join(f"{name} ({size_text(sizes[name])})" for name in largest if sizes[name])
    return f"{grow}, or lower retention" + (f" of: {named}" if named else "")
