"""Both doors against their own documents: schemathesis asks, nothing may break or surprise.

The broker runs in this process on real sockets; schemathesis calls it from a thread.
"""

import asyncio
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.broker.http.rig import Rig, running_doors

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 15
ENDLESS = ("streamMessages", "streamLeases")
"""Answers that do not end."""
NOTHING_WRONG = (
    "createProducer",
    "adoptTopic",
    "observe",
    "checkHealth",
    "checkReadiness",
    "scrapeMetrics",
)
"""Requests that cannot contradict their document."""
KNOWN = {
    "topic": "orders",
    "channel": "billing",
    "subscription": "billing",
    "publisher": "shop",
    "client": "till-7",
}
PATIENCE_S = 280
BYTES = ("readMessage", "scrapeMetrics")
"""Answers of any content type."""


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("door", ["data", "admin"])
async def test_every_answer_is_documented(tmp_path: Path, door: str, mode: GenerationMode) -> None:
    async with running_doors(tmp_path, wait_ms=100) as rig:
        for number in range(3):
            await rig.publish(b"%d" % number)
        await register(rig)
        port = rig.data_port if door == "data" else rig.admin_port
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.to_thread(ask, port, mode)


async def register(rig: Rig) -> None:
    """One of each kind, by the names that many of the requests are for."""
    for path, body in (
        (
            "channels/billing",
            {"metadata": {"name": "billing"}, "spec": {"topic": {"name": "copy"}}},
        ),
        (
            "subscriptions/billing",
            {"metadata": {"name": "billing"}, "spec": {"topicRef": {"name": "orders"}}},
        ),
        ("clients/till-7", {}),
    ):
        assert (await rig.call("PUT", f"/v1/{path}", body)).status == 201
    reply = await rig.call("POST", "/v1/topics/orders/publishers", {"name": "shop"})
    assert reply.status == 201


def ask(port: int, mode: GenerationMode) -> None:
    url = f"http://127.0.0.1:{port}"
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        name = operation.definition.raw["operationId"]
        is_askable = mode is GenerationMode.POSITIVE or name not in NOTHING_WRONG
        if is_askable and name not in ENDLESS:
            ask_operation(operation, mode)


def ask_operation(operation: Any, mode: GenerationMode) -> None:
    name = operation.definition.raw["operationId"]
    checks = [c for c in CHECKS if name not in BYTES or c is not content_type_conformance]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(generation_mode=mode))
    def answers(case: Any) -> None:
        if crc32(str(case.path_parameters).encode()) % 2:  # else nearly all of them are 404
            case.path_parameters |= {n: KNOWN[n] for n in case.path_parameters.keys() & KNOWN}
        case.call_and_validate(checks=checks, timeout=10)

    answers()
