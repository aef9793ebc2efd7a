"""The admin door: desired resources, tokens, probes, metrics."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.broker.http.rig import Reply, Rig, running_doors

DESIRED = {
    "resources": [
        {
            "apiVersion": "ibrik.dev/v1beta1",
            "kind": "Topic",
            "metadata": {"name": "bills", "namespace": "shop", "generation": 1, "uid": "u1"},
            "spec": {"partitions": 2},
        }
    ]
}


async def admin(
    rig: Rig, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> Reply:
    return await rig.call(method, path, body, headers=headers, port=rig.admin_port)


async def test_desired_resources_have_an_outcome_each(rig: Rig) -> None:
    body = {"resources": [*DESIRED["resources"], {"kind": "Topic", "metadata": {"name": "No"}}]}
    reply = await admin(rig, "PUT", "/admin/v1/desired", body)
    assert reply.status == 200
    assert [outcome["result"] for outcome in reply.json["results"]] == ["applied", "refused"]
    again = await admin(rig, "PUT", "/admin/v1/desired", DESIRED)
    assert again.json["results"][0]["result"] == "unchanged"


async def test_what_comes_from_a_resource_is_read_only_over_http(rig: Rig) -> None:
    await admin(rig, "PUT", "/admin/v1/desired", DESIRED)
    problem = (await rig.call("DELETE", "/v1/topics/bills")).refused("managed-by-resource")
    assert problem["resource"] == {"kind": "Topic", "namespace": "shop", "name": "bills"}
    body = {"metadata": {"name": "bills"}, "spec": {"partitions": 3}}
    (await rig.call("PUT", "/v1/topics/bills", body)).refused("managed-by-resource")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid-json"),
        ({}, "invalid-resource"),
        ({"resources": [1]}, "invalid-resource"),
        ({"resources": [{}] * 1001}, "invalid-resource"),
    ],
)
async def test_a_list_that_is_none_is_refused(rig: Rig, body: Any, code: str) -> None:
    (await admin(rig, "PUT", "/admin/v1/desired", body)).refused(code)


async def test_topics_are_observed(rig: Rig) -> None:
    page = (await admin(rig, "GET", "/admin/v1/topics")).json
    assert [item["metadata"]["name"] for item in page["items"]] == ["orders"]
    assert page["items"][0]["status"]["topicId"]


async def test_a_folder_is_adopted_by_its_id(rig: Rig) -> None:
    (await admin(rig, "POST", "/admin/v1/topics/nothing:adopt")).refused("not-found")
    topic_id = rig.parts.engine.topic("orders").id
    (await admin(rig, "POST", f"/admin/v1/topics/{topic_id}:adopt")).refused("topic-exists")


async def test_a_topic_whose_row_is_lost_is_kept_and_can_be_adopted(tmp_path: Path) -> None:
    async with running_doors(tmp_path) as rig:
        await rig.publish(b"1")
        topic_id = rig.parts.engine.topic("orders").id
    for database in tmp_path.glob("metadata.db*"):
        database.unlink()
    async with running_doors(tmp_path, creates=False) as rig:
        (await rig.publish(b"2")).refused("topic-unavailable")
        (await rig.call("GET", "/v1/topics/orders")).refused("topic-unavailable")
        body = {"metadata": {"name": "orders"}}
        (await rig.call("POST", "/v1/topics", body)).refused("topic-unavailable")
        assert (await admin(rig, "POST", f"/admin/v1/topics/{topic_id}:adopt")).status == 200
        assert await rig.values() == [1]


async def test_only_a_token_of_the_file_opens_the_door(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("current\nprevious\n\n")
    async with running_doors(tmp_path / "data", token_file=token_file) as rig:
        path = "/admin/v1/topics"
        for wrong in ({}, {"Authorization": "Bearer other"}, {"Authorization": "Basic current"}):
            reply = await admin(rig, "GET", path, headers=wrong)
            reply.refused("unauthorized")
            assert reply.headers["WWW-Authenticate"] == "Bearer"
        for token in ("current", "previous"):
            headers = {"Authorization": f"Bearer {token}"}
            assert (await admin(rig, "GET", path, headers=headers)).status == 200
        for open_path in ("/healthz", "/readyz", "/metrics", "/openapi.json", "/docs"):
            assert (await admin(rig, "GET", open_path)).status == 200


async def test_a_token_rotates_without_a_restart(tmp_path: Path) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("old")
    async with running_doors(tmp_path / "data", token_file=token_file) as rig:
        for change, statuses in (
            (None, (200, 401)),
            ("new", (401, 200)),
            ("", (401, 401)),
        ):
            if change is not None:
                token_file.write_text(change)
                os.utime(token_file, ns=(len(change), len(change)))
            for token, status in zip(("old", "new"), statuses, strict=True):
                headers = {"Authorization": f"Bearer {token}"}
                assert (await admin(rig, "GET", "/admin/v1/topics", None, headers)).status == status
        token_file.unlink()
        (await admin(rig, "GET", "/admin/v1/topics", None, {"Authorization": "Bearer "})).refused(
            "unauthorized"
        )


async def test_readiness_follows_the_program_and_health_does_not(rig: Rig) -> None:
    assert (await admin(rig, "GET", "/readyz")).json == {"status": "ready"}
    rig.is_ready = False
    (await admin(rig, "GET", "/readyz")).refused("not-ready")
    assert (await admin(rig, "GET", "/healthz")).json == {"status": "alive"}


async def test_answers_are_counted_by_route_and_status(rig: Rig) -> None:
    await rig.publish()
    await rig.publish(topic="ordres")
    reply = await admin(rig, "GET", "/metrics")
    assert reply.headers["Content-Type"].startswith("text/plain")
    text = reply.body.decode()
    assert 'ibrik_http_requests_total{route="publishMessage",status="201"} 1.0' in text
    assert 'ibrik_http_requests_total{route="publishMessage",status="404"} 1.0' in text
    assert "ibrik_http_streams 0.0" in text


async def test_the_doors_do_not_serve_each_others_paths(rig: Rig) -> None:
    (await admin(rig, "GET", "/v1/topics")).refused("not-found")
    (await rig.call("PUT", "/admin/v1/desired", DESIRED)).refused("not-found")
