"""The definitions of our kinds, brought to an API server."""

from pathlib import Path

from tests.support.cluster import Cluster, condition, documents_of

DEFINITIONS = sorted((Path(__file__).resolve().parents[2] / "crds").glob("*.yaml"))
_KIND = "apiextensions.k8s.io/v1/CustomResourceDefinition"


def install_definitions(cluster: Cluster) -> None:
    """Returns when the server knows all of them."""
    for path in DEFINITIONS:
        (definition,) = documents_of(path)
        cluster.apply(definition)
        name = definition["metadata"]["name"]
        cluster.wait(_KIND, name, "", lambda d: condition(d, "Established").get("status") == "True")
