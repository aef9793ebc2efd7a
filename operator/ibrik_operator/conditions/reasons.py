"""The closed list of reasons: one word each, what it means, and the next human step.

docs/reference/conditions.md is made from here; a message of a condition says the same with the
names at hand. Tests hold every reason that is written against this list.
"""

from enum import StrEnum
from typing import NamedTuple


class Entry(NamedTuple):
    meaning: str
    next_step: str


class Reason(StrEnum):
    READY = "Ready"
    AS_WISHED = "AsWished"
    PAUSED = "Paused"
    # topics
    CONFLICT = "Conflict"
    SPEC_REFUSED = "SpecRefused"
    POOL_NOT_FOUND = "PoolNotFound"
    POOL_NOT_READY = "PoolNotReady"
    BROKERS_UNAVAILABLE = "BrokersUnavailable"
    BROKER_REFUSED = "BrokerRefused"
    DELETION_WAITS = "DeletionWaits"
    # subscriptions
    TOPIC_NOT_FOUND = "TopicNotFound"
    TOPIC_NOT_READY = "TopicNotReady"
    DESTINATION_NOT_FOUND = "DestinationNotFound"
    DESTINATION_NOT_ALLOWED = "DestinationNotAllowed"
    # channels
    NOT_USED = "NotUsed"
    SECRET_MISSING = "SecretMissing"  # noqa: S105 - a word, no secret
    KEY_MISSING = "KeyMissing"
    CREDENTIALS_PENDING = "CredentialsPending"
    CREDENTIAL_STORE_FULL = "CredentialStoreFull"
    # archives
    BY_SPARK = "BySpark"
    BY_CRON_JOB = "ByCronJob"
    SUSPENDED = "Suspended"
    NO_ARCHIVE_TARGET = "NoArchiveTarget"
    VOLUME_NOT_SHAREABLE = "VolumeNotShareable"
    SCHEDULE_PENDING = "SchedulePending"
    SCHEDULE_REFUSED = "ScheduleRefused"
    ARCHIVE_FAILED = "ArchiveFailed"
    JOB_FAILED = "JobFailed"
    ARCHIVE_BEHIND = "ArchiveBehind"
    NOT_RUN_YET = "NotRunYet"
    # pools
    POD_TEMPLATE_INVALID = "PodTemplateInvalid"
    FORBIDDEN = "Forbidden"
    INVALID = "Invalid"
    STARTING = "Starting"
    IMAGE_UNAVAILABLE = "ImageUnavailable"
    CRASH_LOOPING = "CrashLooping"
    UNSCHEDULABLE = "Unschedulable"
    CLAIM_PENDING = "ClaimPending"
    BROKER_SILENT = "BrokerSilent"
    POSTGRES_UNREACHABLE = "PostgresUnreachable"
    STORAGE_LOW = "StorageLow"
    EXPANSION_UNSUPPORTED = "ExpansionUnsupported"
    RESIZING = "Resizing"
    BROKER_OWNS_TOPICS = "BrokerOwnsTopics"
    SCALE_DOWN_UNSURE = "ScaleDownUnsure"
    ROLLING = "Rolling"
    ROLL_WAITS = "RollWaits"
    DETACHED = "Detached"
    DETACH_STOPPED = "DetachStopped"


