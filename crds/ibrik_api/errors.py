"""One table of everything Ibrik refuses: code → status, title, whether a retry helps, what to do.

The HTTP door turns a `Refusal` into a problem document (RFC 9457), the TCP door into `ERR`, the
command line into one line. The reference page is generated from `CODES`. Library errors are
translated into a `Refusal` once, at the boundary of the layer that knows both.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PROBLEM_TYPE_BASE = "https://ibrik.dev/errors/"


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """What a code means: `cause` says why it happened, `advice` is the next step."""

    code: str
    status: int
    title: str
    cause: str
    advice: str
    retryable: bool = False
    retry_after_ms: int | None = None


# fmt: off
# A table reads best one row after the other: identity in the first line, then cause, then advice.
_ROWS = (
    # --- the request does not have the documented shape --------------------------------
    ErrorCode("body-not-decodable", 400, "Body not decodable",
        "The body is not what its Content-Encoding says: it is cut short or damaged.",
        "Compress the whole body anew, or send it without Content-Encoding."),
    ErrorCode("invalid-batch", 400, "Invalid record batch",
        "A raw batch is cut short, damaged, a control or transactional batch, or its "
        "header contradicts its records.",
        "Send whole record batches, format v2, made by a current Kafka-compatible codec."),
    ErrorCode("invalid-cloudevent", 400, "Invalid CloudEvent",
        "A required attribute (id, source, type, specversion 1.0) is missing or broken.",
        "Correct the attribute that the detail names, or send plain bytes without ce- headers."),
    ErrorCode("invalid-json", 400, "Invalid JSON",
        "The body, or one line of it, is not JSON of the documented shape.",
        "Correct the place that the detail names; nothing of an atomic request was written."),
    ErrorCode("invalid-lease", 400, "Invalid lease",
        "The lease token was not made by this cluster, or for another subscription.",
        "Send the token as it came with the message, to the subscription that gave it."),
    ErrorCode("invalid-name", 400, "Invalid name",
        "A name has other characters than [a-z0-9._-], a bad end, or over 253 characters.",
        "Use [a-z0-9._-], and begin and end with a letter or a digit."),
    ErrorCode("invalid-offset", 400, "Invalid offset",
        "An offset is a whole number from 0 to 9223372036854775807.",
        "Send offset=N, or from=earliest or from=latest."),
    ErrorCode("invalid-request", 400, "Invalid request",
        "A header, parameter or body does not have the documented shape.",
        "Correct the field that the detail names; the request changed nothing."),
    ErrorCode("unknown-command", 400, "Unknown command",
        "The TCP line begins with a word that is no command of the protocol.",
        "Send PUB, FETCH or PING; each line ends with CR LF."),
    ErrorCode("method-not-allowed", 405, "Method not allowed",
        "This path exists, but not with this method.",
        "Use a method that the Allow header of the answer lists."),
    ErrorCode("not-acceptable", 406, "Not acceptable",
        "The Accept header names no format that this path can answer with.",
        "Ask for application/json, or leave Accept out."),
    ErrorCode("request-timeout", 408, "Request timeout",
        "The request did not arrive whole in the time that is given to it.",
        "Send it again over a faster connection or in smaller parts.", True),
    ErrorCode("precondition-failed", 412, "Precondition failed",
        "The thing changed since it was read: If-Match names an older ETag.",
        "GET it again, apply the change to what you read, and send the new ETag."),
    ErrorCode("compression-bomb", 413, "Compression bomb",
        "The compressed body grows beyond the allowed size or ratio.",
        "Send smaller batches, or less compressible input without Content-Encoding."),
    ErrorCode("message-too-large", 413, "Message too large",
        "A message is larger than maxMessageBytes of its topic.",
        "Send a smaller message, or raise spec.maxMessageBytes of the topic."),
    ErrorCode("request-too-large", 413, "Request too large",
        "The body is larger than one request may be.",
        "Split the batch into several requests."),
    ErrorCode("uri-too-long", 414, "URI too long",
        "The request line is longer than 8 KiB.",
        "Send parameters in the body, or shorten them."),
    ErrorCode("batch-compressed", 415, "Compressed record batch",
        "A raw record batch is compressed inside; the broker stores batches uncompressed.",
        "Build the batch with compression none; compress the HTTP body instead "
        "(Content-Encoding: zstd)."),
    ErrorCode("unsupported-encoding", 415, "Unsupported content encoding",
        "The Content-Encoding is none of those that are understood.",
        "Use gzip, zstd or identity."),
    ErrorCode("unsupported-media-type", 415, "Unsupported media type",
        "The Content-Type is none of those that this path reads.",
        "Use a content type that the detail lists."),
    ErrorCode("expectation-failed", 417, "Expectation failed",
        "The Expect header asks for something other than 100-continue.",
        "Send Expect: 100-continue, or leave the header out."),
    ErrorCode("idempotency-mismatch", 422, "Idempotency key used for another payload",
        "The same message id was published before with a different payload or key.",
        "Use a new id for a new message; repeat the original bytes to repeat a message."),
    ErrorCode("immutable-field", 422, "Immutable field",
        "The change touches a field that is fixed when the topic is created.",
        "Put the old value back, or create a new topic and replay into it."),
    ErrorCode("invalid-destination", 422, "Invalid destination",
        "A URL, host, method or header cannot be used to deliver to.",
        "Correct the field that the detail names: http or https, no user in the URL, and no header "
        "that Ibrik or HTTP sets itself."),
    ErrorCode("invalid-filter", 422, "Invalid filter",
        "The filter is no CEL expression that gives true or false, or it is too large.",
        "Correct the place that the detail names; event, headers, key and data are known."),
    ErrorCode("invalid-messages", 422, "Invalid messages",
        "Some messages of the batch are invalid; nothing of the batch was written.",
        "Correct or leave out the messages that errors lists by index, and send the batch again."),
    ErrorCode("invalid-resource", 422, "Invalid resource",
        "The resource does not fit its schema.",
        "Correct every field that errors names; nothing was changed."),
    ErrorCode("partitions-shrink", 422, "Partitions cannot shrink",
        "The number of partitions can grow but never shrink: records would be lost.",
        "Keep the number, or create a new topic and replay into it."),
    ErrorCode("unsupported-field", 422, "Field not served yet",
        "A field has another value than its default, and this version does not serve it.",
        "Leave the field out, or set it to the default that the detail names."),
    ErrorCode("unsupported-kind", 422, "Kind not served yet",
        "This version does not serve resources of this kind or apiVersion.",
        "Send apiVersion ibrik.dev/v1beta1 and kind Topic, Channel or Subscription."),
    ErrorCode("headers-too-large", 431, "Headers too large",
        "The headers of the request are larger than allowed.",
        "Send fewer or shorter headers; put large values in the body."),
    # --- the thing is not there, or not where it was -----------------------------------
    ErrorCode("not-found", 404, "Not found",
        "Nothing answers at this path.",
        "See the list of paths at /docs or /openapi.json."),
    ErrorCode("owner-elsewhere", 421, "Owner elsewhere",
        "Another broker of the pool owns the topic, and this door cannot pass the request on.",
        "Use the door of the broker that the detail names, or HTTP, which passes it on."),
    ErrorCode("subscription-detached", 404, "Subscription detached",
        "The subscription was deleted with deletionPolicy Retain: its cursor is kept, not served.",
        "Create or apply a subscription of the same name to go on where it was."),
    ErrorCode("topic-detached", 404, "Topic detached",
        "The topic was deleted with deletionPolicy Retain: its data is kept, not served.",
        "Create or apply a topic of the same name to adopt it again, id and data included."),
    ErrorCode("unknown-channel", 404, "Unknown channel",
        "There is no channel of this name.",
        "Create it with PUT /v1/channels/{name}, or list what there is: ibrik channel ls."),
    ErrorCode("unknown-client", 404, "Unknown client",
        "There is no client of this name.",
        "Register it with PUT /v1/clients/{name}."),
    ErrorCode("unknown-partition", 404, "Unknown partition",
        "The topic has fewer partitions than the number asked for.",
        "Ask for a partition that GET /v1/topics/{topic}/partitions lists."),
    ErrorCode("unknown-publisher", 404, "Unknown publisher",
        "There is no publisher of this name.",
        "Register it with POST /v1/topics/{topic}/publishers."),
    ErrorCode("unknown-replay", 404, "Unknown replay",
        "There is no replay of this id.",
        "List them with GET /v1/replays."),
    ErrorCode("unknown-subscription", 404, "Unknown subscription",
        "There is no subscription of this name.",
        "Create it with PUT /v1/subscriptions/{name}, or look: ibrik subscription ls."),
    ErrorCode("unknown-topic", 404, "Unknown topic",
        "There is no topic of this name.",
        "Create it with: ibrik topic create NAME"),
    ErrorCode("offset-below-start", 410, "Offset below the log start",
        "Records at this offset were removed by retention or a purge.",
        "Read from earliest of this answer, and count what lies between as a gap."),
    ErrorCode("lease-expired", 410, "Lease expired",
        "The lease passed its deadline, or someone moved the cursor: the message is not yours.",
        "Drop the result, lease again, and extend leases of work that takes longer."),
    ErrorCode("offset-above-end", 416, "Offset above the end of the log",
        "No record has this offset yet; the next one to be written has latest.",
        "Read from latest of this answer with wait=, or check where the offset came from."),
    # --- who may ------------------------------------------------------------------------
    ErrorCode("unauthorized", 401, "Unauthorized",
        "The token is missing, unknown or expired.",
        "Send Authorization: Bearer with a token of this broker."),
    ErrorCode("egress-denied", 403, "Egress denied",
        "The address may not be delivered to: this machine, a link-local or metadata address, or "
        "a range that the settings do not allow.",
        "Deliver to another address, or allow the range with the setting egress.allow."),
    ErrorCode("foreign-origin", 403, "Foreign origin",
        "A page of another site asked a browser to change something here.",
        "Send the request from a program, or from a page that this door serves itself."),
    ErrorCode("publisher-not-registered", 403, "Publisher not registered",
        "The topic takes messages from registered publishers only.",
        "Register with POST /v1/topics/{topic}/publishers and send the token it answers."),
    # --- the state of things says no ----------------------------------------------------
    ErrorCode("beyond-sealed", 409, "Beyond the sealed end",
        "An archive job reports messages that the broker has not sealed: its table is not of this "
        "log as it is now.",
        "Look whether an older volume was restored. Archive this log to a new table, or restore "
        "the newer volume."),
    ErrorCode("channel-exists", 409, "Channel exists",
        "There is a channel of this name, with other settings.",
        "Use it as it is, or change it with PUT /v1/channels/{channel} and If-Match."),
    ErrorCode("channel-in-use", 409, "Channel in use",
        "Subscriptions deliver to this channel.",
        "Delete the subscriptions that the detail names, or let them deliver elsewhere."),
    ErrorCode("consumer-conflict", 409, "Another consumer holds the subscription",
        "An exclusive subscription serves one consumer at a time.",
        "Stop the other consumer, wait for its leases to end, or make the subscription shared."),
    ErrorCode("managed-by-resource", 409, "Managed by a resource",
        "It comes from a resource and is read-only over HTTP.",
        "Change the resource that the detail names, with kubectl or ibrik apply."),
    ErrorCode("other-topic-id", 409, "Another topic of this name",
        "An archive job reports for a topic id that this topic does not have.",
        "A topic that was deleted and made anew is another topic: archive it to a table of its "
        "own, and look at its id with ibrik topic describe."),
    ErrorCode("out-of-order-sequence", 409, "Out of order sequence",
        "The batch does not follow the last one of this producer: one between is missing.",
        "Send the batch with the expected sequence first, or take a new producer id."),
    ErrorCode("producer-fenced", 409, "Producer fenced",
        "A newer epoch of this producer id has published; this one is out of date.",
        "Stop this instance, or take a new id with POST /v1/producers."),
    ErrorCode("resource-conflict", 409, "Claimed by another resource",
        "Another resource already owns this name; the oldest wins.",
        "Choose another name, or delete the resource that the detail names."),
    ErrorCode("shared-needs-pull", 409, "Shared delivery needs pull",
        "A queue topic gives each message to one: it has a push subscription already.",
        "Let the consumers lease from one shared subscription, or use a broadcast topic."),
    ErrorCode("stale-generation", 409, "Stale generation",
        "A newer generation of this resource was applied before.",
        "Read the resource again and apply its current generation."),
    ErrorCode("subscription-exists", 409, "Subscription exists",
        "There is a subscription of this name, with other settings.",
        "Use it as it is, or change it with PUT /v1/subscriptions/{subscription} and If-Match."),
    ErrorCode("subscription-paused", 409, "Subscription paused",
        "Someone paused the subscription, or it stopped at a gap; the cursor stays.",
        "Resume it with POST /v1/subscriptions/{subscription}:resume."),
    ErrorCode("topic-exists", 409, "Topic exists",
        "There is a topic of this name, with other settings.",
        "Use it as it is, or change it with PUT /v1/topics/{topic} and If-Match."),
    ErrorCode("topic-not-empty", 409, "Topic not empty",
        "deletionPolicy DeleteIfEmpty keeps a topic that holds messages.",
        "Purge it first with POST /v1/topics/{topic}:purge, or set deletionPolicy to "
        "Delete or Retain."),
    ErrorCode("too-many-replays", 409, "Too many replays",
        "As many replays run as may run at once.",
        "Wait for one to end, or cancel one with DELETE /v1/replays/{id}."),
    ErrorCode("unknown-producer", 409, "Unknown producer",
        "The broker holds no state of this producer id: it was never given out or it expired.",
        "Take a new id with POST /v1/producers and begin at sequence 0."),
    ErrorCode("wrong-mode", 409, "Wrong mode",
        "The subscription is not read this way: push is sent, pull is leased, stream is listened "
        "to.",
        "Do what the detail says, or create another subscription with the mode that you need."),
    # --- later ----------------------------------------------------------------------------
    ErrorCode("buffer-full", 429, "Buffer full",
        "The input buffer of the partition is full: records arrive faster than they are flushed.",
        "Wait as long as Retry-After says and send again; raise spec.buffer for bursts.",
        True, 1_000),
    ErrorCode("archive-behind", 503, "Archive behind",
        "Retention holds back more messages for the archive than archive.holdMax allows, and its "
        "action is block.",
        "Look why the archive job does not run: ibrik archive status. Publishing resumes by itself "
        "when it has caught up; raise archive.holdMax to publish before.",
        True, 10_000),
    ErrorCode("metadata-unavailable", 503, "Metadata database unavailable",
        "The metadata database does not answer; publishing and reading go on.",
        "Try again; check the database that the broker's settings name.", True, 2_000),
    ErrorCode("not-ready", 503, "Not ready",
        "The broker is starting and recovers its logs.",
        "Wait for /readyz to answer 200 and send again.", True, 1_000),
    ErrorCode("owner-unavailable", 503, "Owner unavailable",
        "The broker that owns this topic is down.",
        "Try again; the topic is served as soon as its broker is back.", True, 2_000),
    ErrorCode("shutting-down", 503, "Shutting down",
        "The broker drains: it completes what it accepted and takes nothing new.",
        "Send again to the service; another broker or the restarted one answers.", True, 2_000),
    ErrorCode("storage-full", 503, "Storage full",
        "Free space on the volume is below the low-water mark; reading goes on.",
        "Grow the volume or lower the retention of large topics; publishing resumes by itself.",
        True, 10_000),
    ErrorCode("too-many-connections", 503, "Too many connections",
        "The broker serves as many connections as it is allowed to.",
        "Close idle connections, reuse them, or raise the limit in the settings.", True, 1_000),
    ErrorCode("topic-unavailable", 503, "Topic unavailable",
        "The row or the folder of the topic is missing or unreadable, so it is not served.",
        "Nothing was deleted. Restore what the detail names, or run ibrik log adopt TOPIC-ID."),
    # --- the broker's own trouble ---------------------------------------------------------
    ErrorCode("corrupt-range", 500, "Corrupt range",
        "Records in this range fail their checksum and are never served; the rest is.",
        "Run ibrik log verify, restore the segment from a backup, or read on after the range."),
    ErrorCode("internal", 500, "Internal error",
        "The broker hit a defect; the log holds the details under this request's id.",
        "Try again; if it stays, report it with the log line."),
    ErrorCode("storage-failed", 500, "Storage failed",
        "The disk refused a write or a flush; the broker ends and recovers from the disk.",
        "Whether the message was kept is unknown: send it again with the same id. Check the disk.",
        True, 5_000),
    # --- a broker that does not start -----------------------------------------------------
    ErrorCode("database-of-another-cluster", 500, "Database of another cluster",
        "The metadata database belongs to another data folder.",
        "Point the broker to its own database, or to an empty one."),
    ErrorCode("foreign-file", 500, "Foreign file in the data folder",
        "The data folder holds something that Ibrik did not write.",
        "Choose an empty folder with --data, or move the file away."),
    ErrorCode("newer-database", 500, "Database of a newer version",
        "The metadata database was written by a newer version that this one cannot read.",
        "Start the newer version again, or restore a backup made before the upgrade."),
    ErrorCode("permission-denied", 500, "Permission denied",
        "The broker may not read or write a file that it needs.",
        "Give its user the right to the path that the detail names."),
    ErrorCode("unknown-format", 500, "Unknown format",
        "The data folder was written in a format that this version does not know.",
        "Start the version that wrote it, or choose another folder with --data."),
    ErrorCode("volume-in-use", 500, "Data folder in use",
        "Another broker serves this data folder; only one may at a time.",
        "Choose another folder with --data, or stop that broker."),
)
# fmt: on

CODES: Mapping[str, ErrorCode] = {row.code: row for row in _ROWS}


class Refusal(Exception):
    """A request that is refused: the code says why, the facts help to mend it."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        errors: Sequence[Mapping[str, Any]] = (),
        retry_after_ms: int | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(detail)
        row = CODES[code]
        self.code = code
        self.detail = detail
        self.status = row.status
        self.retryable = row.retryable
        self.errors = list(errors)
        self.retry_after_ms = row.retry_after_ms if retry_after_ms is None else retry_after_ms
        self.facts = facts

    def problem(self) -> dict[str, Any]:
        """The problem document: RFC 9457 members, then ours, then the facts of this one refusal."""
        document: dict[str, Any] = {
            "type": PROBLEM_TYPE_BASE + self.code,
            "title": CODES[self.code].title,
            "status": self.status,
            "detail": self.detail,
            "code": self.code,
            "retryable": self.retryable,
        }
        if self.errors:
            document["errors"] = self.errors
        if self.retry_after_ms is not None:
            document["retry_after_ms"] = self.retry_after_ms
        return document | self.facts
