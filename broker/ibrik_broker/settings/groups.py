"""The groups of settings, each field with its unit and the reason for its default.

A *setting* belongs to the process and is read once at the start; what belongs to a topic (its
retention, its buffer) is the Topic resource's `spec`. `source.py` puts the groups
together and reads them; this module does not know where values come from. Sizes may be written
`256Mi`, times `30s`: the unit in a name is that of a bare number.
"""

import ipaddress
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    StringConstraints,
    field_validator,
    model_validator,
)
from pydantic_settings import NoDecode

from ibrik_broker.settings.egress import parse_rule
from ibrik_broker.settings.units import Bytes, Milliseconds

Port = Annotated[int, Field(ge=0, le=65_535)]
Host = Annotated[str, StringConstraints(min_length=1, max_length=253)]
Size = Annotated[Bytes, Field(ge=0, le=2**50)]
Duration = Annotated[Milliseconds, Field(ge=0, le=366 * 86_400_000)]
Count = Annotated[int, Field(ge=1, le=1_000_000)]


def _listed(value: object) -> object:
    """An environment variable holds a list with commas between."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


Texts = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]
Networks = Annotated[tuple[IPvAnyNetwork, ...], NoDecode, BeforeValidator(_listed)]


def host_name(host: str) -> str:
    """A host without its domain, `ibrik-default-0`; an address as it is."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return host.partition(".")[0]
    return host


class Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class Listener(Group):
    port: Port
    """TCP port; 0 takes a free one."""

    host: Host = "127.0.0.1"
    """Address to bind. Loopback by default: nobody is surprised by an open port. In a container
    set `0.0.0.0`, since its loopback cannot be reached from outside."""

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the listener; a name counts only if `localhost`."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False


class HttpSettings(Listener):
    port: Port = 8080
    """TCP port of the data plane (`/v1`); 0 takes a free one, which the banner names."""

    open_registration: bool = False
    """Whether everybody who reaches the door may create and delete topics, channels, subscriptions,
    publishers and clients. Off: beyond loopback that needs the admin token (`admin.token_file`).
    On loopback it is always open."""


class TcpSettings(Listener):
    port: Port = 7070
    """TCP port of the `PUB`/`FETCH` protocol; 0 takes a free one."""

    enabled: bool = True
    """Whether the TCP door opens at all. It knows no tokens yet: close it where
    the network is shared."""


class AdminSettings(Listener):
    port: Port = 8081
    """TCP port of `/admin/v1`, health and metrics; 0 takes a free one."""

    token_file: Path | None = None
    """File that holds the admin tokens, one per line, or a folder with the files `current`,
    `previous` and `archive`, as a mounted Secret is; read again when it changes, so that a token
    rotates without a restart. The token in `archive` opens only what archive jobs need. Needed
    beyond loopback."""


class LogSettings(Group):
    segment_bytes: Annotated[Bytes, Field(ge=16 * 1024, le=2**31 - 1)] = 2**31 - 1
    """Upper bound in bytes for the segments of every topic: a segment rolls at the smaller of this
    and the topic's `segment.bytes`. The default is the format's own bound: positions
    in an index have 31 bits."""

    min_free_bytes: Size = 256 * 2**20
    """Free bytes below which publishing is refused with `storage-full`, before the file system is
    really full: room that retention, checkpoints and the metadata database need to go on."""

    flush: Literal["auto", "fdatasync", "pool", "syncfs"] = "auto"
    """How a group is flushed. `auto` looks at the start: up to 4 dirty files in parallel by
    fdatasync; more by one syncfs when the data folder is its own mount, else by a pool of 16."""


class MetadataSettings(Group):
    url: SecretStr | None = None
    """SQLAlchemy URL of the metadata database (`sqlite+aiosqlite:///…`, `postgresql+asyncpg://…`).
    Empty: SQLite in `metadata.db` of the data folder, which needs nothing installed."""


class PoolSettings(Group):
    """Several brokers on one Postgres, that serve their topics together."""

    advertise_host: Host | None = None
    """Host name or address at which the other brokers of the pool reach this one, on the ports of
    its listeners. Empty: this broker is alone. Needs Postgres in `metadata.url`."""

    @property
    def is_member(self) -> bool:
        return self.advertise_host is not None


