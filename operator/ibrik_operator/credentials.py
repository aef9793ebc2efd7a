"""What is known of the credentials of each pool: which are missing, and the digest of each file.

Never a value: those pass through one function that copies them from Secret to Secret.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ibrik_api.kubernetes import credential_key
from ibrik_api.observed import ObservedBroker
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.keys import Key

Reference = tuple[str, str, str]
"""Namespace, Secret, key."""


@dataclass(frozen=True, slots=True)
class PoolCredentials:
    digests: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each file that the brokers shall see."""
    missing: Mapping[Reference, Violation] = field(default_factory=dict)
    references: frozenset[Reference] = frozenset()
    """All that were looked for."""


class Credentials:
    def __init__(self) -> None:
        self._pools: dict[Key, PoolCredentials] = {}

    def of(self, pool: Key) -> PoolCredentials | None:
        """None: the Secrets were not read yet."""
        return self._pools.get(pool)

    def note(self, pool: Key, credentials: PoolCredentials) -> bool:
        """Whether this is news."""
        is_news = self._pools.get(pool) != credentials
        self._pools[pool] = credentials
        return is_news


def missing_secret(namespace: str, secret: str) -> Violation:
    return Violation(
        Reason.SECRET_MISSING,
        f"there is no Secret '{secret}' in namespace '{namespace}'. Create it, or name another.",
    )


def missing_key(namespace: str, secret: str, key: str) -> Violation:
    return Violation(
        Reason.KEY_MISSING,
        f"Secret '{secret}' in namespace '{namespace}' has no key '{key}'. Add it, or name "
        "another.",
    )


def fault_of(
    references: Iterable[Reference],
    credentials: PoolCredentials | None,
    brokers: Iterable[ObservedBroker],
) -> Violation | None:
    """Why these credentials cannot be used yet. Pure."""
    wanted = sorted(references)
    if not wanted:
        return None
    pending = Violation(
        Reason.CREDENTIALS_PENDING, "the brokers do not see the newest credentials yet; please wait"
    )
    if credentials is None:
        return pending
    for reference in wanted:
        if reference in credentials.missing:
            return credentials.missing[reference]
    seen = [broker.credentials for broker in brokers]
    for reference in wanted:
        file = credential_key(*reference)
        digest = credentials.digests.get(file, "")
        if not seen or not all(_is_same(digest, one.get(file)) for one in seen):
            return pending
    return None


def _is_same(digest: str, beginning: str | None) -> bool:
    return bool(digest) and bool(beginning) and digest.startswith(str(beginning))
