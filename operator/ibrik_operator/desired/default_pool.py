"""The BrokerPool that is made for whoever names none. Pure."""

from typing import Any

from ibrik_api.kubernetes import GROUP, VERSION
from ibrik_operator.keys import Document, Key


def default_pool(key: Key, spec: Document) -> dict[str, Any]:
    """It has no owner and no digest: it belongs to the users of its namespace from then on."""
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": key.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": dict(spec),
    }
