"""The two Secrets of a pool: the token of its admin door, and what its channels need. Pure."""

import base64
from collections.abc import Mapping
from typing import Any

from ibrik_api.kubernetes import WATCH_LABEL, admin_secret_name, credentials_secret_name
from ibrik_operator.desired.common import child
from ibrik_operator.keys import Document

MAX_BYTES = 2**20
"""What a Secret holds at most, all values together."""


def admin_secret(pool: Document, tokens: Mapping[str, str]) -> dict[str, Any]:
    """`tokens` are `current` and, after a rotation, `previous`."""
    return _secret(
        pool,
        admin_secret_name(pool["metadata"]["name"]),
        {k: v.encode() for k, v in tokens.items()},
    )


def credentials_secret(pool: Document, files: Mapping[str, bytes]) -> dict[str, Any]:
    """`files` by their names in the brokers' folder."""
    return _secret(pool, credentials_secret_name(pool["metadata"]["name"]), files)


def _secret(pool: Document, name: str, values: Mapping[str, bytes]) -> dict[str, Any]:
    document = child(pool, "v1", "Secret", name)
    document["metadata"]["labels"][WATCH_LABEL] = "true"
    encoded = {key: base64.b64encode(value).decode() for key, value in sorted(values.items())}
    return {**document, "type": "Opaque", "data": encoded}
