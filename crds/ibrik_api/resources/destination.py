"""Where messages are delivered to, and how: shared by Channel and by a subscription's inline push.

Rules on addresses, methods and headers that a schema cannot say live in `destination_rules`.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field, StringConstraints

from ibrik_api.durations import SECOND_MS, DurationMs, duration_limits
from ibrik_api.model import Model
from ibrik_api.names import Name
from ibrik_api.resources.cel import checked, rule

Port = Annotated[int, Field(ge=1, le=65_535, strict=True)]
Host = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Path = Annotated[str, StringConstraints(min_length=1, max_length=2048, pattern="^/")]
FileName = Annotated[
    str, StringConstraints(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]*$")
]

MAX_HEADERS = 32
DEFAULT_CONCURRENCY = 16
MAX_CONCURRENCY = 256


class Method(StrEnum):
    POST = "POST"
    PUT = "PUT"
    PATCH = "PATCH"


class HttpDestination(Model):
    """An HTTP endpoint; the body is the message's bytes."""

    model_config = checked(
        rule(
            "self.url.matches('^[hH][tT][tT][pP][sS]?://')",
            "it has to begin with http:// or https://",
            field="url",
        ),
        rule(
            "!self.url.matches('^[^/]*//[^/?#]*@')",
            "it holds a user or a password: take them out and use auth",
            field="url",
        ),
        rule(
            "!self.url.contains('#')",
            "it has a fragment, which is never sent: leave out # and what follows",
            field="url",
        ),
    )

    url: Annotated[str, StringConstraints(min_length=8, max_length=2048)]
    """Address, http:// or https://, without user and password in it."""
    method: Method = Method.POST
    """Method of each request."""
    headers: dict[
        Annotated[str, StringConstraints(min_length=1, max_length=128)],
        Annotated[str, StringConstraints(max_length=4096)],
    ] = Field(default={}, max_length=MAX_HEADERS)
    """Headers sent with each message, besides those of the message; not for secrets."""


class ServiceDestination(Model):
    """A Kubernetes Service in the namespace of the resource, by name."""

    name: Name
    """Name of the Service."""
    port: Port = 80
    """Port of the Service."""
    path: Path = "/"
    """Path of each request."""
    method: Method = Method.POST
    """Method of each request."""


class TcpDestination(Model):
    """A program that reads `MSG <offset> <size>` and answers `OK <offset>` or `ERR`."""

    host: Host
    """Name or address."""
    port: Port
    """TCP port."""
    tls: bool = Field(default=False, strict=True)
    """Whether the connection is encrypted and the certificate checked."""


class TopicDestination(Model):
    """Another topic of this broker."""

    name: Name
    """Name of the topic at the broker."""


class SecretReference(Model):
    """Where a secret is read from. The value itself never enters a resource or the database.

    Exactly one of file, env, or name with key.
    """

    model_config = checked(
        rule(
            "[has(self.file), has(self.env), has(self.name)].exists_one(given, given)",
            "exactly one of file, env, and name with key is needed",
        ),
        rule(
            "has(self.name) == has(self.key)",
            "name and key belong together: give both, or neither",
        ),
    )

    file: FileName | None = None
    """File in the broker's folder of credentials; read again when it changes."""
    env: Annotated[str, StringConstraints(max_length=128, pattern="^IBRIK_SECRET_[A-Z0-9_]+$")] | (
        None
    ) = None
    """Variable of the broker's environment; its name begins with IBRIK_SECRET_."""
    name: Name | None = None
    """Name of a Kubernetes Secret in the namespace of the resource."""
    key: FileName | None = None
    """Key in that Secret."""


class BasicAuth(Model):
    username: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    """User name."""
    secret_ref: SecretReference
    """The password."""


class BearerAuth(Model):
    secret_ref: SecretReference
    """The token that follows `Bearer`."""


class Auth(Model):
    """How the broker says who it is: at most one of them."""

    model_config = checked(
        rule(
            "!(has(self.bearer) && has(self.basic))",
            "bearer and basic exclude each other: keep one",
        )
    )

    bearer: BearerAuth | None = None
    """Authorization: Bearer."""
    basic: BasicAuth | None = None
    """Authorization: Basic."""


class Tls(Model):
    ca_secret_ref: SecretReference | None = None
    """Certificates (PEM) that are trusted instead of those of the system."""


class Signing(Model):
    """Signatures after Standard Webhooks."""

    secret_ref: SecretReference
    """One `whsec_…` secret a line; each signs, so that receivers can change over in between."""


class Limits(Model):
    concurrency: int = Field(default=DEFAULT_CONCURRENCY, ge=1, le=MAX_CONCURRENCY, strict=True)
    """Messages on their way to this destination at once."""
    rate: Annotated[int, Field(ge=1, le=1_000_000, strict=True)] | None = None
    """Messages a second at most; left out means unlimited."""


class Destination(Model):
    """Exactly one of http, service, tcp and topic, and how to deliver there."""

    model_config = checked(
        rule(
            "[has(self.http), has(self.service), has(self.tcp), has(self.topic)]"
            ".exists_one(given, given)",
            "exactly one of http, service, tcp and topic is needed: keep one",
        ),
        rule(
            "has(self.http) || has(self.service) || "
            "!(has(self.auth.bearer) || has(self.auth.basic))",
            "only HTTP has authorization: leave auth out for tcp and topic",
            field="auth",
        ),
        rule(
            "has(self.http) || has(self.service) || !has(self.signing)",
            "only HTTP requests are signed: leave signing out for tcp and topic",
            field="signing",
        ),
        rule(
            "!has(self.tls.caSecretRef) || (has(self.tcp) && self.tcp.tls) || "
            "(has(self.http) && self.http.url.matches('^[hH][tT][tT][pP][sS]://'))",
            "the connection is not encrypted: use https:// or tcp.tls, or leave tls out",
            field="tls",
        ),
    )

    http: HttpDestination | None = None
    """An HTTP endpoint."""
    service: ServiceDestination | None = None
    """A Kubernetes Service in the same namespace."""
    tcp: TcpDestination | None = None
    """A program that speaks the TCP protocol."""
    topic: TopicDestination | None = None
    """Another topic of this broker."""
    auth: Auth = Auth()
    """How the broker says who it is; http and service only."""
    tls: Tls = Tls()
    """Whom the broker trusts."""
    signing: Signing | None = None
    """Sign each request; http and service only."""
    limits: Limits = Limits()
    """How fast to deliver."""
    timeout_ms: Annotated[DurationMs, duration_limits(SECOND_MS, 120 * SECOND_MS)] = Field(
        default=15 * SECOND_MS, alias="timeout"
    )
    """Time for one attempt, from the connection to the last byte of the answer."""

    @property
    def kind(self) -> str:
        """`http`, `service`, `tcp` or `topic`; the first one that is given."""
        return next(kind for kind in KINDS if getattr(self, kind) is not None)


KINDS = ("http", "service", "tcp", "topic")
