"""What archive jobs ask of the admin door."""

from pathlib import Path
from typing import Any

import pytest

from tests.broker.http.rig import Reply, Rig, running_doors

ROLL = "/admin/v1/topics/orders:roll"
ARCHIVE = "/admin/v1/topics/orders/archive"
TABLE = {"id": "t1", "url": "s3://lake/orders", "version": 3}
RUN = {
    "startedAt": "2026-11-28T10:04:31.000Z",
    "endedAt": "2026-11-28T10:04:40.000Z",
    "code": 0,
    "rows": 2,
}


async def admin(rig: Rig, method: str, path: str, body: Any = None, token: str = "") -> Reply:
    headers = {"Authorization": f"Bearer {token}"} if token else None
    return await rig.call(method, path, body, headers=headers, port=rig.admin_port)


async def test_a_roll_tells_where_each_partition_is_sealed(rig: Rig) -> None:
    await rig.publish(b"1")
    await rig.publish(b"2")
    for body in ({"minAge": "1h"}, None, {"minAge": "0s"}, {}):
        reply = await admin(rig, "POST", ROLL, body)
        end = 0 if body == {"minAge": "1h"} else 2
        assert reply.json["topic"] == "orders"
        assert reply.json["partitions"][0] == {"partition": 0, "sealedUpTo": end}


@pytest.mark.parametrize(
    ("path", "body", "code"),
    [
        ("/admin/v1/topics/ordres:roll", None, "unknown-topic"),
        ("/admin/v1/topics/No!:roll", None, "invalid-name"),
        (ROLL, b"{", "invalid-json"),
        (ROLL, {"minAge": 5}, "invalid-resource"),
        (ROLL, {"minAge": "1 hour"}, "invalid-resource"),
        (ROLL, {"olderThan": "1h"}, "invalid-resource"),
    ],
)
async def test_what_cannot_be_rolled_is_refused(rig: Rig, path: str, body: Any, code: str) -> None:
    (await admin(rig, "POST", path, body)).refused(code)


async def test_a_token_of_jobs_is_enough_and_opens_nothing_else(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.mkdir()
    (tokens / "current").write_text("people")
    (tokens / "archive").write_text("jobs")
    async with running_doors(tmp_path / "data", token_file=tokens) as rig:
        (await admin(rig, "POST", ROLL)).refused("unauthorized")
        assert (await admin(rig, "POST", ROLL, token="jobs")).status == 200
        assert (await admin(rig, "POST", ROLL, token="people")).status == 200
        (await admin(rig, "GET", "/admin/v1/topics", token="jobs")).refused("unauthorized")


async def archived(rig: Rig, offset: int, **changes: Any) -> Reply:
    report = {
        "topicId": rig.parts.engine.topic("orders").id,
        "table": TABLE,
        "partitions": [{"partition": 0, "archivedUpTo": offset}],
        "lastRun": RUN,
    }
    return await admin(rig, "PUT", ARCHIVE, report | changes)


async def test_what_a_job_reports_is_what_is_read_back(rig: Rig) -> None:
    seen = (await admin(rig, "GET", ARCHIVE)).json
    assert (seen["enabled"], seen["table"], seen["lastRun"]) == (False, None, None)
    await rig.publish(b"1")
    await rig.publish(b"2")
    await admin(rig, "POST", ROLL)
    await rig.publish(b"3")
    told = (await archived(rig, 2)).json
    assert told == (await admin(rig, "GET", ARCHIVE)).json
    assert (told["table"], told["lastRun"], told["lag"]) == (TABLE, RUN, 1)
    assert told["partitions"][0] == {
        "partition": 0,
        "logStart": 0,
        "archivedUpTo": 2,
        "sealedUpTo": 2,
        "logEnd": 3,
        "heldBytes": 0,
    }


async def test_a_report_that_is_behind_is_answered_with_what_holds(rig: Rig) -> None:
    await rig.publish(b"1")
    await admin(rig, "POST", ROLL)
    await archived(rig, 1)
    again = (await archived(rig, 0, table=TABLE | {"id": "t2"}, lastRun=RUN | {"code": 75})).json
    assert again["partitions"][0]["archivedUpTo"] == 1
    assert (again["table"], again["lastRun"]["code"]) == (TABLE, 75)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topicId": "7d17946a"}, "other-topic-id"),
        ({"partitions": [{"partition": 7, "archivedUpTo": 0}]}, "unknown-partition"),
        ({"partitions": [{"partition": 0, "archivedUpTo": 1}]}, "beyond-sealed"),
        ({"partitions": [{"partition": 0, "archivedUpTo": -1}]}, "invalid-resource"),
        ({"table": None}, "invalid-resource"),
        ({"lastRun": RUN | {"code": 256}}, "invalid-resource"),
        ({"offsets": []}, "invalid-resource"),
    ],
)
async def test_a_report_that_does_not_fit_is_refused(
    rig: Rig, changes: dict[str, Any], code: str
) -> None:
    (await archived(rig, 0, **changes)).refused(code)


async def test_the_status_of_a_topic_tells_how_far_its_archive_is(rig: Rig) -> None:
    await rig.create("bills", archive={"enabled": True}, partitions=2)
    assert "archive" not in (await rig.call("GET", "/v1/topics/orders")).json["status"]
    await rig.publish(b"1", topic="bills", ibrik_partition="0")
    seen = (await rig.call("GET", "/v1/topics/bills")).json["status"]["archive"]
    published = seen.pop("completeThrough")
    assert published
    assert seen == {"archivedUpTo": [0, 0], "lag": 1, "heldBytes": 0, "isOverHold": False}
    await admin(rig, "POST", "/admin/v1/topics/bills:roll")
    report = {
        "topicId": rig.parts.engine.topic("bills").id,
        "table": TABLE,
        "partitions": [{"partition": 0, "archivedUpTo": 1}],
    }
    await admin(rig, "PUT", "/admin/v1/topics/bills/archive", report)
    seen = (await rig.call("GET", "/v1/topics/bills")).json["status"]["archive"]
    assert seen == {
        "archivedUpTo": [1, 0],
        "lag": 0,
        "heldBytes": 0,
        "isOverHold": False,
        "completeThrough": published,
        "table": TABLE,
    }


async def test_an_archive_follows_a_topic_that_is_detached_and_brought_back(rig: Rig) -> None:
    await rig.publish(b"1")
    await admin(rig, "POST", ROLL)
    await archived(rig, 1)
    await rig.call("DELETE", "/v1/topics/orders?policy=Retain")
    (await admin(rig, "GET", ARCHIVE)).refused("topic-detached")
    await rig.call("POST", "/v1/topics", {"metadata": {"name": "orders"}})
    assert (await admin(rig, "GET", ARCHIVE)).json["partitions"][0]["archivedUpTo"] == 1


async def test_a_topic_made_anew_has_nothing_archived_and_takes_no_old_report(rig: Rig) -> None:
    await rig.publish(b"1")
    await admin(rig, "POST", ROLL)
    old_id = rig.parts.engine.topic("orders").id
    await archived(rig, 1)
    await rig.call("DELETE", "/v1/topics/orders?policy=Delete")
    await rig.call("POST", "/v1/topics", {"metadata": {"name": "orders"}})
    assert (await admin(rig, "GET", ARCHIVE)).json["partitions"][0]["archivedUpTo"] == 0
    (await archived(rig, 0, topicId=old_id)).refused("other-topic-id")
