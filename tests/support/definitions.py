"""The definitions of our kinds, brought to an API server."""

from pathlib import Path

from tests.support.cluster import (
    Cluster,
    Document,
    Refused,
    condition,
    documents_of,
)
from tests.support.waiting import eventually

DEFINITIONS = sorted((Path(__file__).resolve().parents[2] / "crds").glob("*.yaml"))
DEFINITION = "apiextensions.k8s.io/v1/CustomResourceDefinition"


def install_definitions(cluster: Cluster) -> None:
    """Returns when the server knows all of them."""
    for path in DEFINITIONS:
        (definition,) = documents_of(path)
        establish(cluster, definition)


def establish(cluster: Cluster, definition: Document) -> None:
    """Returns when the server knows it: its paths are there a moment after its condition."""
    cluster.apply(definition, force=True)
    name, spec = definition["metadata"]["name"], definition["spec"]
    cluster.wait(
        DEFINITION, name, "", lambda seen: condition(seen, "Established").get("status") == "True"
    )
    kind = f"{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['kind']}"
    eventually(lambda: _is_served(cluster, kind), pause_s=0.1)


def _is_served(cluster: Cluster, kind: str) -> bool:
    try:
        cluster.objects(kind)
    except (KeyError, ValueError, Refused):  # Not listed yet, or a path answered in plain text.
        return False
    return True