class LimitSettings(Group):
    """What the doors take at most. At a limit a request is refused, never buffered beyond it."""

    body_bytes: Size = 32 * 2**20
    """Largest HTTP body in bytes after decompression. A batch is held in memory until it is
    validated as a whole."""

    compression_ratio: Annotated[float, Field(ge=1, le=10_000)] = 100
    """Most that a compressed body may grow. JSON reaches 5 to 20; a bomb needs over 1,000."""

    in_flight_bytes: Size = 128 * 2**20
    """Bytes of all publish requests that are not answered yet, over all connections. Beyond it
    HTTP answers 429 `buffer-full` and TCP connections are not read from."""

    connections: Count = 4_096
    """Open connections per door. Beyond it TCP answers `ERR too-many-connections` and closes."""

    connection_bytes: Size = 4 * 2**20
    """Unacknowledged bytes of one TCP connection at which reading from it pauses. One topic's
    default buffer is 16 MiB, so that no single connection fills it."""

    write_buffer_bytes: Size = 1 * 2**20
    """Bytes of replies that wait for a slow reader of one connection; above it neither commands
    are taken from it nor data is read for it."""

    idle_timeout_ms: Duration = 10 * 60_000
    """A connection without any traffic is closed after this time."""

    slow_timeout_ms: Duration = 30_000
    """Time in which a started request (HTTP head or body, a TCP command and its payload) has to be
    complete, unless bytes keep coming fast enough (see `slow_bytes_per_second`)."""

    slow_bytes_per_second: Annotated[int, Field(ge=1)] = 1_024
    """Least rate of a body that has already taken `slow_timeout_ms`."""

    request_timeout_ms: Duration = 30_000
    """Time in which an accepted publish has to be answered, else 503 `not-ready`. The record may
    still be appended: a retry with the same id is safe."""

    wait_ms: Duration = 60_000
    """Longest `wait=` of a read that finds nothing."""


class AuthSettings(Group):
    """How registered publishers are known besides their tokens."""

    gatekeeper_header: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,64}$")] | None = (
        None
    )
    """Header in which a proxy names the publisher it has checked, such as `X-Forwarded-User`."""

    gatekeeper_addresses: Networks = ()
    """Networks that the proxy connects from (`10.1.2.3`, `10.0.0.0/8`); from any other address the
    header is ignored."""

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        if (self.gatekeeper_header is None) != (not self.gatekeeper_addresses):
            raise ValueError(
                "auth.gatekeeper_header and auth.gatekeeper_addresses belong together: name the"
                " header and the networks that may send it, or neither"
            )
        return self


class CacheSettings(Group):
    tail_bytes: Size = 64 * 2**20
    """Encoded batches kept in memory over all partitions, so that readers at the tail cost no
    read and share one buffer."""


class EgressSettings(Group):
    """Where deliveries may go. Some addresses are denied whatever these say: see the guide."""

    allow_loopback: bool | None = None
    """Whether deliveries may go to this machine's loopback. Left out: only when every listener is
    bound to loopback, as on a laptop. The broker's own ports stay denied."""

    allow_private: bool | None = None
    """Whether deliveries may go to any private address (RFC 1918, unique local, shared). Left out:
    only when every listener is bound to loopback. In a cluster, name what is meant in `allow`."""

    allow: Texts = ()
    """Private destinations that are allowed: networks (`10.0.0.0/8`), names (`payments.internal`),
    endings of names (`*.shop.svc`), each with a port if wished (`payments.internal:443`).
    A variable holds them with commas between. Public addresses need no rule."""

    @field_validator("allow")
    @classmethod
    def _are_rules(cls, allow: tuple[str, ...]) -> tuple[str, ...]:
        for text in allow:
            parse_rule(text)
        return allow


class CredentialSettings(Group):
    folder: Path | None = None
    """Folder of the files that channels name as their secrets; read again when one changes, so
    that a secret rotates without a restart. Empty: `credentials` in the data folder."""


class ShutdownSettings(Group):
    drain_ms: Duration = 20_000
    """Time after SIGTERM in which requests in flight finish. Below the 30 s that Kubernetes gives
    by default, so that the flush and the clean markers that follow still fit."""


class LoggingSettings(Group):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severe line that is written."""

    form: Literal["auto", "json", "console"] = "auto"
    """`json` is one object a line; `console` is for people; `auto` is console on a terminal."""
