"""What archive jobs ask of the admin door."""

from pathlib import Path
from typing import Any

import pytest

from tests.broker.http.rig import Reply, Rig, running_doors

ROLL = "/admin/v1/topics/orders:roll"


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
