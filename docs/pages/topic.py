"""The page of the Topic resource, from its model: every field that works, then the others."""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Any, NamedTuple, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from ibrik_api.limits import Limits
from ibrik_api.resources import topic_rules
from ibrik_api.resources.topic import TopicSpec
from pages.markdown import page, table

SMALLEST = """```yaml
apiVersion: ibrik.dev/v1beta1
kind: Topic
metadata:
  name: orders
spec: {}
```"""


class Leaf(NamedTuple):
    path: str
    allowed: str
    default: str
    meaning: str


def pages() -> dict[str, str]:
    leaves = list(_leaves(TopicSpec, TopicSpec().document(), ""))
    reasons = {leaf: _reason(leaf) for leaf in leaves}
    served = [leaf for leaf, reason in reasons.items() if reason is None]
    unserved = [(leaf, reason) for leaf, reason in reasons.items() if reason is not None]
    return {
        "reference/topic.md": page(
            "Topic",
            "What a topic shall be. Write it to a file and run `ibrik apply -f topic.yaml`. The\n"
            "smallest one:",
            SMALLEST,
            "A field that is left out has its default; leaving a field out later sets it to its\n"
            "default again. Durations are written `30s`, `7d` or `1h30m`; sizes `256Mi` or as a\n"
            "number of bytes.",
            "## Fields of `spec`",
            table(
                ("field", "values", "default", "meaning"),
                ((f"`{x.path}`", x.allowed, x.default, x.meaning) for x in served),
            ),
            "`partitions` can grow but not shrink. `topicName` is fixed at creation.\n"
            "`buffer.bytes` is at least `maxMessageBytes`.",
            "## Fields that are not served yet",
            "They are accepted at their default only. Any other value is refused with\n"
            "[`unsupported-field`](../errors/unsupported-field.md).",
            table(
                ("field", "default", "why"),
                ((f"`{x.path}`", x.default, f"{reason}.") for x, reason in unserved),
            ),
        )
    }


def _reason(leaf: Leaf) -> str | None:
    """Why a field is not served yet; None when it is."""
    path = tuple(leaf.path.split("."))
    later = topic_rules._SERVED_LATER.items()
    return next((reason for start, reason in later if path[: len(start)] == start), None)


def _leaves(model: type[BaseModel], defaults: dict[str, Any], prefix: str) -> Iterator[Leaf]:
    for field in model.model_fields.values():
        assert field.alias, f"{model.__name__}: every field has a camelCase alias"
        path = prefix + field.alias
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _leaves(field.annotation, defaults.get(field.alias, {}), f"{path}.")
        else:
            assert field.description, f"{path} has no description"
            yield Leaf(path, _allowed(field), _default(defaults, field), field.description)


def _default(defaults: dict[str, Any], field: FieldInfo) -> str:
    value = defaults.get(field.alias or "")
    match value:
        case None | []:
            return "none"
        case bool():
            return f"`{str(value).lower()}`"
    return f"`{value}`"


def _allowed(field: FieldInfo) -> str:
    words, annotation = "", field.annotation
    if get_origin(annotation) is list:
        words, (annotation,) = "any of ", get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return words + ", ".join(f"`{choice.value}`" for choice in annotation)
    names = {Ge: "at least", Le: "at most"}
    marks = [mark for part in (field, *get_args(field.annotation)) for mark in _marks(part)]
    bounds = [f"{names[type(m)]} `{_bound(m)}`" for m in marks if type(m) in names]
    bounds += [_shown(mark) for mark in marks if isinstance(mark, Limits)]
    return ", ".join(bounds)


def _marks(part: Any) -> Sequence[Any]:
    return part.metadata if isinstance(part, FieldInfo) else getattr(part, "__metadata__", ())


def _bound(mark: Ge | Le) -> Any:
    return mark.ge if isinstance(mark, Ge) else mark.le


def _shown(limits: Limits) -> str:
    least = f"`{limits.show(limits.least)}`"
    return (
        f"at least {least}" if limits.most is None else f"{least} to `{limits.show(limits.most)}`"
    )
