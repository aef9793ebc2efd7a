"""What brokers are sent is what brokers can read."""

import pytest

from ibrik_api.observed import ObservedResource
from ibrik_api.resources.channel import Channel
from ibrik_api.resources.subscription import Subscription
from ibrik_api.resources.topic import DeletionPolicy, Topic
from ibrik_operator.desired.document import detaching, document
from tests.support.resources import LATER, channel, subscription, topic

MODELS = {"Topic": Topic, "Subscription": Subscription, "Channel": Channel}


@pytest.mark.parametrize("one", [topic(), subscription(to="tools/mail"), channel()])
def test_a_document_is_the_resource_without_what_only_kubernetes_needs(
    one: dict[str, object],
) -> None:
    noisy = {**one, "status": {"messages": 7}}
    noisy["metadata"] = {
        **one["metadata"],  # type: ignore[dict-item]
        "resourceVersion": "7",
        "finalizers": ["ibrik.dev/protect"],
        "annotations": {"a": "b"},
        "deletionTimestamp": None,
    }
    told = document(noisy)
    assert set(told) == {"apiVersion", "kind", "metadata", "spec"}
    assert set(told["metadata"]) == {"namespace", "name", "uid", "generation"}
    assert MODELS[told["kind"]].parse(told).metadata.uid == one["metadata"]["uid"]  # type: ignore[index]


def test_a_deletion_is_passed_on_with_its_policy() -> None:
    told = document(topic(spec={"deletionPolicy": "Delete"}, deletionTimestamp=LATER))
    parsed = Topic.parse(told)
    assert parsed.metadata.deletion_timestamp is not None
    assert parsed.spec.deletion_policy is DeletionPolicy.DELETE


@pytest.mark.parametrize("kind", MODELS)
def test_detaching_never_deletes_whatever_the_policy_was(kind: str) -> None:
    seen = ObservedResource(kind=kind, namespace="shop", name="x", uid="uid-x", generation=4)
    told = detaching(seen, now=LATER)
    parsed = MODELS[kind].parse(told)
    assert parsed.metadata.deletion_timestamp is not None
    assert (parsed.metadata.uid, parsed.metadata.generation) == ("uid-x", 4)
    assert told["spec"].get("deletionPolicy", "Retain") == "Retain"
    assert "uid" not in detaching(seen.model_copy(update={"uid": None}), now=LATER)["metadata"]
