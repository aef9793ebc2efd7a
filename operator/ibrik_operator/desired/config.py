"""The settings of the brokers, as the file that they read at the start, and the account. Pure."""

from typing import Any

import yaml

from ibrik_api.kubernetes import object_name
from ibrik_operator.desired.common import child
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.keys import Document

CONFIG_FILE = "config.yaml"


def settings_of(pool: Document) -> dict[str, Any]:
    """Settings that come from the spec; those that are a pod's own are in its environment."""
    spec = pool_spec(pool)
    return {
        "http": {"open_registration": spec.listeners.open_registration},
        "tcp": {"enabled": spec.listeners.tcp.enabled},
        "log": {"min_free_bytes": spec.config.min_free_bytes},
        "egress": {
            "allow_private": spec.config.egress.allow_private,
            "allow": list(spec.config.egress.allow),
        },
        "logging": {"level": spec.config.log_level.value, "form": "json"},
    }


def config_map(pool: Document) -> dict[str, Any]:
    text = yaml.safe_dump(settings_of(pool), sort_keys=True)
    return {
        **child(pool, "v1", "ConfigMap", object_name(pool["metadata"]["name"])),
        "data": {CONFIG_FILE: text},
    }


def service_account(pool: Document) -> dict[str, Any]:
    """Brokers know nothing of Kubernetes: no token is mounted."""
    return {
        **child(pool, "v1", "ServiceAccount", object_name(pool["metadata"]["name"])),
        "automountServiceAccountToken": False,
    }
