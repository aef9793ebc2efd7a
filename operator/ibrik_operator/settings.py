"""Settings of the operator: environment variables, as the chart sets them.

An unknown IBRIK_OPERATOR_ variable stops the start and names the nearest known one.
"""

import difflib
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from ibrik_api.resources.pool import BrokerPoolSpec

PREFIX = "IBRIK_OPERATOR_"
FAULT_VARIABLE = "IBRIK_OPERATOR_FAULT"


class SettingsError(Exception):
    """A setting is unknown or wrong; the text is the sentence that the person reads."""


def _listed(value: object) -> object:
    """An environment variable holds a list with commas between."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_listed)]


def _paired(value: object) -> object:
    """An environment variable holds labels as name=value, with commas between."""
    if not isinstance(value, str):
        return value
    pairs = [part.partition("=") for part in value.split(",") if part.strip()]
    for name, equals, _ in pairs:
        if not name.strip() or not equals:
            raise ValueError("write labels as name=value, with commas between")
    return {name.strip(): text.strip() for name, _, text in pairs}


Labels = Annotated[dict[str, str], NoDecode, BeforeValidator(_paired)]


class Group(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class LeaseSettings(Group):
    namespace: str = ""
    """Namespace of the Lease that one replica holds. Empty: no election, this process leads; for
    one operator on a laptop."""

    name: str = "ibrik-operator"
    """Name of the Lease."""


class HttpSettings(Group):
    host: str = "127.0.0.1"
    """Address of `/healthz`, `/readyz` and `/metrics`; the chart says `0.0.0.0`."""

    port: Annotated[int, Field(ge=0, le=65_535)] = 8080
    """Port of the same; 0 takes a free one."""


class ArchiveSettings(Group):
    unheard_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 60_000
    """How long the Spark operator may leave a schedule unnoticed before a CronJob does its work."""

    start_ms: Annotated[int, Field(ge=1_000, le=86_400_000)] = 600_000
    """How long a run of the Spark operator may take to begin before it is deleted."""


class LoggingSettings(Group):
    level: Literal["debug", "info", "warning", "error"] = "info"
    """The least important level that is written."""


class Settings(BaseSettings):
    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        use_attribute_docstrings=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
    )

    namespaces: Names = ()
    """Namespaces to serve, with commas between; empty serves all."""

    broker_image: str = "ibrik/broker:dev"
    """Image of pools that name none."""

    spark_image: str = "ibrik/spark:dev"
    """Image of the archive jobs of pools that name none."""

    image_pull_secrets: Names = ()
    """Names of pull secrets for pools that name none; they must exist in the pool's namespace."""

    default_pool_file: Path | None = None
    """YAML file with the `spec` of the pool `default`, which is made when the first resource of a
    namespace needs it. Without it the defaults of a BrokerPool."""

    network_policies: bool = False
    """Whether each pool gets a NetworkPolicy."""

    metrics_namespace_labels: Labels = {}
    """Labels of the namespaces from which those policies let everybody reach port 8081 for metrics,
    as `name=value` with commas between: `kubernetes.io/metadata.name=monitoring`. A namespace needs
    all of them; without any label nobody but the pool and the operator is let in."""

    identity: str = Field(default_factory=socket.gethostname)
    """Name of this replica in the Lease; without it the name of the host. The chart gives the name
    of the pod."""

    resync_ms: Annotated[int, Field(ge=1_000, le=3_600_000)] = 60_000
    """Pause between two comparisons of everything with what the brokers serve."""

    lease: LeaseSettings = LeaseSettings()
    """Which of several replicas works."""

    archive: ArchiveSettings = ArchiveSettings()
    """How patient the operator is with archive jobs."""

    http: HttpSettings = HttpSettings()
    """Health and metrics."""

    logging: LoggingSettings = LoggingSettings()
    """What the process says about itself."""

    def default_pool(self) -> dict[str, Any]:
        """The spec of the pool `default`, only what the file says.

        Raises:
            SettingsError: The file cannot be read, or holds no BrokerPoolSpec.
        """
        if self.default_pool_file is None:
            return {}
        try:
            spec = yaml.safe_load(self.default_pool_file.read_text(encoding="utf-8")) or {}
            BrokerPoolSpec.model_validate(spec)
        except (OSError, yaml.YAMLError, ValidationError) as error:
            raise SettingsError(f"{self.default_pool_file}: {error}") from error
        assert isinstance(spec, dict)
        return spec


def load_settings() -> Settings:
    """All settings of this process, or SettingsError with a sentence."""
    known = [*variables(), FAULT_VARIABLE]
    for variable in sorted(os.environ):
        if variable.startswith(PREFIX) and variable not in known:
            nearest = difflib.get_close_matches(variable, known, n=1)
            hint = f" (did you mean {nearest[0]}?)" if nearest else ""
            raise SettingsError(f"unknown setting {variable}{hint}")
    try:
        return Settings()
    except ValidationError as error:
        problems = (
            f"{variable_of('.'.join(map(str, one['loc'])))}: {one['msg']}"
            for one in error.errors(include_url=False)
        )
        raise SettingsError("; ".join(problems)) from error


def names() -> list[str]:
    """Every setting, as `lease.namespace`."""
    return list(_names(Settings, ""))


def variables() -> list[str]:
    """Every setting as its environment variable."""
    return [variable_of(name) for name in names()]


def variable_of(name: str) -> str:
    """The environment variable of a setting: `lease.name` is IBRIK_OPERATOR_LEASE__NAME."""
    return PREFIX + name.upper().replace(".", "__")


def _names(model: type[BaseModel], prefix: str) -> Iterator[str]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _names(field.annotation, f"{prefix}{name}.")
        else:
            yield prefix + name
