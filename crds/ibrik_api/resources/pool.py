"""The BrokerPool resource: how many brokers, on what volumes, with which metadata store.

Rules between two specs, and on the name, live in `pool_rules`. Only the operator reads this kind; a
broker of its own is configured by its settings.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints, WithJsonSchema

from ibrik_api.model import Model
from ibrik_api.quantities import GIB, MIB, Amount, QuantityBytes, size_limits
from ibrik_api.resources.cel import checked, rule, unchanged
from ibrik_api.resources.meta import Conditions, ObjectMeta

MAX_REPLICAS = 9
MAX_POOL_NAME_LENGTH = 40
MIN_VOLUME_BYTES = GIB

Count = Annotated[int, Field(ge=0, le=2**63 - 1, strict=True)]
Text = Annotated[str, StringConstraints(max_length=253)]
Name = Annotated[
    str,
    StringConstraints(min_length=1, max_length=253, pattern=r"^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$"),
]
"""Name of a Kubernetes object."""
Key = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9._-]+$")]
"""Key in a Secret."""
Image = Annotated[str, StringConstraints(min_length=1, max_length=512, pattern=r"^[!-~]+$")]
Url = Annotated[
    str, StringConstraints(min_length=4, max_length=1024, pattern=r"^[a-z][a-z0-9]*://[^\s@]+$")
]
LabelName = Annotated[str, StringConstraints(min_length=1, max_length=317)]
LabelValue = Annotated[
    str, StringConstraints(max_length=63, pattern=r"^([A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?)?$")
]
Labels = Annotated[dict[LabelName, LabelValue], Field(max_length=64)]
VolumeBytes = Annotated[QuantityBytes, size_limits(MIN_VOLUME_BYTES)]
EgressRule = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=r"^\S+$")]
PodPart = Annotated[
    dict[str, Any],
    WithJsonSchema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""A part of a pod that Kubernetes itself defines and judges."""


URL_ADVICE = (
    "write url as s3://bucket/path, and where the store is as AWS_ENDPOINT_URL in its Secret"
)


EXECUTORS_ADVICE = (
    "executors are pods that a job makes: set serviceAccountName to an account that may do that, "
    "such as the one that the chart of the Spark operator makes"
)


class Reclaim(StrEnum):
    RETAIN = "Retain"
    DELETE = "Delete"


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class ObjectReference(Model):
    name: Name
    """Name of the object, in the namespace of the pool."""


class SecretKey(Model):
    """A key of a Secret in the namespace of the pool."""

    name: Name
    """Name of the Secret."""
    key: Key = "uri"
    """Key in that Secret."""


class Claim(Model):
    """A volume: it can grow where its class allows it, and never shrinks."""

    model_config = checked(
        rule(
            "quantity(string(self.size)).compareTo(quantity(string(oldSelf.size))) >= 0",
            "a volume grows but never shrinks: put the size back, or create a new BrokerPool",
            field="size",
        ),
        rule(
            unchanged("storageClassName"),
            "storageClassName is fixed when the volume is made: put it back, or create a new "
            "BrokerPool",
        ),
    )

    size: VolumeBytes = 10 * GIB
    """Size of the volume. It can grow, where its class allows that, but never shrinks."""
    storage_class_name: Name | None = None
    """StorageClass of the volume; left out, the cluster's default. Fixed at creation."""


class Storage(Claim):
    """The volume of each broker: the log, and SQLite."""

    reclaim: Reclaim = Reclaim.RETAIN
    """What happens to the volumes when the pool is deleted. When it is scaled down they stay."""


class Sqlite(Model):
    """A file on the volume of the only broker; nothing to configure."""


class Postgres(Model):
    secret_ref: SecretKey
    """Where the address is, as postgresql://user:password@host/database. One for each pool."""


class MetadataStore(Model):
    """Exactly one of sqlite and postgres."""

    model_config = checked(
        rule(
            "has(self.sqlite) != has(self.postgres)",
            "exactly one of sqlite and postgres is needed: keep one",
        ),
        rule(
            "has(self.postgres) == has(oldSelf.postgres)",
            "the metadata store is chosen when the pool is created, since cursors and channels "
            "live in it: put it back, or create a new BrokerPool",
        ),
    )

    sqlite: Sqlite | None = None
    """A file on the broker's volume, for pools of one broker."""
    postgres: Postgres | None = None
    """A database of its own, for pools of any size."""


