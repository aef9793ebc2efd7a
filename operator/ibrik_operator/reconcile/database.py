"""The digest of the database's address that a pool's pods are started with; never the address.

A pod reads it once, at its start: another one in the Secret means that the pods are out of date.
"""

import base64

from ibrik_api.kubernetes import DATABASE_HASH
from ibrik_operator.desired.spec import pool_spec
from ibrik_operator.documents import digest
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import KubeForbidden
from ibrik_operator.reconcile.context import Context


async def database_digest(context: Context, pool: Document, known: Document | None) -> str:
    """Of what the Secret holds now; empty for SQLite.

    Where the Secret cannot be read, that of the set as it is: a pod that works is not replaced by
    one that cannot start.
    """
    postgres = pool_spec(pool).metadata.postgres
    if postgres is None:
        return ""
    reference = postgres.secret_ref
    try:
        secret = await context.kube.get(
            Key("Secret", pool["metadata"]["namespace"], reference.name)
        )
    except KubeForbidden:
        secret = None
    encoded = ((secret or {}).get("data") or {}).get(reference.key)
    if encoded:
        # With the pool's uid, so that the same address does not show as the same digest elsewhere.
        address = base64.b64decode(encoded).decode(errors="replace")
        return digest([pool["metadata"]["uid"], address])
    template = ((known or {}).get("spec") or {}).get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    return str(annotations.get(DATABASE_HASH, ""))
