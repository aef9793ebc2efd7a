"""Rules on topics that go beyond one field: what is served, what fits together, what may change.

Pure: values in, findings out. The API server holds the same rules as CEL; a broker of its own has
only these.
"""

from typing import Any

from ibrik_api.errors import Refusal
from ibrik_api.model import FieldError, json_pointer
from ibrik_api.resources.topic import HoldAction, TopicSpec

_SERVED_LATER = {
    ("replicas",): "partitions are not replicated yet",
    ("minInSyncReplicas",): "partitions are not replicated yet",
    ("cleanup",): "compaction is not served yet",
    ("schema",): "schemas are not served yet",
    ("quota",): "quotas are not served yet",
}
"""A row leaves this table with the feature that serves it."""


def refuse_unserved(spec: TopicSpec) -> list[FieldError]:
    """One finding per leaf field that is not served yet and not at its default."""
    wished, default = spec.document(), TopicSpec().document()
    return [
        FieldError(
            pointer=json_pointer("spec", *path),
            code="unsupported-field",
            detail=f"{reason}: leave {'.'.join(path)} out{_or_default(standard)}",
        )
        for field, reason in _SERVED_LATER.items()
        for path, standard in _differences(field, _at(wished, field), _at(default, field))
    ]


def refuse_unfitting(spec: TopicSpec) -> list[FieldError]:
    """Fields that are fine alone and cannot work together."""
    errors: list[FieldError] = []
    if spec.buffer.size_bytes < spec.max_message_bytes:
        errors.append(
            FieldError(
                pointer="/spec/buffer/bytes",
                code="invalid-resource",
                detail="the buffer is smaller than maxMessageBytes, so the largest message would "
                "never fit: raise buffer.bytes or lower maxMessageBytes",
            )
        )
    hold = spec.archive.hold_max
    if hold.action is not HoldAction.ALARM and hold.size_bytes is None and hold.time_ms is None:
        errors.append(
            FieldError(
                pointer="/spec/archive/holdMax",
                code="invalid-resource",
                detail="block and drop need a limit: set holdMax.bytes or holdMax.time",
            )
        )
    return errors


def plan_update(old: TopicSpec, new: TopicSpec) -> list[FieldError]:
    """What forbids the change from `old` to `new`; empty when it may be made."""
    errors: list[FieldError] = []
    if new.partitions < old.partitions:
        errors.append(
            FieldError(
                pointer="/spec/partitions",
                code="partitions-shrink",
                detail=f"partitions can grow but not shrink ({old.partitions} → {new.partitions}): "
                "create a new topic and replay into it",
            )
        )
    if new.topic_name != old.topic_name:
        errors.append(
            FieldError(
                pointer="/spec/topicName",
                code="immutable-field",
                detail=f"topicName is fixed at creation ({old.topic_name or 'left out'}): "
                "put it back, or create a new topic",
            )
        )
    return errors


def check_spec(spec: TopicSpec) -> None:
    """Raise a Refusal that names every field of `spec` that cannot be served."""
    refuse_if(refuse_unserved(spec) + refuse_unfitting(spec))


def refuse_if(errors: list[FieldError]) -> None:
    """Raise the first finding's code with all of them, when there are any."""
    if errors:
        detail = "; ".join(f"{e['pointer']}: {e['detail']}" for e in errors)
        raise Refusal(errors[0]["code"], detail + ".", errors=errors)


def _at(document: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = document
    for key in path:
        value = value.get(key)
    return value


def _differences(
    path: tuple[str, ...], wished: Any, default: Any
) -> list[tuple[tuple[str, ...], Any]]:
    if isinstance(wished, dict) and isinstance(default, dict):
        return [
            difference
            for key in sorted(wished.keys() | default.keys())
            for difference in _differences((*path, key), wished.get(key), default.get(key))
        ]
    return [] if wished == default else [(path, default)]


def _or_default(default: Any) -> str:
    return "" if default is None or default == [] else f" or set it to {default}"