class Resources(Model):
    """CPU and memory of a pod."""

    requests: dict[LabelName, Amount] = Field(default={}, max_length=16)
    """What is set aside for it."""
    limits: dict[LabelName, Amount] = Field(default={}, max_length=16)
    """What it may take at most."""


class TcpListener(Model):
    enabled: bool = Field(default=True, strict=True)
    """Whether the TCP door opens. It knows no tokens: close it where the network is shared."""


class Listeners(Model):
    tcp: TcpListener = TcpListener()
    """The door for PUB and FETCH."""
    open_registration: bool = Field(default=False, strict=True)
    """Whether everybody who reaches the brokers may create topics, channels and subscriptions over
    HTTP. Off: that needs the admin token."""


class ArchiveTarget(Model):
    """Where the tables are: exactly one of claim and url."""

    model_config = checked(
        rule(
            "has(self.claim) != has(self.url)",
            "exactly one of claim and url is needed: keep one",
        ),
        rule(
            "!has(self.secretRef) || has(self.url)",
            "secretRef is for url: leave it out with a claim",
            field="secretRef",
        ),
        rule(
            "!has(self.url) || self.url.startsWith('s3://')",
            f"tables lie in stores that speak S3: {URL_ADVICE}",
            field="url",
        ),
    )

    claim: Claim | None = None
    """A volume that is made for the tables of each broker. It stays when the pool goes."""
    url: Url | None = None
    """A place in an object store, such as s3://bucket/path. The bucket has to be there."""
    secret_ref: ObjectReference | None = None
    """Secret whose keys become environment variables of the jobs, such as AWS_ACCESS_KEY_ID; left
    out, the identity of the pod opens the store."""


class PoolArchive(Model):
    """How the topics of this pool are archived to tables."""

    model_config = checked(
        rule(
            "self.executors == 0 || has(self.serviceAccountName)",
            EXECUTORS_ADVICE,
            field="executors",
        ),
    )

    target: ArchiveTarget
    """Where the tables are."""
    image: Image | None = None
    """Image of the jobs; left out, the one that the operator came with."""
    resources: Resources = Resources()
    """CPU and memory of a job; left out, it asks for 100m and gets 1434Mi."""
    executors: int = Field(default=0, ge=0, le=64, strict=True)
    """Pods that merge the small files of the tables once a day, and count their traffic where a
    topic wishes it, besides the one that leads them; 0 leaves the files as they are."""
    service_account_name: Name | None = None
    """ServiceAccount with which that one makes the others; the chart of the Spark operator brings
    one to each namespace that it serves."""


class PodTemplate(Model):
    """What the pods of brokers have besides what they need."""

    labels: Labels = Field(default={})
    """Labels besides Ibrik's own."""
    annotations: dict[LabelName, Annotated[str, StringConstraints(max_length=4096)]] = Field(
        default={}, max_length=64
    )
    """Annotations besides Ibrik's own."""
    node_selector: Labels = Field(default={})
    """Labels that a node must have."""
    affinity: PodPart | None = None
    """Which nodes and neighbours are preferred or needed, as in a pod."""
    tolerations: list[PodPart] = Field(default=[], max_length=32)
    """Taints of nodes that are tolerated, as in a pod."""
    topology_spread: list[PodPart] = Field(default=[], max_length=16)
    """topologySpreadConstraints as in a pod; left out, brokers spread over zones and nodes."""
    priority_class_name: Name | None = None
    """PriorityClass of the pods."""


class Egress(Model):
    """Where deliveries may go. Services that a Channel names with service are always allowed."""

    allow_private: bool = Field(default=False, strict=True)
    """Whether deliveries may go to any private address."""
    allow: list[EgressRule] = Field(default=[], max_length=256)
    """Private destinations that are allowed: networks (10.0.0.0/8), names (payments.internal),
    endings of names (*.shop.svc), each with a port if wished (payments.internal:443)."""


