"""Desired resources: what is applied, left alone, deleted, refused, or claimed by another."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ibrik_api.desired import ApplyResult, Outcome
from ibrik_api.errors import Refusal
from ibrik_api.resources.topic import TopicSpec
from ibrik_broker.metadata.topics import TopicState
from tests.support.registry import Parts, open_parts

DELETED = "2026-11-27T10:00:00Z"


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    async with open_parts(tmp_path) as opened:
        yield opened


def resource(name: str = "orders", *, metadata: Any = None, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": "Topic",
        "metadata": {"name": name, "namespace": "shop"} | (metadata or {}),
        "spec": spec,
    }


async def apply(parts: Parts, document: dict[str, Any]) -> Outcome:
    (outcome,) = await parts.registry.apply([document])
    return outcome


async def test_a_resource_makes_a_topic_that_http_cannot_change(parts: Parts) -> None:
    made = await apply(parts, resource(partitions=2, metadata={"uid": "u1", "generation": 3}))
    assert (made.result, made.uid, made.generation) == (ApplyResult.APPLIED, "u1", 3)
    assert made.observed is not None
    assert made.observed["topicId"] == parts.engine.topic("orders").id
    assert made.observed["observedGeneration"] == 3
    assert made.observed["managedBy"] == "Topic shop/orders"
    for attempt in (
        parts.registry.put_topic("orders", TopicSpec(partitions=4)),
        parts.registry.delete_topic("orders"),
    ):
        with pytest.raises(Refusal, match="comes from Topic shop/orders") as refused:
            await attempt
        assert refused.value.code == "managed-by-resource"


async def test_the_same_resource_again_changes_nothing(parts: Parts) -> None:
    await apply(parts, resource(metadata={"generation": 1}))
    before = await parts.rows.all()
    again = await apply(parts, resource(metadata={"generation": 1}))
    assert again.result is ApplyResult.UNCHANGED
    assert await parts.rows.all() == before


async def test_a_later_generation_of_the_same_spec_is_only_recorded(parts: Parts) -> None:
    await apply(parts, resource(metadata={"generation": 1}))
    later = await apply(parts, resource(metadata={"generation": 2}))
    assert later.result is ApplyResult.UNCHANGED
    assert later.observed is not None
    assert later.observed["observedGeneration"] == 2


async def test_a_lower_generation_is_refused(parts: Parts) -> None:
    await apply(parts, resource(partitions=4, metadata={"uid": "u", "generation": 5}))
    late = await apply(parts, resource(partitions=2, metadata={"uid": "u", "generation": 4}))
    assert (late.result, late.code) == (ApplyResult.REFUSED, "stale-generation")
    assert len(parts.engine.topic("orders").partitions) == 4


async def test_a_resource_made_anew_begins_its_generations_anew(parts: Parts) -> None:
    await apply(parts, resource(metadata={"uid": "old", "generation": 9}))
    anew = await apply(parts, resource(partitions=2, metadata={"uid": "new", "generation": 1}))
    assert anew.result is ApplyResult.ADOPTED
    stale = resource(metadata={"uid": "old", "deletionTimestamp": DELETED})
    assert (await apply(parts, stale)).result is ApplyResult.DELETED
    assert len(parts.engine.topic("orders").partitions) == 2


async def test_without_generations_the_broker_counts(parts: Parts) -> None:
    for partitions in (1, 2, 3):
        await apply(parts, resource(partitions=partitions))
    assert parts.registry.describe("orders").metadata.generation == 3


async def test_a_change_is_applied_and_a_forbidden_one_refused_by_field(parts: Parts) -> None:
    await apply(parts, resource(partitions=4))
    changed = await apply(parts, resource(partitions=4, retention={"time": "1d"}))
    assert changed.result is ApplyResult.APPLIED
    shrunk = await apply(parts, resource(partitions=2))
    assert (shrunk.result, shrunk.code) == (ApplyResult.REFUSED, "partitions-shrink")
    assert shrunk.errors is not None
    assert shrunk.errors[0]["pointer"] == "/spec/partitions"
    renamed = await apply(parts, resource(partitions=4, topicName="other"))
    assert renamed.code == "immutable-field"
    # A key left out takes its default again.
    again = await apply(parts, resource(partitions=4))
    assert again.result is ApplyResult.APPLIED
    assert parts.registry.describe("orders").spec.retention == TopicSpec().retention


async def test_the_oldest_claim_on_a_topic_name_wins(parts: Parts) -> None:
    await apply(parts, resource("orders"))
    other = await apply(parts, resource("mine", topicName="orders"))
    assert (other.result, other.code) == (ApplyResult.CONFLICT, "resource-conflict")
    assert other.detail is not None
    assert "belongs to Topic shop/orders" in other.detail
    gone = await apply(
        parts, resource("mine", topicName="orders", metadata={"deletionTimestamp": DELETED})
    )
    assert gone.result is ApplyResult.DELETED
    assert parts.registry.describe("orders").metadata.name == "orders"


async def test_a_topic_of_the_same_identity_made_over_http_is_taken_over(parts: Parts) -> None:
    await parts.registry.create_topic("orders", TopicSpec())
    taken = await apply(parts, resource(metadata={"namespace": "default"}))
    assert taken.result is ApplyResult.UNCHANGED
    status = parts.registry.describe("orders").status
    assert status is not None
    assert status.managed_by == "Topic default/orders"
    other = await apply(parts, resource("payments"))
    await parts.registry.create_topic("api", TopicSpec())
    conflict = await apply(parts, resource("api"))
    assert (other.result, conflict.result) == (ApplyResult.APPLIED, ApplyResult.CONFLICT)


@pytest.mark.parametrize(
    ("policy", "left"),
    [("Retain", TopicState.DETACHED), ("Delete", None), ("DeleteIfEmpty", None)],
)
async def test_a_deletion_timestamp_deletes_by_policy(
    parts: Parts, policy: str, left: TopicState | None
) -> None:
    wish = resource(deletionPolicy=policy)
    await apply(parts, wish)
    wish["metadata"]["deletionTimestamp"] = DELETED
    for _ in range(2):
        assert (await apply(parts, wish)).result is ApplyResult.DELETED
        states = [row.state for row in await parts.rows.all()]
        assert states == ([] if left is None else [left])


async def test_a_topic_with_messages_is_not_deleted_if_only_empty_ones_may(parts: Parts) -> None:
    await apply(parts, resource(deletionPolicy="DeleteIfEmpty"))
    await parts.publish("orders", b"one")
    kept = await apply(
        parts,
        resource(deletionPolicy="DeleteIfEmpty", metadata={"deletionTimestamp": DELETED}),
    )
    assert (kept.result, kept.code) == (ApplyResult.REFUSED, "topic-not-empty")
    assert parts.messages("orders") == 1


async def test_a_detached_topic_is_never_taken_for_an_empty_one(parts: Parts) -> None:
    await apply(parts, resource())
    await parts.publish("orders", b"one")
    await apply(parts, resource(metadata={"deletionTimestamp": DELETED}))
    wish = resource(deletionPolicy="DeleteIfEmpty", metadata={"deletionTimestamp": DELETED})
    kept = await apply(parts, wish)
    assert (kept.result, kept.code) == (ApplyResult.REFUSED, "topic-detached")
    await apply(parts, resource())
    assert parts.messages("orders") == 1


async def test_a_broken_spec_can_still_be_deleted_by_the_stored_policy(parts: Parts) -> None:
    await apply(parts, resource(deletionPolicy="Delete"))
    broken = resource(partitions="many", metadata={"deletionTimestamp": DELETED})
    assert (await apply(parts, broken)).result is ApplyResult.DELETED
    assert await parts.rows.all() == []
    assert (await apply(parts, broken)).result is ApplyResult.DELETED


@pytest.mark.parametrize("name", ["orders", "renamed"])
async def test_a_detached_topic_is_adopted_by_the_next_claim_on_its_name(
    parts: Parts, name: str
) -> None:
    await apply(parts, resource(partitions=2, metadata={"uid": "u1", "generation": 7}))
    await parts.publish("orders", b"one")
    topic_id = parts.engine.topic("orders").id
    await apply(parts, resource(metadata={"uid": "u1", "deletionTimestamp": DELETED}))
    head = {"uid": "u2", "generation": 1}
    fewer = await apply(parts, resource(name, topicName="orders", metadata=head))
    assert fewer.code == "partitions-shrink"
    adopted = await apply(parts, resource(name, topicName="orders", partitions=2, metadata=head))
    assert adopted.result is ApplyResult.ADOPTED
    assert parts.engine.topic("orders").id == topic_id
    assert parts.messages("orders") == 1
    again = await apply(parts, resource(name, topicName="orders", partitions=2, metadata=head))
    assert again.result is ApplyResult.UNCHANGED


async def test_one_broken_item_does_not_stop_the_others(parts: Parts) -> None:
    outcomes = await parts.registry.apply(
        [
            resource("a"),
            {"apiVersion": "ibrik.dev/v1beta1", "kind": "Channel", "metadata": {"name": "c"}},
            {"apiVersion": "v1", "kind": "Topic", "metadata": {"name": "d"}},
            resource("b", replicas=3),
            resource("B"),
            {"apiVersion": "ibrik.dev/v1beta1", "kind": "Topic"},
            {"apiVersion": [], "kind": 7, "metadata": {"name": {}, "generation": "x"}},
            resource("e"),
        ]
    )
    assert [(outcome.name, outcome.result, outcome.code) for outcome in outcomes] == [
        ("a", ApplyResult.APPLIED, None),
        ("c", ApplyResult.REFUSED, "unsupported-kind"),
        ("d", ApplyResult.REFUSED, "unsupported-kind"),
        ("b", ApplyResult.REFUSED, "unsupported-field"),
        ("B", ApplyResult.REFUSED, "invalid-resource"),
        ("", ApplyResult.REFUSED, "invalid-resource"),
        ("", ApplyResult.REFUSED, "unsupported-kind"),
        ("e", ApplyResult.APPLIED, None),
    ]
    assert all(outcome.detail for outcome in outcomes if outcome.code)
    assert [topic.name for topic in parts.engine.topics()] == ["a", "e"]


async def test_what_was_applied_is_there_after_a_restart(tmp_path: Path) -> None:
    wish = resource(partitions=2, metadata={"uid": "u", "generation": 4})
    async with open_parts(tmp_path) as parts:
        await apply(parts, wish)
    async with open_parts(tmp_path) as parts:
        assert (await apply(parts, wish)).result is ApplyResult.UNCHANGED


async def test_a_topic_kept_out_of_service_is_not_called_unchanged(tmp_path: Path) -> None:
    async with open_parts(tmp_path) as parts:
        await apply(parts, resource())
        topic_id = parts.engine.topic("orders").id
    (tmp_path / "topics" / topic_id).rename(tmp_path.parent / topic_id)
    async with open_parts(tmp_path) as parts:
        outcome = await apply(parts, resource())
        assert (outcome.result, outcome.code) == (ApplyResult.REFUSED, "topic-unavailable")
