"""Topics, Subscriptions and Channels as the API server tells of them, for tests without one."""

from typing import Any

from ibrik_operator.keys import Document, Key
from ibrik_operator.world import World

API_VERSION = "ibrik.dev/v1beta1"
CREATED = "2026-11-28T10:00:00Z"
LATER = "2026-11-28T10:00:05Z"


def resource(
    kind: str,
    name: str,
    spec: dict[str, Any] | None = None,
    *,
    namespace: str = "shop",
    ready: bool | None = None,
    status: dict[str, Any] | None = None,
    **metadata: Any,
) -> dict[str, Any]:
    """`ready` is the status of its condition Ready; None: nobody has said anything yet."""
    document: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": CREATED,
            **metadata,
        },
        "spec": spec or {},
    }
    if ready is not None:
        flag = "True" if ready else "False"
        status = {**(status or {}), "conditions": [{"type": "Ready", "status": flag}]}
    if status is not None:
        document["status"] = status
    return document


def pool(name: str = "default", **given: Any) -> dict[str, Any]:
    return resource("BrokerPool", name, given.pop("spec", {}), **given)


def topic(name: str = "orders", spec: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
    return resource("Topic", name, spec, **given)


def subscription(
    name: str = "billing", *, of: str = "orders", to: str | None = None, **given: Any
) -> dict[str, Any]:
    """`to` names a Channel, of another namespace as `namespace/name`."""
    spec = {"topicRef": {"name": of}, **given.pop("spec", {})}
    if to is not None:
        namespace, _, channel_name = to.rpartition("/")
        spec["channelRef"] = {"name": channel_name} | (
            {"namespace": namespace} if namespace else {}
        )
    return resource("Subscription", name, spec, **given)


def channel(name: str = "billing", **given: Any) -> dict[str, Any]:
    spec = {"http": {"url": "https://example.com/hook"}, **given.pop("spec", {})}
    return resource("Channel", name, spec, **given)


def world_of(*documents: Document) -> World:
    world = World()
    for document in documents:
        world.put(document)
    return world


def keys(*names: str) -> list[Key]:
    """Of `Topic/orders` in namespace shop, or of `Topic/other/orders`."""
    found = []
    for text in names:
        kind, _, rest = text.partition("/")
        namespace, _, name = rest.rpartition("/")
        found.append(Key(kind, namespace or "shop", name))
    return found
