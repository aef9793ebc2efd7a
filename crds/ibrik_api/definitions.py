"""The CustomResourceDefinitions of the four kinds: names, columns, subresources, schemas.

Pure: the models in, documents out, the same ones each time. `docs/generate.py` writes them to
`crds/*.yaml`, which the chart takes over. What the server would fill in is written out, so that
what is applied and what is stored are equal.
"""

from dataclasses import dataclass
from typing import Any, Literal

from ibrik_api.resources.channel import Channel
from ibrik_api.resources.pool import BrokerPool
from ibrik_api.resources.subscription import Subscription
from ibrik_api.resources.topic import Topic
from ibrik_api.structural import Schema, structural_schema

GROUP, VERSION, CATEGORY = "ibrik.dev", "v1beta1", "ibrik"

_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.selector",
}
_SERVED_BY_KUBERNETES: Schema = {
    "apiVersion": {
        "description": "Version of this schema: ibrik.dev/v1beta1.",
        "type": "string",
    },
    "kind": {"type": "string"},
    "metadata": {"type": "object"},
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; a wide one is shown with `-o wide`."""

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    is_wide: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """What a definition says besides its schema."""

    model: type[BrokerPool | Topic | Subscription | Channel]
    plural: str
    short_name: str
    columns: tuple[Column, ...]
    selectable: tuple[str, ...] = ()
    has_scale: bool = False

    @property
    def name(self) -> str:
        return self.model.__name__


def _condition(field: str) -> str:
    return f'.status.conditions[?(@.type=="Ready")].{field}'


_READY = Column("Ready", _condition("status"))
_REASON = Column("Reason", _condition("reason"))
_AGE = Column("Age", ".metadata.creationTimestamp", "date")

KINDS = (
    Kind(
        BrokerPool,
        "brokerpools",
        "ibp",
        (
            Column("Ready", ".status.ready"),
            Column("Brokers", ".spec.replicas", "integer"),
            Column("Storage", ".spec.storage.size"),
            _AGE,
            Column("Version", ".status.version", is_wide=True),
            Column("Metadata", ".status.metadataStore", is_wide=True),
        ),
        has_scale=True,
    ),
    Kind(
        Topic,
        "topics",
        "ibt",
        (
            Column("Partitions", ".spec.partitions", "integer"),
            Column("Retention", ".spec.retention.time"),
            Column("Subscriptions", ".status.subscriptions", "integer"),
            _READY,
            _REASON,
            _AGE,
            Column("Pool", ".spec.pool.name", is_wide=True),
            Column("Topic-ID", ".status.topicId", is_wide=True),
            Column("Bytes", ".status.bytes", "integer", is_wide=True),
        ),
        selectable=(".spec.pool.name",),
    ),
    Kind(
        Subscription,
        "subscriptions",
        "ibs",
        (
            Column("Topic", ".spec.topicRef.name"),
            Column("Mode", ".spec.mode"),
            Column("Destination", ".status.destination"),
            Column("Backlog", ".status.backlog", "integer"),
            _READY,
            _REASON,
            _AGE,
        ),
        selectable=(".spec.topicRef.name", ".spec.channelRef.name"),
    ),
    Kind(
        Channel,
        "channels",
        "ibc",
        (
            Column("Type", ".status.kind"),
            Column("Destination", ".status.destinationHost"),
            Column("Circuit", ".status.circuit"),
            _READY,
            _REASON,
            _AGE,
        ),
    ),
)


def custom_resource_definition(kind: Kind) -> dict[str, Any]:
    """The whole definition of one kind."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "categories": [CATEGORY],
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "shortNames": [kind.short_name],
                "singular": kind.name.lower(),
            },
            "scope": "Namespaced",
            "conversion": {"strategy": "None"},
            "versions": [_version(kind)],
        },
    }


def resource_schema(kind: Kind) -> Schema:
    """The schema of whole objects, as the API server takes it.

    What Kubernetes serves itself (the version, the kind, the metadata) is left to it; and status
    has no defaults, since what nobody observed is not there.
    """
    schema = structural_schema(kind.model)
    properties = schema["properties"]
    own = {name: properties[name] for name in ("spec", "status")}
    own["status"] = _without_defaults(own["status"])
    required = [name for name in schema.get("required", ()) if name in own]
    schema |= {"properties": _SERVED_BY_KUBERNETES | own, "required": required}
    schema["properties"]["kind"] = {
        "description": f"Always {kind.name}.",
        "type": "string",
    }
    if not required:
        del schema["required"]
    return schema


def _version(kind: Kind) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [_printed(column) for column in kind.columns],
        "subresources": {"status": {}} | ({"scale": _SCALE} if kind.has_scale else {}),
    }
    if kind.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in kind.selectable]
    version["schema"] = {"openAPIV3Schema": resource_schema(kind)}
    return version


def _printed(column: Column) -> dict[str, Any]:
    shown = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return shown | ({"priority": 1} if column.is_wide else {})


def _without_defaults(schema: Schema) -> Schema:
    kept = {key: value for key, value in schema.items() if key != "default"}
    if "properties" in kept:
        kept["properties"] = {
            name: _without_defaults(child) for name, child in kept["properties"].items()
        }
    if "items" in kept:
        kept["items"] = _without_defaults(kept["items"])
    return kept
