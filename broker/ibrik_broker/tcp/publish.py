"""Runs of `PUB` to the engine: one request per run, none per message."""

from collections.abc import Callable
from itertools import groupby

from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import Publishers
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.partitions.messages import Append, Outcome, Record
from ibrik_broker.partitions.partition import Partition
from ibrik_broker.partitions.topic import Topic
from ibrik_wire import Publish, Target, encode_failure, encode_published

MESSAGE_OVERHEAD_BYTES = 160
"""What a held message costs besides its payload: a bytes object, a record, places in lists."""

OFFSET_FACTS = ("earliest", "latest", "from_offset", "to_offset")
"""What can be read at all, or what is damaged: always two of them, in this order."""


def held_bytes(payloads: list[bytes]) -> int:
    return sum(map(len, payloads)) + MESSAGE_OVERHEAD_BYTES * len(payloads)


def find_partition(engine: Engine, target: Target) -> tuple[Topic, Partition]:
    """Where a run goes; without a named partition the topic's partitioner chooses once per run.

    Raises Refusal `unknown-topic`, `unknown-partition` or `publisher-not-registered`.
    """
    topic = engine.topic(target.topic)
    if topic.spec.publishers is Publishers.REGISTERED:
        raise not_registered(topic)
    index = target.partition
    return topic, topic.partition(topic.choose_partition(None) if index is None else index)


def split_by_size(publish: Publish, payload_bytes_max: int) -> list[tuple[bool, list[bytes]]]:
    """Sub-runs in order, each with whether its payloads fit the topic. Nearly always one."""
    if max(map(len, publish.payloads)) <= payload_bytes_max:
        return [(True, publish.payloads)]
    runs = groupby(publish.payloads, key=lambda payload: len(payload) <= payload_bytes_max)
    return [(fits, list(run)) for fits, run in runs]


def submit(partition: Partition, payloads: list[bytes], done: Callable[[Outcome], None]) -> None:
    records = [Record(None, payload) for payload in payloads]
    partition.submit(Append(size_bytes=sum(map(len, payloads)), done=done, records=records))


def encode_outcome(outcome: Outcome, count: int) -> bytes:
    if outcome.refusal is not None:
        return encode_refusal(outcome.refusal) * count
    return encode_published(outcome.base_offset, count)


def encode_refusal(refusal: Refusal) -> bytes:
    """`ERR`, with the offsets that a program needs before the sentence for a person."""
    facts = [str(refusal.facts[name]) for name in OFFSET_FACTS if name in refusal.facts]
    return encode_failure(refusal.code, " ".join([*facts, refusal.detail]))


def not_registered(topic: Topic) -> Refusal:
    return Refusal(
        "publisher-not-registered",
        f"The topic '{topic.name}' takes messages from registered publishers only, and TCP has no"
        " tokens yet. Publish over HTTP, with the token that POST"
        f" /v1/topics/{topic.name}/publishers answers.",
    )


def too_large(topic: Topic) -> Refusal:
    limit = topic.settings.max_message_bytes
    return Refusal(
        "message-too-large",
        f"'{topic.name}' takes messages of up to {limit:,} bytes. Send it in parts, or raise "
        "spec.maxMessageBytes.",
    )
