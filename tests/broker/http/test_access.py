"""Who may register: on loopback everybody, beyond it who has the admin token."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from ibrik_broker.http.access import Access, access_of
from ibrik_broker.http.tokens import TokenFile
from ibrik_broker.settings import load_settings
from tests.broker.http.rig import Reply, Rig, running_doors
from tests.support.broker import running_broker

OPEN_CHANGES = {
    "publishMessage",
    "publishBatch",
    "createProducer",
    "leaseMessages",
    "ackMessages",
    "nackMessages",
    "extendLeases",
}
"""Publishing and consuming: everything else that changes something is a registration."""
TOPIC: dict[str, Any] = {"metadata": {"name": "bills"}}
OTHERS = "0.0.0.0"


@pytest.fixture
async def beyond(tmp_path: Path) -> AsyncIterator[Rig]:
    """As a broker beyond loopback with an admin token."""
    (tmp_path / "token").write_text("secret\n")
    access = Access(is_open=False, tokens=TokenFile(tmp_path / "token"))
    async with running_doors(tmp_path / "data", access=access) as rig:
        yield rig


async def create(rig: Rig, token: str | None = None) -> Reply:
    headers = None if token is None else {"Authorization": f"Bearer {token}"}
    return await rig.call("POST", "/v1/topics", TOPIC, headers=headers)


async def test_registering_beyond_loopback_needs_the_admin_token(beyond: Rig) -> None:
    for token in (None, "", "other"):
        problem = (await create(beyond, token)).refused("unauthorized")
        assert "admin.token_file" in problem["detail"]
    (await beyond.call("GET", "/v1/topics/bills")).refused("unknown-topic")
    assert (await create(beyond, "secret")).status == 201


async def test_every_registration_asks_and_nothing_else_does(beyond: Rig) -> None:
    """Over the whole table, so that a new operation cannot be forgotten."""
    for operation in beyond.data.operations:
        is_change = operation.method != "GET" and operation.name not in OPEN_CHANGES
        assert operation.is_registration == is_change, operation.name
        assert operation.needs_token == is_change, operation.name
        if is_change:
            path = operation.path.replace("{", "").replace("}", "")
            (await beyond.call(operation.method, path, b"{}")).refused("unauthorized")


async def test_publishing_and_reading_stay_open(beyond: Rig) -> None:
    assert (await beyond.publish(b"1")).status == 201
    assert await beyond.values() == [1]
    assert (await beyond.call("GET", "/v1/topics")).status == 200


async def test_a_stranger_is_refused_before_the_body(beyond: Rig) -> None:
    head = "POST /v1/topics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
    for more in ("\r\n", "Expect: 100-continue\r\n\r\n"):
        (await beyond.raw((head + more).encode())).refused("unauthorized")
    with_token = "Authorization: Bearer secret\r\nExpect: 100-continue\r\n\r\n"
    assert (await beyond.raw((head + with_token).encode())).status == 100


async def test_without_a_token_file_the_refusal_names_both_ways_out(tmp_path: Path) -> None:
    async with running_doors(tmp_path, access=Access(is_open=False)) as rig:
        problem = (await create(rig, "guess")).refused("unauthorized")
        assert "admin.token_file (IBRIK_ADMIN__TOKEN_FILE)" in problem["detail"]
        assert "http.open_registration (IBRIK_HTTP__OPEN_REGISTRATION=true)" in problem["detail"]


@pytest.mark.parametrize(
    ("flags", "is_open", "has_tokens"),
    [
        ({}, True, False),
        ({"dev": True}, True, False),
        ({"admin.token_file": "token"}, True, False),
        ({"http.host": OTHERS}, False, False),
        ({"http.host": OTHERS, "admin.token_file": "token"}, False, True),
        ({"http.host": OTHERS, "http.open_registration": True}, True, False),
        ({"tcp.host": OTHERS}, True, False),
    ],
)
def test_the_listener_and_two_settings_decide(
    flags: dict[str, Any], is_open: bool, has_tokens: bool
) -> None:
    access = access_of(load_settings(flags))
    assert (access.is_open, access.tokens is not None) == (is_open, has_tokens)


def test_a_broker_on_all_addresses_asks_for_the_token(tmp_path: Path) -> None:
    """The process, as it runs in the image."""
    (tmp_path / "token").write_text("secret\n")
    env = {"IBRIK_HTTP__HOST": OTHERS, "IBRIK_ADMIN__TOKEN_FILE": str(tmp_path / "token")}
    with running_broker(tmp_path, **env) as broker:
        url = broker.http_url.replace(OTHERS, "127.0.0.1") + "/v1/topics"
        body = json.dumps(TOPIC).encode()
        with pytest.raises(HTTPError, match="401"):
            urlopen(Request(url, body, method="POST"), timeout=20)
        headers = {"Authorization": "Bearer secret"}
        with urlopen(Request(url, body, headers, method="POST"), timeout=20) as answer:
            assert answer.status == 201
