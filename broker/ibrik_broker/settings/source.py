"""All settings of the broker, and where they come from: flags, environment, file, defaults.

An unknown name anywhere stops the start and names the nearest known one. pydantic's own
`extra="forbid"` does not see mistyped top-level environment variables, so names are checked here.
"""

import difflib
import json
import os
import re
import socket
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import BaseModel, StringConstraints, ValidationError, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from ibrik_broker.settings.groups import (
    AdminSettings,
    AuthSettings,
    CacheSettings,
    CredentialSettings,
    EgressSettings,
    HttpSettings,
    LimitSettings,
    Listener,
    LoggingSettings,
    LogSettings,
    MetadataSettings,
    PoolSettings,
    ShutdownSettings,
    TcpSettings,
    host_name,
)

PREFIX = "IBRIK_"
# Read by the `ibrik` command as a client; a broker started from the same shell passes them by.
CLIENT_VARIABLES = frozenset(
    {
        "IBRIK_ADMIN_TOKEN_FILE",
        "IBRIK_ADMIN_URL",
        "IBRIK_COPY_FROM",
        "IBRIK_COPY_TO",
        "IBRIK_DEBUG",
        "IBRIK_OUTPUT",
        "IBRIK_SERVER",
        "IBRIK_TOKEN",
        "IBRIK_TOKEN_FILE",
    }
)
SECRET_PREFIX = "IBRIK_SECRET_"  # noqa: S105 - a name, no secret
"""Variables that channels name as their secrets (`secretRef.env`); no settings."""
# Kubernetes gives every pod variables for the services of its namespace. A service called `ibrik`
# or `ibrik-orders` must not stop the start, so names of that shape are nobody's typing mistake.
SERVICE_LINK = re.compile(
    r"(_[A-Z0-9]+)*_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_[A-Z]+)?)$"
)
SERVICE_URL = re.compile(r"(tcp|udp|sctp)://")


