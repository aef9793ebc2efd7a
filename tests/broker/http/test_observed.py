"""GET /admin/v1/observed: what the operator compares its resources with."""

from pathlib import Path
from typing import Any

from ibrik_api import __version__
from ibrik_api.observed import Observed, ObservedResource, content_fingerprint
from tests.broker.http.rig import Rig, running_doors


def resource(kind: str, name: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "ibrik.dev/v1beta1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop", "generation": 1, "uid": name} | metadata,
        "spec": spec,
    }


BILLS = resource("Topic", "bills", {"partitions": 2})
ERP = resource("Channel", "erp", {"http": {"url": "https://erp.example.com/in"}})
SYNC = resource(
    "Subscription",
    "sync",
    {"topicRef": {"name": "bills"}, "mode": "push", "channelRef": {"name": "erp"}},
)
DELETED = {"deletionTimestamp": "2026-11-28T09:00:00Z"}


async def apply(rig: Rig, *resources: dict[str, Any]) -> list[Any]:
    body = {"resources": list(resources)}
    reply = await rig.call("PUT", "/admin/v1/desired", body, port=rig.admin_port)
    assert reply.status == 200, reply
    results: list[Any] = reply.json["results"]
    return results


async def observe(rig: Rig) -> Observed:
    reply = await rig.call("GET", "/admin/v1/observed", port=rig.admin_port)
    assert reply.status == 200, reply
    return Observed.parse(reply.json)


async def observed_resource(rig: Rig, kind: str, name: str) -> ObservedResource:
    found = [r for r in (await observe(rig)).resources if (r.kind, r.name) == (kind, name)]
    assert len(found) == 1, found
    return found[0]


async def test_the_broker_says_who_and_how_it_is(rig: Rig) -> None:
    broker = (await observe(rig)).broker
    assert (broker.id, broker.name) == (rig.parts.volume.volume_id, "broker-0")
    assert (broker.cluster_id, broker.version) == (rig.parts.volume.cluster_id, __version__)
    assert (broker.metadata_store, broker.is_metadata_ready) == ("sqlite", True)
    assert (broker.is_storage_low, broker.min_free_bytes) == (False, 0)
    assert 0 < broker.free_bytes < broker.capacity_bytes
    assert broker.topics == ["orders"]
    assert broker.credentials == {}


async def test_what_came_as_a_resource_is_observed_and_nothing_else(rig: Rig) -> None:
    await apply(rig, BILLS, ERP, SYNC)
    observed = await observe(rig)
    assert [(r.kind, r.namespace, r.name, r.uid, r.generation) for r in observed.resources] == [
        ("Topic", "shop", "bills", "bills", 1),
        ("Channel", "shop", "erp", "erp", 1),
        ("Subscription", "shop", "sync", "sync", 1),
    ]
    assert observed.broker.topics == ["bills", "orders"]
    topic, channel, subscription = (r.status for r in observed.resources)
    assert topic["topicId"] == rig.parts.engine.topic("bills").id
    assert channel["destinationHost"] == "erp.example.com"
    assert subscription["topic"] == "bills"
    assert {c["status"] for c in subscription["conditions"]} == {"True"}


async def test_a_later_generation_and_another_uid_are_observed(rig: Rig) -> None:
    await apply(rig, ERP)
    await apply(rig, resource("Channel", "erp", ERP["spec"], generation=7, uid="again"))
    seen = await observed_resource(rig, "Channel", "erp")
    assert (seen.generation, seen.uid) == (7, "again")


async def test_what_is_detached_is_observed_as_that(rig: Rig) -> None:
    await apply(rig, BILLS, ERP, SYNC)
    deleted = [
        resource(r["kind"], r["metadata"]["name"], r["spec"], **DELETED) for r in (BILLS, SYNC)
    ]
    assert [outcome["result"] for outcome in await apply(rig, *deleted)] == ["deleted"] * 2
    observed = await observe(rig)
    assert {r.name: r.is_detached for r in observed.resources} == {
        "bills": True,
        "erp": False,
        "sync": True,
    }
    assert observed.broker.topics == ["bills", "orders"]


async def test_a_database_that_does_not_answer_is_told(rig: Rig) -> None:
    await apply(rig, BILLS)
    file = rig.parts.volume.data / "metadata.db"
    file.rename(file.with_suffix(".away"))
    file.mkdir()
    assert rig.parts.database._file is not None
    rig.parts.database._file.dispose()  # connections that are open would go on with the old file
    observed = await observe(rig)
    assert observed.broker.is_metadata_ready is False
    assert [r.name for r in observed.resources] == ["bills"]
    metrics = await rig.call("GET", "/metrics", port=rig.admin_port)
    assert b"ibrik_metadata_ready 0.0" in metrics.body


async def test_secrets_are_told_by_fingerprint_and_again_when_they_change(
    rig: Rig, tmp_path: Path
) -> None:
    folder = tmp_path / "credentials"
    folder.mkdir()
    for value in (b"one", b"another"):
        (folder / "shop_erp_token").write_bytes(value)
        seen = (await observe(rig)).broker.credentials
        assert seen == {"shop_erp_token": content_fingerprint(value)}


async def test_observing_needs_the_token(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("current")
    async with running_doors(tmp_path / "data", token_file=token_file) as rig:
        reply = await rig.call("GET", "/admin/v1/observed", port=rig.admin_port)
        reply.refused("unauthorized")


async def test_a_field_of_a_later_version_is_passed_over(rig: Rig) -> None:
    await apply(rig, BILLS)
    document = (await rig.call("GET", "/admin/v1/observed", port=rig.admin_port)).json
    document["mood"] = document["broker"]["mood"] = document["resources"][0]["mood"] = "good"
    assert Observed.parse(document).broker.name == "broker-0"
