"""PUT /admin/v1/desired as the operator uses it: detach, delete, conflict, other namespaces."""

from pathlib import Path
from typing import Any

import pytest

from ibrik_api.observed import ObservedResource
from tests.broker.http.receiver import receiving
from tests.broker.http.rig import Rig
from tests.broker.http.test_observed import (
    BILLS,
    DELETED,
    ERP,
    SYNC,
    apply,
    observe,
    observed_resource,
    resource,
)


def reasons(seen: ObservedResource) -> dict[str, str]:
    return {c["type"]: c["reason"] for c in seen.status["conditions"]}


def deleted(document: dict[str, Any], **spec: Any) -> dict[str, Any]:
    name = document["metadata"]["name"]
    return resource(document["kind"], name, document["spec"] | spec, **DELETED)


async def outcome(rig: Rig, document: dict[str, Any]) -> tuple[str, str | None]:
    (result,) = await apply(rig, document)
    return result["result"], result.get("code")


@pytest.mark.parametrize("document", [BILLS, SYNC], ids=["topic", "subscription"])
async def test_what_is_deleted_under_retain_comes_back_with_its_id(
    rig: Rig, document: dict[str, Any]
) -> None:
    kind, name = document["kind"], document["metadata"]["name"]
    await apply(rig, BILLS, document)
    identity = f"{kind.lower()}Id"
    known = (await observed_resource(rig, kind, name)).status[identity]
    assert await outcome(rig, deleted(document)) == ("deleted", None)
    assert (await observed_resource(rig, kind, name)).is_detached
    again = resource(kind, name, document["spec"], uid="again")
    assert await outcome(rig, again) == ("adopted", None)
    back = await observed_resource(rig, kind, name)
    assert (back.is_detached, back.uid, back.status[identity]) == (False, "again", known)


@pytest.mark.parametrize("document", [BILLS, SYNC, ERP], ids=["topic", "subscription", "channel"])
async def test_what_is_deleted_for_good_is_not_observed_and_deleting_again_is_done(
    rig: Rig, document: dict[str, Any]
) -> None:
    policy = {} if document is ERP else {"deletionPolicy": "Delete"}
    await apply(rig, BILLS, document)
    for _ in range(2):
        assert await outcome(rig, deleted(document, **policy)) == ("deleted", None)
    names = [r.name for r in (await observe(rig)).resources]
    assert document["metadata"]["name"] not in names


async def test_a_topic_with_messages_is_kept_and_says_why(rig: Rig) -> None:
    await apply(rig, BILLS)
    await rig.publish(topic="bills")
    wish = deleted(BILLS, deletionPolicy="DeleteIfEmpty")
    assert await outcome(rig, wish) == ("refused", "topic-not-empty")
    assert (await rig.call("POST", "/v1/topics/bills:purge")).status == 200
    assert await outcome(rig, wish) == ("deleted", None)


async def test_the_loser_of_a_name_deletes_nothing(rig: Rig) -> None:
    loser = resource("Topic", "copy", {"topicName": "bills", "deletionPolicy": "Delete"})
    await apply(rig, BILLS)
    assert await outcome(rig, loser) == ("conflict", "resource-conflict")
    assert await outcome(rig, deleted(loser)) == ("deleted", None)
    assert [r.name for r in (await observe(rig)).resources] == ["bills"]
    assert (await rig.publish(topic="bills")).status == 201


async def test_an_immutable_field_refuses_the_generation_as_a_whole(rig: Rig) -> None:
    await apply(rig, BILLS)
    spec = {"partitions": 1, "retention": {"time": "1h"}}
    (result,) = await apply(rig, resource("Topic", "bills", spec, generation=2))
    assert (result["result"], result["code"]) == ("refused", "partitions-shrink")
    assert [error["pointer"] for error in result["errors"]] == ["/spec/partitions"]
    seen = await observed_resource(rig, "Topic", "bills")
    assert seen.generation == 1
    topic = (await rig.call("GET", "/v1/topics/bills")).json
    assert topic["spec"]["retention"]["time"] == "7d"


async def test_a_channel_that_is_deleted_and_made_again_heals_its_subscriptions(rig: Rig) -> None:
    async with receiving() as receiver:
        channel = resource("Channel", "erp", {"http": {"url": receiver.url}})
        await apply(rig, BILLS, channel, SYNC)
        assert await outcome(rig, deleted(channel)) == ("deleted", None)
        waits = await observed_resource(rig, "Subscription", "sync")
        assert reasons(waits)["DestinationResolved"] == "DestinationNotFound"
        await rig.publish(b"kept", topic="bills")
        assert receiver.bodies == []
        await apply(rig, resource("Channel", "erp", channel["spec"], uid="again"))
        await receiver.until(lambda: receiver.bodies == [b"kept"])
    healed = await observed_resource(rig, "Subscription", "sync")
    assert reasons(healed)["Ready"] == "Ready"


async def test_a_channel_of_another_namespace_delivers_once_it_allows_it(
    rig: Rig, tmp_path: Path
) -> None:
    (tmp_path / "credentials").mkdir()
    for namespace in ("other", "shop"):
        (tmp_path / "credentials" / f"{namespace}_erp_token").write_text(namespace)
    async with receiving() as receiver:
        spec = {
            "http": {"url": receiver.url},
            "auth": {"bearer": {"secretRef": {"name": "erp", "key": "token"}}},
        }
        reference = {"channelRef": {"name": "erp", "namespace": "other"}}
        foreign = resource("Channel", "erp", spec, namespace="other")
        await apply(rig, BILLS, foreign, resource("Subscription", "sync", SYNC["spec"] | reference))
        waits = await observed_resource(rig, "Subscription", "sync")
        assert reasons(waits)["DestinationResolved"] == "DestinationNotAllowed"
        await rig.publish(b"1", topic="bills")
        assert receiver.bodies == []
        opened = spec | {"allowedNamespaces": "All"}
        await apply(rig, resource("Channel", "erp", opened, namespace="other", generation=2))
        await receiver.until(lambda: receiver.bodies == [b"1"])
        # The secret is that of the channel's namespace, not of the subscription's.
        assert receiver.requests[0].headers["Authorization"] == "Bearer other"


async def test_a_secret_that_comes_and_goes_flips_the_condition(rig: Rig, tmp_path: Path) -> None:
    bearer = {"bearer": {"secretRef": {"name": "erp", "key": "token"}}}
    await apply(rig, resource("Channel", "erp", ERP["spec"] | {"auth": bearer}))
    file = tmp_path / "credentials" / "shop_erp_token"
    file.parent.mkdir()
    for is_there, reason in ((False, "CredentialsMissing"), (True, "AsWished"), (False, None)):
        file.write_text("x") if is_there else file.unlink(missing_ok=True)
        seen = await observed_resource(rig, "Channel", "erp")
        assert reasons(seen)["CredentialsValid"] == (reason or "CredentialsMissing")
