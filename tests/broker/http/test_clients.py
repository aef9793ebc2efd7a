"""Clients over HTTP: they introduce themselves, and their ids never change."""

from typing import Any

import pytest

from tests.broker.http.rig import Rig

TILL = "/v1/clients/till-7"


async def test_the_id_of_a_client_never_changes(rig: Rig) -> None:
    first = await rig.call("PUT", TILL, {"description": "In the hall"})
    assert (first.status, first.headers["Location"]) == (201, TILL)
    assert (first.json["name"], first.json["description"]) == ("till-7", "In the hall")
    second = await rig.call("PUT", TILL, {"name": "till-7", "description": "In the hall"})
    assert (second.status, second.headers["ETag"]) == (200, first.headers["ETag"])
    third = await rig.call("PUT", TILL, {"description": "Upstairs"})
    assert third.headers["ETag"] != first.headers["ETag"]
    assert third.json == first.json | {"description": "Upstairs"}
    assert (await rig.call("GET", TILL)).json == third.json


async def test_a_change_can_depend_on_what_was_read(rig: Rig) -> None:
    (await rig.call("PUT", TILL, {}, headers={"If-Match": "*"})).refused("precondition-failed")
    (await rig.call("PUT", TILL, {}, headers={"If-Match": '"1"'})).refused("precondition-failed")
    etag = (await rig.call("PUT", TILL, {}, headers={"If-None-Match": "*"})).headers["ETag"]
    (await rig.call("PUT", TILL, {}, headers={"If-None-Match": "*"})).refused("precondition-failed")
    assert (await rig.call("GET", TILL, headers={"If-None-Match": etag})).status == 304
    body = {"description": "new"}
    assert (await rig.call("PUT", TILL, body, headers={"If-Match": etag})).status == 200
    (await rig.call("PUT", TILL, {}, headers={"If-Match": etag})).refused("precondition-failed")
    (await rig.call("DELETE", TILL, headers={"If-Match": etag})).refused("precondition-failed")
    assert (await rig.call("GET", TILL)).json["description"] == "new"


async def test_a_removed_client_is_gone(rig: Rig) -> None:
    first = (await rig.call("PUT", TILL, {})).json["id"]
    assert (await rig.call("DELETE", TILL)).status == 204
    (await rig.call("GET", TILL)).refused("unknown-client")
    (await rig.call("DELETE", TILL)).refused("unknown-client")
    assert (await rig.call("PUT", TILL, {})).json["id"] != first


async def test_clients_are_listed_page_by_page(rig: Rig) -> None:
    for name in ("c", "a", "b"):
        await rig.call("PUT", f"/v1/clients/{name}", {})
    first = (await rig.call("GET", "/v1/clients?page_size=2")).json
    assert [item["name"] for item in first["items"]] == ["a", "b"]
    path = f"/v1/clients?page_size=2&page_token={first['next_page_token']}"
    rest = (await rig.call("GET", path)).json
    assert [item["name"] for item in rest["items"]] == ["c"]
    assert "next_page_token" not in rest


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("till-7", b"{", "invalid-json"),
        ("till-7", [], "invalid-request"),
        ("till-7", {"id": "mine"}, "invalid-request"),
        ("till-7", {"name": "other"}, "invalid-request"),
        ("till-7", {"description": 7}, "invalid-request"),
        ("till-7", {"description": "x" * 1_025}, "invalid-request"),
        ("No%20Name", {}, "invalid-name"),
        ("x" * 254, {}, "invalid-name"),
    ],
)
async def test_a_wrong_introduction_changes_nothing(
    rig: Rig, name: str, body: Any, code: str
) -> None:
    (await rig.call("PUT", f"/v1/clients/{name}", body)).refused(code)
    assert (await rig.call("GET", "/v1/clients")).json["items"] == []
