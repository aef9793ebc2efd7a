"""The documents of both doors: valid, complete, and shown without a network."""

import re
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import validate

from ibrik_api.errors import CODES
from ibrik_broker.http.openapi import codes_of
from tests.broker.http.rig import Rig


async def document(rig: Rig, port: int) -> Any:
    reply = await rig.call("GET", "/openapi.json", port=port)
    assert reply.headers["Content-Type"] == "application/json"
    return reply.json


@pytest.mark.parametrize("door", ["data", "admin"])
async def test_the_document_of_a_door_is_openapi(rig: Rig, door: str) -> None:
    port = rig.data_port if door == "data" else rig.admin_port
    found = await document(rig, port)
    validate(found)
    assert found["openapi"].startswith("3.1")


async def test_every_operation_is_documented_under_its_own_name(rig: Rig) -> None:
    for port, plane in ((rig.data_port, rig.data), (rig.admin_port, rig.admin)):
        paths = (await document(rig, port))["paths"]
        names = [entry["operationId"] for path in paths.values() for entry in path.values()]
        assert sorted(names) == sorted(operation.name for operation in plane.operations)
        assert len(set(names)) == len(names)


async def test_every_code_that_is_documented_is_in_the_table(rig: Rig) -> None:
    for operation in (*rig.data.operations, *rig.admin.operations):
        assert set(codes_of(operation)) <= set(CODES)


ELSEWHERE = {
    "metadata-unavailable",  # tests/broker/topics, with a broken database
    "owner-elsewhere",  # tests/broker/pool, with several brokers
}


async def test_every_code_that_a_door_answers_with_has_a_test_here(rig: Rig) -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    documented = {
        code
        for operation in (*rig.data.operations, *rig.admin.operations)
        for code in codes_of(operation)
    }
    untested = {code for code in documented if f'"{code}"' not in tests}
    assert untested <= ELSEWHERE


async def test_every_parameter_of_a_path_is_described(rig: Rig) -> None:
    for operation in (*rig.data.operations, *rig.admin.operations):
        described = {p.name for p in operation.parameters if p.where == "path"}
        assert described == set(re.findall(r"{(\w+)}", operation.path)), operation.name


@pytest.mark.parametrize("door", ["data", "admin"])
async def test_the_page_loads_nothing_from_elsewhere(rig: Rig, door: str) -> None:
    port = rig.data_port if door == "data" else rig.admin_port
    page = await rig.call("GET", "/docs", port=port)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    files = re.findall(r'(?:src|href)="([^"]+)"', page.body.decode())
    assert files
    for name in files:
        if name != "data:,":
            assert not name.startswith(("http", "//"))
            assert (await rig.call("GET", f"/{name}", port=port)).status == 200


async def test_the_old_name_leads_to_the_page(rig: Rig) -> None:
    reply = await rig.call("GET", "/swagger")
    assert (reply.status, reply.headers["Location"]) == (308, "/docs")
