"""Every metric of the broker, declared in this one file: name, kind, unit, labels, meaning.

Nothing is incremented here per message. The hot path counts in plain integers that it owns
anyway; at a scrape, each layer's *source* turns them into readings, and `BrokerCollector` turns
readings into what `prometheus_client` exposes. Histograms see one observation per group of
records or per request, never one per record.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

# From 100 µs (a flush of a fast disk) to 10 s (a disk that hangs), in steps of 1, 2.5, 5.
SECONDS_BUCKETS = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0,
)  # fmt: skip
RECORDS_BUCKETS = (1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One declared metric; the name ends in its unit (`_seconds`, `_bytes`, `_total`)."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    meaning: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


class Histogram:
    """Counts per bucket in plain integers. `observe` costs a bisect; call it once per group."""

    __slots__ = ("buckets", "counts", "total")

    def __init__(self, buckets: Sequence[float] = SECONDS_BUCKETS) -> None:
        self.buckets = tuple(buckets)
        self.counts = [0] * (len(self.buckets) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.buckets, value)] += 1
        self.total += value


class Reading(NamedTuple):
    """What a source says at a scrape: which metric, the values of its labels, the value."""

    spec: MetricSpec
    labels: tuple[str, ...]
    value: float | Histogram


Source = Callable[[], Iterable[Reading]]

_PARTITION = ("topic", "partition")

# --- the log and the engine -------------------------------------------------------------------
APPENDED_RECORDS = MetricSpec(
    "ibrik_appended_records_total",
    "counter",
    "records",
    "Records that were appended to the log.",
    _PARTITION,
)
APPENDED_BYTES = MetricSpec(
    "ibrik_appended_bytes_total",
    "counter",
    "bytes",
    "Bytes of record batches that were appended to the log.",
    _PARTITION,
)
DUPLICATE_RECORDS = MetricSpec(
    "ibrik_duplicate_records_total",
    "counter",
    "records",
    "Repeated messages that were answered with the offset of the first.",
    ("topic",),
)
DROPPED_RECORDS = MetricSpec(
    "ibrik_dropped_records_total",
    "counter",
    "records",
    "Records published with acks=none that a full buffer dropped.",
    _PARTITION,
)
LOG_START_OFFSET = MetricSpec(
    "ibrik_log_start_offset", "gauge", "offset", "First offset that can be read.", _PARTITION
)
HIGH_WATERMARK = MetricSpec(
    "ibrik_high_watermark_offset",
    "gauge",
    "offset",
    "Next offset that will become visible; every offset below it is flushed.",
    _PARTITION,
)
LOG_BYTES = MetricSpec("ibrik_log_bytes", "gauge", "bytes", "Size of the log on disk.", _PARTITION)
DAMAGED_RECORDS = MetricSpec(
    "ibrik_damaged_records",
    "gauge",
    "records",
    "Records in ranges that failed their checksum and are not served.",
    _PARTITION,
)
BUFFERED_RECORDS = MetricSpec(
    "ibrik_buffered_records",
    "gauge",
    "records",
    "Records in the input buffer: claimed, not yet durable.",
    _PARTITION,
)
BUFFERED_BYTES = MetricSpec(
    "ibrik_buffered_bytes",
    "gauge",
    "bytes",
    "Bytes in the input buffer: claimed, not yet durable.",
    _PARTITION,
)
ARCHIVED_OFFSET = MetricSpec(
    "ibrik_archived_offset",
    "gauge",
    "offset",
    "First offset that is not known to be in the table of the archive.",
    _PARTITION,
)
ARCHIVE_LAG_RECORDS = MetricSpec(
    "ibrik_archive_lag_records",
    "gauge",
    "records",
    "Records that are not in the table of the archive yet.",
    _PARTITION,
)
ARCHIVE_HELD_BYTES = MetricSpec(
    "ibrik_archive_held_bytes",
    "gauge",
    "bytes",
    "Bytes that retention would have deleted and keeps for the archive.",
    _PARTITION,
)
ARCHIVE_OVER_HOLD = MetricSpec(
    "ibrik_archive_over_hold",
    "gauge",
    "0 or 1",
    "1 while more is held back for the archive than holdMax allows.",
    _PARTITION,
)
ARCHIVE_DROPPED_RECORDS = MetricSpec(
    "ibrik_archive_dropped_records_total",
    "counter",
    "records",
    "Records that holdMax deleted before they were archived.",
    _PARTITION,
)
READ_BYTES = MetricSpec(
    "ibrik_read_bytes_total",
    "counter",
    "bytes",
    "Bytes of record batches handed to readers, by where they came from (cache or disk).",
    ("source",),
)
TAIL_CACHE_BYTES = MetricSpec(
    "ibrik_tail_cache_bytes",
    "gauge",
    "bytes",
    "Size of the encoded batches kept in memory for readers at the tail.",
)
APPEND_TO_ACK = MetricSpec(
    "ibrik_append_to_ack_seconds",
    "histogram",
    "seconds",
    "From the first record of a group entering the buffer to its acknowledgement.",
    buckets=SECONDS_BUCKETS,
)
FLUSH = MetricSpec(
    "ibrik_flush_seconds",
    "histogram",
    "seconds",
    "Time of the flush of one group, all its dirty partitions together.",
    buckets=SECONDS_BUCKETS,
)
GROUP_RECORDS = MetricSpec(
    "ibrik_group_records",
    "histogram",
    "records",
    "Records that shared one flush.",
    buckets=RECORDS_BUCKETS,
)
STORAGE_FREE_BYTES = MetricSpec(
    "ibrik_storage_free_bytes", "gauge", "bytes", "Free space of the data folder's file system."
)
STORAGE_CAPACITY_BYTES = MetricSpec(
    "ibrik_storage_capacity_bytes", "gauge", "bytes", "Size of the data folder's file system."
)
STORAGE_FULL = MetricSpec(
    "ibrik_storage_full", "gauge", "0 or 1", "1 while publishing is refused for want of space."
)

# --- the doors --------------------------------------------------------------------------------
TCP_CONNECTIONS = MetricSpec(
    "ibrik_tcp_connections", "gauge", "connections", "Open connections of the TCP door."
)
TCP_CONNECTIONS_ACCEPTED = MetricSpec(
    "ibrik_tcp_accepted_connections_total",
    "counter",
    "connections",
    "Connections that the TCP door accepted.",
)
TCP_CONNECTIONS_REFUSED = MetricSpec(
    "ibrik_tcp_refused_connections_total",
    "counter",
    "connections",
    "Connections beyond the limit, closed with `ERR too-many-connections`.",
)
TCP_COMMANDS = MetricSpec(
    "ibrik_tcp_commands_total",
    "counter",
    "commands",
    "Commands answered, by command.",
    ("command",),
)
TCP_ERRORS = MetricSpec(
    "ibrik_tcp_errors_total", "counter", "replies", "`ERR` replies, by code.", ("code",)
)
TCP_PAUSES = MetricSpec(
    "ibrik_tcp_pauses_total",
    "counter",
    "pauses",
    "Times that reading from a connection paused because its unacknowledged bytes hit the cap.",
)
HTTP_REQUESTS = MetricSpec(
    "ibrik_http_requests_total",
    "counter",
    "requests",
    "Requests answered, by route and status.",
    ("route", "status"),
)
HTTP_REQUEST_SECONDS = MetricSpec(
    "ibrik_http_request_seconds",
    "histogram",
    "seconds",
    "From the head of a request to the end of its answer, by route (streams left out).",
    ("route",),
    SECONDS_BUCKETS,
)
HTTP_STREAMS = MetricSpec("ibrik_http_streams", "gauge", "streams", "Open server-sent streams.")
HTTP_LEASE_STREAMS = MetricSpec(
    "ibrik_http_lease_streams", "gauge", "streams", "Open streams of subscriptions."
)

# --- delivery ---------------------------------------------------------------------------------
_SUBSCRIPTION = ("topic", "subscription")
SUBSCRIPTION_BACKLOG = MetricSpec(
    "ibrik_subscription_backlog_messages",
    "gauge",
    "messages",
    "Messages that are not settled: neither delivered nor filtered out nor dead.",
    _SUBSCRIPTION,
)
SUBSCRIPTION_OLDEST = MetricSpec(
    "ibrik_subscription_oldest_seconds",
    "gauge",
    "seconds",
    "Age of the oldest message that is not settled, as far as it is known.",
    _SUBSCRIPTION,
)
SUBSCRIPTION_IN_FLIGHT = MetricSpec(
    "ibrik_subscription_in_flight_messages",
    "gauge",
    "messages",
    "Messages on their way to a destination, or leased to a consumer.",
    _SUBSCRIPTION,
)
SUBSCRIPTION_RETRYING = MetricSpec(
    "ibrik_subscription_retrying_messages",
    "gauge",
    "messages",
    "Messages that failed and wait for their next attempt.",
    _SUBSCRIPTION,
)
DELIVERED = MetricSpec(
    "ibrik_delivered_messages_total",
    "counter",
    "messages",
    "Messages that were acknowledged by their destination or consumer.",
    _SUBSCRIPTION,
)
FAILED_ATTEMPTS = MetricSpec(
    "ibrik_failed_attempts_total", "counter", "attempts", "Attempts that failed.", _SUBSCRIPTION
)
RETRIED_ATTEMPTS = MetricSpec(
    "ibrik_retried_attempts_total",
    "counter",
    "attempts",
    "Attempts that were not the first of their message.",
    _SUBSCRIPTION,
)
DEAD_LETTERED = MetricSpec(
    "ibrik_dead_lettered_messages_total",
    "counter",
    "messages",
    "Messages that went to the dead-letter topic.",
    _SUBSCRIPTION,
)
LOST_MESSAGES = MetricSpec(
    "ibrik_lost_messages_total",
    "counter",
    "messages",
    "Messages of fireAndForget whose one try failed.",
    _SUBSCRIPTION,
)
FILTERED_MESSAGES = MetricSpec(
    "ibrik_filtered_messages_total",
    "counter",
    "messages",
    "Messages that did not fit the filter of the subscription.",
    _SUBSCRIPTION,
)
FILTER_ERRORS = MetricSpec(
    "ibrik_filter_errors_total",
    "counter",
    "messages",
    "Messages on which the filter failed, such as for a missing field; they do not fit.",
    _SUBSCRIPTION,
)
GAP_MESSAGES = MetricSpec(
    "ibrik_gap_messages_total",
    "counter",
    "messages",
    "Messages that the log did not hold any more when their turn came.",
    _SUBSCRIPTION,
)
APPEND_TO_DELIVERY = MetricSpec(
    "ibrik_append_to_delivery_seconds",
    "histogram",
    "seconds",
    "From the append of a message to the answer of its destination, by topic.",
    ("topic",),
    SECONDS_BUCKETS,
)
CHANNEL_ATTEMPTS = MetricSpec(
    "ibrik_channel_attempts_total",
    "counter",
    "attempts",
    "Attempts by channel, delivered or failed.",
    ("channel", "result"),
)
CHANNEL_IN_FLIGHT = MetricSpec(
    "ibrik_channel_in_flight_messages",
    "gauge",
    "messages",
    "Messages on their way to the channel.",
    ("channel",),
)
CHANNEL_OPEN = MetricSpec(
    "ibrik_channel_circuit_open",
    "gauge",
    "0 or 1",
    "1 while nothing is sent: the circuit is open, or the channel is paused or gone.",
    ("channel",),
)
EGRESS_DENIED = MetricSpec(
    "ibrik_egress_denied_total",
    "counter",
    "connections",
    "Connections to destinations that the egress rules denied, by reason.",
    ("reason",),
)
DELIVERY_COMMITS = MetricSpec(
    "ibrik_delivery_commits_total",
    "counter",
    "transactions",
    "Transactions that wrote the state of delivery.",
)

# --- the program ------------------------------------------------------------------------------
READY = MetricSpec("ibrik_ready", "gauge", "0 or 1", "1 while the broker takes new requests.")
METADATA_READY = MetricSpec(
    "ibrik_metadata_ready", "gauge", "0 or 1", "1 while the metadata database answers."
)
BUILD = MetricSpec(
    "ibrik_build_info", "gauge", "1", "Always 1; the version is its label.", ("version",)
)

METRICS: tuple[MetricSpec, ...] = tuple(v for v in globals().values() if isinstance(v, MetricSpec))


def describe_metrics() -> str:
    """The table of all metrics for the generated reference page (Markdown)."""
    rows = ["| metric | kind | unit | labels | meaning |", "|---|---|---|---|---|"]
    rows += [
        f"| `{spec.name}` | {spec.kind} | {spec.unit} | "
        f"{', '.join(f'`{label}`' for label in spec.labels)} | {spec.meaning} |"
        for spec in sorted(METRICS, key=lambda spec: spec.name)
    ]
    return "\n".join(rows) + "\n"
