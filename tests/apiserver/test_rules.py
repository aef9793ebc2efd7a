"""The API server refuses what the models refuse, with the sentence, and takes what they take.

The tables are those of the unit tests; beyond them every bound of every field is broken once.
"""

from typing import Any

import pytest

from ibrik_api.definitions import KINDS
from ibrik_api.errors import Refusal
from tests.support.admission import admit, schema_of
from tests.support.broken_values import broken_values, with_value
from tests.support.cluster import Cluster, Document, Refused
from tests.support.resource_tables import BOUNDS, CASES, CHANGES, NAMES, resource

MODELS = {kind.name: kind.model for kind in KINDS}
BROKEN = [(kind.name, *one) for kind in KINDS for one in broken_values(schema_of(kind.name))]


def refusal(cluster: Cluster, document: Document) -> Refused | None:
    """What the server says against a resource that would be created."""
    try:
        cluster.create(document, dry_run=True)
    except Refused as refused:
        return refused
    return None


def inside(namespace: str, document: Document) -> Document:
    return document | {"metadata": document["metadata"] | {"namespace": namespace}}


def sentences(told: list[str]) -> list[str]:
    """What the stand-in said, without the places."""
    return [line.partition(": ")[2] for line in told]


@pytest.mark.parametrize(("kind", "spec", "is_fine"), [*CASES, *BOUNDS])
def test_a_resource_is_judged_as_the_tables_say(
    cluster: Cluster, namespace: str, kind: str, spec: dict[str, Any], is_fine: bool
) -> None:
    document = resource(kind, spec)
    refused = refusal(cluster, inside(namespace, document))
    assert (refused is None) is is_fine, refused
    if refused is not None:
        for sentence in sentences(admit(document)):
            assert sentence in str(refused)


@pytest.mark.parametrize(("kind", "old", "new", "is_fine"), CHANGES)
def test_a_change_is_judged_as_the_tables_say(
    cluster: Cluster,
    namespace: str,
    kind: str,
    old: dict[str, Any],
    new: dict[str, Any],
    is_fine: bool,
) -> None:
    before, after = resource(kind, old), resource(kind, new)
    stored = cluster.create(inside(namespace, before))
    # PUT, as clients without server-side apply change it; a key left out takes its default again.
    changed = stored | {"spec": after["spec"]}
    if is_fine:
        assert cluster.replace(changed)["metadata"]["generation"] >= 1
        return
    with pytest.raises(Refused) as refused:
        cluster.replace(changed)
    assert refused.value.status == 422
    for sentence in sentences(admit(after, before)):
        assert sentence in str(refused.value)


@pytest.mark.parametrize(("name", "is_fine"), NAMES)
def test_the_name_of_a_pool_is_judged_as_the_table_says(
    cluster: Cluster, namespace: str, name: str, is_fine: bool
) -> None:
    refused = refusal(cluster, inside(namespace, resource("BrokerPool", {}, name)))
    assert (refused is None) is is_fine


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    BROKEN,
    ids=[
        f"{kind}-{'.'.join(map(str, path))}-{number}"
        for number, (kind, path, _) in enumerate(BROKEN)
    ],
)
def test_every_bound_of_every_field_is_kept_by_both(
    cluster: Cluster, namespace: str, kind: str, path: tuple[str | int, ...], value: Any
) -> None:
    document = with_value(resource(kind, {}), path, value)
    refused = refusal(cluster, inside(namespace, document))
    assert refused is not None
    assert (refused.status, refused.reason) == (422, "Invalid")
    fields = [cause["field"] for cause in refused.causes]
    assert any(_names(field, path) for field in fields), fields
    with pytest.raises(Refusal) as said:
        MODELS[kind].parse(document)
    pointer = "/" + "/".join(map(str, path))
    assert any(pointer.startswith(error["pointer"]) for error in said.value.errors)


def test_a_broken_resource_is_refused_by_kubectl_with_the_sentence(
    cluster: Cluster, namespace: str
) -> None:
    apply = ("apply", "--namespace", namespace, "--filename", "-")
    topic = "apiVersion: ibrik.dev/v1beta1\nkind: Topic\nmetadata: {name: flights}\n"
    cluster.kubectl(*apply, stdin=topic + "spec: {partitions: 4}")
    told = cluster.kubectl(*apply, stdin=topic + "spec: {partitions: 2}", check=False)
    assert (
        'The Topic "flights" is invalid: spec.partitions: Invalid value: "object": partitions can '
        "grow but not shrink: create a new topic and replay into it"
    ) in told
    told = cluster.kubectl(*apply, stdin=topic + "spec: {partitons: 8}", check=False)
    assert 'unknown field "spec.partitons"' in told


def _names(field: str, path: tuple[str | int, ...]) -> bool:
    """Whether the server's field is that of `path`; it writes items and keys in brackets."""
    plain = field.replace("[", ".").replace("]", "").split(".")
    wanted = [str(step) for step in path]
    return plain == wanted or plain == wanted[: len(plain)]
