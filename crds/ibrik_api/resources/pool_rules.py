"""Rules on pools that go beyond one field: the name, what fits together, what may change.

Pure: values in, findings out. The API server holds the same rules as CEL; the operator asks these
before it changes anything, and turns what they find into conditions.
"""

from collections.abc import Iterator

from ibrik_api.model import FieldError, json_pointer
from ibrik_api.quantities import format_quantity, parse_quantity
from ibrik_api.resources.pool import (
    EXECUTORS_ADVICE,
    MAX_POOL_NAME_LENGTH,
    URL_ADVICE,
    ArchiveTarget,
    BrokerPool,
    BrokerPoolSpec,
    Claim,
    PoolArchive,
)

_Finding = tuple[tuple[str, ...], str]


def check_pool(pool: BrokerPool) -> list[FieldError]:
    """What is wrong with `pool`, field by field."""
    findings = [*_name_findings(pool.metadata.name), *_unfitting(pool.spec)]
    return [_error(path, "invalid-resource", sentence) for path, sentence in findings]


def plan_pool_update(old: BrokerPoolSpec, new: BrokerPoolSpec) -> list[FieldError]:
    """What forbids the change from `old` to `new`; empty when it may be made."""
    findings = [*_claim_changes(("spec", "storage"), old.storage, new.storage)]
    if (old.metadata.postgres is None) != (new.metadata.postgres is None):
        findings.append(
            (
                ("spec", "metadata"),
                "the metadata store is chosen when the pool is created, since cursors and channels "
                "live in it: put it back, or create a new BrokerPool",
            )
        )
    old_claim, new_claim = _archive_claim(old), _archive_claim(new)
    if old_claim is not None and new_claim is not None:
        findings += _claim_changes(("spec", "archive", "target", "claim"), old_claim, new_claim)
    return [_error(path, "immutable-field", sentence) for path, sentence in findings]


def _name_findings(name: str) -> Iterator[_Finding]:
    if len(name) > MAX_POOL_NAME_LENGTH:
        yield (
            ("metadata", "name"),
            f"pods and volumes are called after the pool: create it with a name of at most "
            f"{MAX_POOL_NAME_LENGTH} characters",
        )
    if "." in name or "_" in name:
        yield (
            ("metadata", "name"),
            "a Service is called after the pool: create it with a name of a-z 0-9 and - only",
        )


def _unfitting(spec: BrokerPoolSpec) -> Iterator[_Finding]:
    store = spec.metadata
    if (store.sqlite is None) == (store.postgres is None):
        yield ("spec", "metadata"), "exactly one of sqlite and postgres is needed: keep one"
    if spec.replicas > 1 and store.postgres is None:
        yield (
            ("spec", "replicas"),
            "SQLite serves one broker: set replicas to 1, or create the pool with "
            "metadata.postgres",
        )
    if spec.config.min_free_bytes >= spec.storage.size:
        yield (
            ("spec", "config", "minFreeBytes"),
            f"it leaves no room on a volume of {format_quantity(spec.storage.size)}: lower it or "
            "raise storage.size",
        )
    if spec.archive is not None:
        yield from _archive_findings(spec.archive)


def _archive_findings(archive: PoolArchive) -> Iterator[_Finding]:
    yield from _target_findings(archive.target)
    if archive.executors and archive.service_account_name is None:
        yield ("spec", "archive", "executors"), EXECUTORS_ADVICE
    for part in ("requests", "limits"):
        memory = getattr(archive.resources, part).get("memory")
        if memory is not None and not _is_size(memory):
            yield (
                ("spec", "archive", "resources", part, "memory"),
                "write whole bytes, or a unit such as Mi or Gi, as in 2Gi",
            )


def _is_size(value: str | int) -> bool:
    try:
        parse_quantity(value)
    except ValueError:
        return False
    return True


def _target_findings(target: ArchiveTarget) -> Iterator[_Finding]:
    path = ("spec", "archive", "target")
    if (target.claim is None) == (target.url is None):
        yield path, "exactly one of claim and url is needed: keep one"
    if target.secret_ref is not None and target.url is None:
        yield (*path, "secretRef"), "secretRef is for url: leave it out with a claim"
    if target.url is not None and not target.url.startswith("s3://"):
        yield (*path, "url"), f"tables lie in stores that speak S3: {URL_ADVICE}"


def _claim_changes(path: tuple[str, ...], old: Claim, new: Claim) -> Iterator[_Finding]:
    if new.size < old.size:
        yield (
            (*path, "size"),
            f"a volume grows but never shrinks ({format_quantity(old.size)} → "
            f"{format_quantity(new.size)}): put the size back, or create a new BrokerPool",
        )
    if new.storage_class_name != old.storage_class_name:
        yield (
            (*path, "storageClassName"),
            f"it is fixed when the volume is made ({old.storage_class_name or 'left out'}): put it "
            "back, or create a new BrokerPool",
        )


def _archive_claim(spec: BrokerPoolSpec) -> Claim | None:
    return None if spec.archive is None else spec.archive.target.claim


def _error(path: tuple[str, ...], code: str, sentence: str) -> FieldError:
    return FieldError(pointer=json_pointer(*path), code=code, detail=sentence)