REASONS: dict[Reason, Entry] = {
    Reason.READY: Entry("Everything is as wished and serves.", "Nothing to do."),
    Reason.AS_WISHED: Entry("This aspect is as wished.", "Nothing to do."),
    Reason.PAUSED: Entry(
        "The annotation ibrik.dev/paused holds the operator back.",
        "Remove the annotation when the resource shall follow its spec again.",
    ),
    Reason.CONFLICT: Entry(
        "An older Topic of the namespace has this topic name.",
        "Set another spec.topicName, or delete the older Topic. Deleting this one deletes nothing.",
    ),
    Reason.SPEC_REFUSED: Entry(
        "The brokers cannot serve this spec; the previous one stays in force.",
        "Change the field that the message names.",
    ),
    Reason.POOL_NOT_FOUND: Entry(
        "There is no BrokerPool of this name in the namespace.",
        "Create it, or name another one in spec.pool.name of the Topic.",
    ),
    Reason.POOL_NOT_READY: Entry(
        "The pool is not ready yet.", "See the conditions of the BrokerPool."
    ),
    Reason.BROKERS_UNAVAILABLE: Entry(
        "No broker of the pool answered.",
        "Nothing, if the pool is starting; else see the conditions of the BrokerPool.",
    ),
    Reason.BROKER_REFUSED: Entry(
        "A broker could not carry it out; the operator tries again.",
        "Look up the code that the message begins with among the errors.",
    ),
    Reason.DELETION_WAITS: Entry(
        "The deletion is not done: the brokers have not confirmed it, or the topic is not empty.",
        "Empty the topic, or set the annotation ibrik.dev/force-delete to true, which leaves the "
        "data on the volume.",
    ),
    Reason.TOPIC_NOT_FOUND: Entry(
        "There is no Topic of this name in the namespace.",
        "Create it, or create the Subscription with another topicRef.",
    ),
    Reason.TOPIC_NOT_READY: Entry(
        "The Topic is not ready yet.", "See the conditions of the Topic."
    ),
    Reason.DESTINATION_NOT_FOUND: Entry(
        "There is no Channel of this name.",
        "Create it, or name another one in spec.channelRef. Messages wait meanwhile.",
    ),
    Reason.DESTINATION_NOT_ALLOWED: Entry(
        "The Channel is of another namespace and does not allow this one.",
        "Set allowedNamespaces to All in that Channel, or use a Channel of this namespace.",
    ),
    Reason.NOT_USED: Entry(
        "No pool serves this Channel yet.",
        "Name it in a Subscription, or create a Topic in its namespace.",
    ),
    Reason.SECRET_MISSING: Entry(
        "A Secret that the resource names does not exist.",
        "Create the Secret, or name another one.",
    ),
    Reason.KEY_MISSING: Entry(
        "A Secret exists but lacks the key that the resource names.",
        "Add the key to the Secret, or name another one.",
    ),
    Reason.CREDENTIALS_PENDING: Entry(
        "The brokers do not see the newest credentials yet; Kubernetes brings them within a minute "
        "or two.",
        "Wait; if it stays, see whether the pods are running.",
    ),
    Reason.CREDENTIAL_STORE_FULL: Entry(
        "The credentials of a pool's channels together exceed what a Secret holds (1 MiB).",
        "Use fewer or smaller secrets in the channels of this pool, or a further pool.",
    ),
    Reason.BY_SPARK: Entry("The Spark operator starts the archive's runs.", "Nothing to do."),
    Reason.BY_CRON_JOB: Entry(
        "A CronJob starts the archive's runs, since no Spark operator serves this namespace.",
        "Nothing; or install the Spark operator and let it serve the namespace.",
    ),
    Reason.SUSPENDED: Entry(
        "No run of the archive begins while brokers are replaced.",
        "Nothing; see the condition UpToDate of the BrokerPool.",
    ),
    Reason.NO_ARCHIVE_TARGET: Entry(
        "The Topic wants to be archived, and its pool does not say where to.",
        "Set spec.archive.target of the BrokerPool.",
    ),
    Reason.VOLUME_NOT_SHAREABLE: Entry(
        "The broker's claim is ReadWriteOncePod, so that no job can read it.",
        "Use a pool whose claims are ReadWriteOnce.",
    ),
    Reason.SCHEDULE_PENDING: Entry(
        "The schedule is being made, or the brokers have not been asked yet.",
        "Wait a minute; if it stays, see the conditions of the BrokerPool.",
    ),
    Reason.SCHEDULE_REFUSED: Entry(
        "The Spark operator does not take the schedule or its time zone.",
        "Correct spec.archive.schedule or spec.archive.timeZone of the Topic.",
    ),
    Reason.ARCHIVE_FAILED: Entry(
        "The last run of the archive failed; nothing is lost, and the next one goes on.",
        "Read what the message says, and the lines of the run.",
    ),
    Reason.JOB_FAILED: Entry(
        "A further job on the archive failed, or found what somebody has to look at; the archive "
        "itself goes on.",
        "Read the report in the lines of the run: the message says where.",
    ),
    Reason.ARCHIVE_BEHIND: Entry(
        "More is held back for the archive than spec.archive.holdMax allows.",
        "See why runs fail or take long; raise holdMax or the volume meanwhile.",
    ),
    Reason.NOT_RUN_YET: Entry(
        "No run of the archive has reported yet.",
        "Wait for the schedule, or set the annotation ibrik.dev/archive-now to a new value.",
    ),
    Reason.POD_TEMPLATE_INVALID: Entry(
        "Kubernetes does not accept spec.podTemplate or spec.resources.",
        "Correct the field that the message names.",
    ),
    Reason.FORBIDDEN: Entry(
        "The operator lacks a right, or a quota or an admission policy refuses an object.",
        "Grant the right, or raise the quota that the message names.",
    ),
    Reason.INVALID: Entry(
        "Kubernetes does not accept an object of the pool.",
        "Correct what the message names in the BrokerPool.",
    ),
    Reason.STARTING: Entry("Brokers are starting.", "Wait a moment."),
    Reason.IMAGE_UNAVAILABLE: Entry(
        "The image of the brokers cannot be pulled.",
        "Correct spec.image, or give spec.imagePullSecrets.",
    ),
    Reason.CRASH_LOOPING: Entry(
        "A broker ends soon after each start.",
        "Read its last lines: kubectl logs <pod> --previous.",
    ),
    Reason.UNSCHEDULABLE: Entry(
        "No node takes a pod of the pool.",
        "Add a node or lower spec.resources; the message says what lacks.",
    ),
    Reason.CLAIM_PENDING: Entry(
        "A volume is not bound.",
        "Name a StorageClass that exists in a new BrokerPool, or provide a volume.",
    ),
    Reason.BROKER_SILENT: Entry(
        "A pod is ready, but its broker does not answer the operator.",
        "See whether a NetworkPolicy keeps the operator from port 8081.",
    ),
    Reason.POSTGRES_UNREACHABLE: Entry(
        "Brokers do not reach their Postgres. Publishing and reading go on; leases, cursors and "
        "changes wait.",
        "Check the database and the address in the Secret.",
    ),
    Reason.STORAGE_LOW: Entry(
        "A volume is nearly full: publishing is refused.",
        "Raise spec.storage.size, or lower the retention of topics.",
    ),
    Reason.EXPANSION_UNSUPPORTED: Entry(
        "The StorageClass of the volumes does not allow growth.",
        "Put spec.storage.size back, or create a new pool on a class that allows it.",
    ),
    Reason.RESIZING: Entry("Volumes are growing.", "Wait."),
    Reason.BROKER_OWNS_TOPICS: Entry(
        "A broker that would go still owns topics, so the pool keeps its size.",
        "Delete those topics with their data, or put spec.replicas back.",
    ),
    Reason.SCALE_DOWN_UNSURE: Entry(
        "A broker that would go does not answer, so nobody knows what it owns.",
        "Wait until it answers, or put spec.replicas back.",
    ),
    Reason.ROLLING: Entry("Pods are replaced one at a time.", "Wait."),
    Reason.ROLL_WAITS: Entry(
        "Pods are to be replaced, but another one is not healthy.",
        "See why the pod that the message names is not ready.",
    ),
    Reason.DETACHED: Entry(
        "An event of a pool: a resource is gone, so its brokers stop serving it; its data stays.",
        "Nothing. Declare it again to have it back.",
    ),
    Reason.DETACH_STOPPED: Entry(
        "An event of a pool: more than half of what its brokers serve is not declared any more. "
        "That may be a mistake, so everything is served on.",
        "Declare the resources again, or set the annotation ibrik.dev/detach-absent of the "
        "BrokerPool to the number that may go.",
    ),
}
