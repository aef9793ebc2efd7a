"""What the operator counts; `health.py` shows it. A page of the reference is made from here."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

reconciles = Counter(
    "ibrik_operator_reconciles",
    "Reconciles that ended, by kind and result (done, later, failed).",
    ["kind", "result"],
    registry=REGISTRY,
)
reconcile_seconds = Histogram(
    "ibrik_operator_reconcile_seconds",
    "Time of a reconcile, by kind.",
    ["kind"],
    buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 30),
    registry=REGISTRY,
)
last_success_seconds = Gauge(
    "ibrik_operator_last_success_timestamp_seconds",
    "When a reconcile of the kind last ended well.",
    ["kind"],
    registry=REGISTRY,
)
queue_depth = Gauge(
    "ibrik_operator_queue_depth", "Keys that wait for their reconcile now.", registry=REGISTRY
)
is_leader = Gauge(
    "ibrik_operator_is_leader", "1 while this replica holds the Lease.", registry=REGISTRY
)
api_writes = Counter(
    "ibrik_operator_api_writes",
    "Writing calls to the API server, by kind, verb and HTTP status.",
    ["kind", "verb", "status"],
    registry=REGISTRY,
)
broker_calls = Counter(
    "ibrik_operator_broker_calls",
    "Calls to the brokers' admin door, by call (apply, observe) and result (done, failed).",
    ["call", "result"],
    registry=REGISTRY,
)
resyncs = Counter(
    "ibrik_operator_resyncs",
    "Passes over every pool, by result (steady: nothing differed; different; failed).",
    ["result"],
    registry=REGISTRY,
)
orphans = Gauge(
    "ibrik_operator_orphans",
    "Resources that brokers serve and the API server does not know, by namespace and pool.",
    ["namespace", "pool"],
    registry=REGISTRY,
)
detach_stopped = Gauge(
    "ibrik_operator_detach_stopped",
    "1 while more than half of a pool's resources are absent at once, so that none is detached.",
    ["namespace", "pool"],
    registry=REGISTRY,
)
