"""Copies what the channels of a pool need into the pool's own Secret, which its pods see as files.

The only place where values of Secrets pass through. They are read at this moment, never kept, and
never written anywhere else. The key is that of the pool.
"""

import base64
import hashlib

from ibrik_api.kubernetes import credential_key, credentials_secret_name
from ibrik_operator import faults
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.credentials import PoolCredentials, Reference, missing_key, missing_secret
from ibrik_operator.decisions.drift import is_as_desired
from ibrik_operator.decisions.placing import resources_of_pool
from ibrik_operator.decisions.references import secret_keys_of
from ibrik_operator.desired.common import stamped
from ibrik_operator.desired.secrets import MAX_BYTES, credentials_secret
from ibrik_operator.keys import Document, Key
from ibrik_operator.reconcile.context import Context


async def reconcile(context: Context, key: Key) -> float | None:
    pool_key = Key("BrokerPool", key.namespace, key.name)
    pool = context.world.get(pool_key)
    if pool is None or pool["metadata"].get("deletionTimestamp") is not None:
        return None
    users = _users(context, pool_key)
    files, missing = await _read(context, {one for ones in users.values() for one in ones})
    if sum(len(name) + len(value) for name, value in files.items()) > MAX_BYTES:
        missing |= dict.fromkeys(_references(users), _full(pool_key))
        files = {}
    else:
        await _apply(context, pool, files)
    known = PoolCredentials(
        {name: hashlib.sha256(value).hexdigest() for name, value in files.items()},
        missing,
        frozenset(_references(users)),
    )
    if context.credentials.note(pool_key, known):
        for user in users:
            context.enqueue(user)
        if files:  # Until the brokers have seen them.
            context.enqueue(Key("Observation", key.namespace, key.name))
    return None


def _users(context: Context, pool: Key) -> dict[Key, list[Reference]]:
    """Every resource that this pool serves and that needs a secret."""
    users = {}
    for document in resources_of_pool(pool, context.world):
        keys = secret_keys_of(document)
        if keys:
            namespace = document["metadata"]["namespace"]
            users[Key.of(document)] = [(namespace, *one) for one in sorted(keys)]
    return users


def _references(users: dict[Key, list[Reference]]) -> set[Reference]:
    return {one for ones in users.values() for one in ones}


async def _read(
    context: Context, references: set[Reference]
) -> tuple[dict[str, bytes], dict[Reference, Violation]]:
    """Each Secret once; what lacks is named."""
    files: dict[str, bytes] = {}
    missing: dict[Reference, Violation] = {}
    secrets: dict[Key, Document | None] = {}
    for namespace, name, key in sorted(references):
        at = Key("Secret", namespace, name)
        if at not in secrets:
            secrets[at] = await context.kube.get(at)
        secret = secrets[at]
        encoded = ((secret or {}).get("data") or {}).get(key)
        if secret is None:
            missing[namespace, name, key] = missing_secret(namespace, name)
        elif encoded is None:
            missing[namespace, name, key] = missing_key(namespace, name, key)
        else:
            files[credential_key(namespace, name, key)] = base64.b64decode(encoded)
    return files, missing


async def _apply(context: Context, pool: Document, files: dict[str, bytes]) -> None:
    """Also when empty: the pods mount it from the start."""
    wished = stamped(credentials_secret(pool, files))
    name = credentials_secret_name(pool["metadata"]["name"])
    known = await context.kube.get(Key("Secret", pool["metadata"]["namespace"], name))
    if not is_as_desired(wished, known):
        await context.kube.apply(wished)
        faults.reach("credentials-applied")


def _full(pool: Key) -> Violation:
    return Violation(
        Reason.CREDENTIAL_STORE_FULL,
        f"the credentials of all channels of BrokerPool '{pool.name}' exceed 1 MiB. Use fewer or "
        "smaller ones, or a further pool.",
    )