class PoolConfig(Model):
    """Settings of the brokers. A change restarts them, one at a time."""

    min_free_bytes: Annotated[QuantityBytes, size_limits(16 * MIB)] = 256 * MIB
    """Free space of a volume below which publishing is refused."""
    egress: Egress = Egress()
    """Where deliveries may go."""
    log_level: LogLevel = LogLevel.INFO
    """Least severe line that the brokers write."""


class BrokerPoolSpec(Model):
    """What a pool shall be. A key left out has its default."""

    model_config = checked(
        rule(
            "self.replicas <= 1 || has(self.metadata.postgres)",
            "SQLite serves one broker: set replicas to 1, or create the pool with "
            "metadata.postgres",
            field="replicas",
        ),
        rule(
            "quantity(string(self.config.minFreeBytes))"
            ".isLessThan(quantity(string(self.storage.size)))",
            "minFreeBytes leaves no room on a volume of this size: lower it or raise storage.size",
            field="config.minFreeBytes",
        ),
    )

    replicas: int = Field(default=1, ge=1, le=MAX_REPLICAS, strict=True)
    """Number of brokers. More than one needs Postgres."""
    image: Image | None = None
    """Image of the brokers; left out, the one that the operator came with."""
    image_pull_secrets: list[ObjectReference] = Field(
        default=[],
        max_length=16,
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    )
    """Secrets with which images are pulled."""
    storage: Storage = Storage()
    """The volume of each broker."""
    metadata: MetadataStore = MetadataStore(sqlite=Sqlite())
    """Where channels, subscriptions and cursors are kept. Fixed at creation."""
    resources: Resources = Resources(requests={"cpu": "250m", "memory": "256Mi"})
    """CPU and memory of each broker; left out, 250m and 256Mi are set aside for it, so that it is
    not the first to be ended on a full node, and comes before the jobs beside it."""
    listeners: Listeners = Listeners()
    """The doors of the brokers."""
    archive: PoolArchive | None = None
    """Archiving to tables; left out, no topic of this pool can be archived."""
    pod_template: PodTemplate = PodTemplate()
    """What the pods have besides what they need."""
    config: PoolConfig = PoolConfig()
    """Settings of the brokers."""


class PoolStorage(Model):
    capacity_bytes: Count | None = None
    """Bytes that the volumes hold, over all brokers."""
    used_bytes: Count | None = None
    """Bytes in use, over all brokers."""


class BrokerPoolStatus(Model):
    """What the operator observes."""

    observed_generation: Count | None = None
    """The generation that was last processed."""
    replicas: Count | None = None
    """Pods that there are."""
    ready_replicas: Count | None = None
    """Brokers that are ready."""
    ready: Text | None = None
    """Ready brokers of all that are wished for, as 3/3."""
    selector: Annotated[str, StringConstraints(max_length=1024)] | None = None
    """Label selector of the pods, for what scales by the scale subresource."""
    version: Text | None = None
    """Version of the brokers; with several, the lowest."""
    metadata_store: Literal["sqlite", "postgres"] | None = None
    """Where the metadata is."""
    storage: PoolStorage | None = None
    """How full the volumes are."""
    topics: Count | None = None
    """Topics on this pool."""
    conditions: Conditions = Field(default=[])
    """The state, aspect by aspect."""


class BrokerPool(Model):
    """Brokers that serve the topics of a namespace."""

    model_config = checked(
        rule(
            f"self.metadata.name.size() <= {MAX_POOL_NAME_LENGTH}",
            "pods and volumes are called after the pool: create it with a name of at most "
            f"{MAX_POOL_NAME_LENGTH} characters",
        ),
        rule(
            "!self.metadata.name.contains('.')",
            "a Service is called after the pool: create it with a name without dots",
        ),
    )

    api_version: Literal["ibrik.dev/v1beta1"] = "ibrik.dev/v1beta1"
    """Version of this schema."""
    kind: Literal["BrokerPool"] = "BrokerPool"
    """Always BrokerPool."""
    metadata: ObjectMeta
    """Identity."""
    spec: BrokerPoolSpec = BrokerPoolSpec()
    """The wish."""
    status: BrokerPoolStatus | None = None
    """The observation; ignored in a request."""