class SettingsError(Exception):
    """A setting is unknown or wrong; the text is the sentence that the person reads."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    config: Path | None = None
    """File that holds settings, in JSON, YAML or TOML by its ending (flag `--config`)."""

    data: Path = Path("data")
    """Folder of the log, the ids of this broker and its SQLite database. One broker at a time."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = None
    """What this broker is called where it tells of itself; in a cluster the name of its pod. Empty:
    that of `pool.advertise_host` without the domain, or the host's."""

    dev: bool = False
    """For a laptop: topics are created on first use and registration is open. Refused when a
    listener is bound beyond loopback."""

    namespace: Annotated[
        str, StringConstraints(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")
    ] = "default"
    """Namespace of topics that are created over HTTP or by `--dev`."""

    http: HttpSettings = HttpSettings()
    """The data plane."""

    tcp: TcpSettings = TcpSettings()
    """The `PUB`/`FETCH` door."""

    admin: AdminSettings = AdminSettings()
    """Administration, health, metrics."""

    auth: AuthSettings = AuthSettings()
    """Registered publishers."""

    log: LogSettings = LogSettings()
    """The write-ahead log."""

    metadata: MetadataSettings = MetadataSettings()
    """The database of everything that is not a message."""

    pool: PoolSettings = PoolSettings()
    """Whether this broker is one of several."""

    limits: LimitSettings = LimitSettings()
    """What clients may ask of this process."""

    cache: CacheSettings = CacheSettings()
    """Memory that makes reading cheap."""

    egress: EgressSettings = EgressSettings()
    """Where deliveries may go."""

    credentials: CredentialSettings = CredentialSettings()
    """Where the secrets of channels are."""

    shutdown: ShutdownSettings = ShutdownSettings()
    """How the process ends."""

    logging: LoggingSettings = LoggingSettings()
    """What the process says about itself."""

    @property
    def broker_name(self) -> str:
        return self.name or host_name(self.pool.advertise_host or socket.gethostname())

    @property
    def metadata_url(self) -> str:
        if self.metadata.url is not None:
            return self.metadata.url.get_secret_value()
        return f"sqlite+aiosqlite:///{self.data.absolute() / 'metadata.db'}"

    @property
    def credentials_folder(self) -> Path:
        return self.credentials.folder or self.data.absolute() / "credentials"

    @property
    def is_on_loopback_only(self) -> bool:
        """Whether no listener can be reached from another machine."""
        return all(listener.is_loopback for listener in self._listeners().values())

    def _listeners(self) -> dict[str, Listener]:
        listeners: dict[str, Listener] = {"http": self.http, "admin": self.admin}
        if self.tcp.enabled:
            listeners["tcp"] = self.tcp
        return listeners

    @model_validator(mode="after")
    def _beyond_loopback_takes_care(self) -> Self:
        for name, listener in sorted(self._listeners().items()):
            if self.dev and not listener.is_loopback:
                raise ValueError(
                    f"dev opens registration, so it works on loopback only, but {name}.host is "
                    f"{listener.host}. Leave out --dev, or bind to 127.0.0.1"
                )
        if not self.admin.is_loopback and self.admin.token_file is None:
            raise ValueError(
                f"admin.host is {self.admin.host}: beyond loopback the admin door needs a token. "
                "Name a file that holds one in admin.token_file (IBRIK_ADMIN__TOKEN_FILE), or "
                "bind admin.host to 127.0.0.1"
            )
        return self

    @model_validator(mode="after")
    def _a_pool_shares_postgres(self) -> Self:
        url = self.metadata.url
        is_shared = url is not None and url.get_secret_value().startswith("postgresql")
        if self.pool.advertise_host is not None and not is_shared:
            raise ValueError(
                "pool.advertise_host makes this broker one of several, which share one Postgres. "
                "Name it in metadata.url (postgresql://USER:PASSWORD@HOST/DATABASE), or leave "
                "pool.advertise_host out"
            )
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        assert isinstance(init_settings, InitSettingsSource)
        named = init_settings.init_kwargs.get("config") or os.environ.get(f"{PREFIX}CONFIG")
        content = read_file(Path(named)) if named else {}
        return init_settings, env_settings, InitSettingsSource(settings_cls, init_kwargs=content)


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """All settings of this process, or SettingsError with a sentence.

    `flags` holds what the command line says, by dotted name (`log.segment_bytes`) or nested.
    """
    given = _nest(flags or {})
    _refuse_unknown(_leaves(given), "")
    for variable, value in sorted(os.environ.items()):
        if variable.startswith(PREFIX) and not _is_known_variable(variable, value):
            raise SettingsError(_unknown(variable, [*map(variable_of, known_names())], ""))
    try:
        return Settings(**given)
    except ValidationError as error:
        raise SettingsError("; ".join(_sentences(error))) from error
    except ValueError as error:  # A group given as JSON in one variable, and the JSON is broken.
        raise SettingsError(str(error)) from error


def read_file(path: Path) -> dict[str, Any]:
    """The content of a settings file, all its names known."""
    readers: dict[str, Callable[[str], Any]] = {
        ".json": json.loads,
        ".toml": tomllib.loads,
        ".yaml": yaml.safe_load,
        ".yml": yaml.safe_load,
    }
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise SettingsError(f"{path}: the ending says the format: .json, .yaml, .yml or .toml")
    try:
        content = reader(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise SettingsError(f"{path}: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise SettingsError(
            f"{path}: expected names and values at the top, not a {type(content).__name__}"
        )
    _refuse_unknown(_leaves(content), f" in {path}")
    return content


def known_names() -> list[str]:
    """Every setting as a dotted name: `log.segment_bytes`."""
    return list(_names_of(Settings, ""))


def variable_of(name: str) -> str:
    """The environment variable of a setting: `log.segment_bytes` is IBRIK_LOG__SEGMENT_BYTES."""
    return PREFIX + name.upper().replace(".", "__")


def _names_of(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _names_of(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name


def _is_known_variable(variable: str, value: str) -> bool:
    groups = {variable_of(name.split(".")[0]) for name in known_names()}
    if variable.upper() in {*map(variable_of, known_names()), *groups, *CLIENT_VARIABLES}:
        return True
    if variable.startswith(SECRET_PREFIX):
        return True
    # A `_PORT` of a service link has a URL as its value, which no setting of ours has.
    is_url_of_a_service = variable.endswith("_PORT") and SERVICE_URL.match(value) is not None
    return is_url_of_a_service or SERVICE_LINK.search(variable) is not None


def _leaves(content: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted names of what is given. A known group that is no mapping is left to pydantic."""
    for name, value in content.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def _refuse_unknown(names: Iterator[str], place: str) -> None:
    known = known_names()
    groups = {name.split(".")[0] for name in known if "." in name}
    for name in names:
        if name not in known and name not in groups:
            raise SettingsError(_unknown(name, known, place))


def _unknown(name: str, known: list[str], place: str) -> str:
    nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    # A name given without its group (`segment_bytes`) is nearest to the one that ends in it.
    nearest = [k for k in known if k.endswith(f".{name}")][:1] or nearest
    hint = f" (did you mean {nearest[0]}?)" if nearest else ""
    return f"unknown setting {name}{place}{hint}"


def _nest(flags: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for name, value in flags.items():
        *groups, last = name.split(".")
        at = nested
        for group in groups:
            at = at.setdefault(group, {})
        at[last] = {**at.get(last, {}), **value} if isinstance(value, Mapping) else value
    return nested


def _sentences(error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False):
        name = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            yield _unknown(name, known_names(), "")
            continue
        text = problem["msg"].removeprefix("Value error, ")
        given = "" if not name else f", not {problem['input']!r}"
        yield f"{name} ({variable_of(name)}): {text}{given}" if name else text
