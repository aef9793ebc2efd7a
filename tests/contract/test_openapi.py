"""Both doors against their own documents: schemathesis asks, nothing may break or surprise.

The broker runs in this process on real sockets; schemathesis calls it from a thread.
"""

import asyncio
from pathlib import Path
from typing import Any

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

pytestmark = pytest.mark.slow

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
EXAMPLES = 15
ENDLESS = ("streamMessages",)
"""Answers that do not end."""
NOTHING_WRONG = ("createProducer", "adoptTopic", "checkHealth", "checkReadiness", "scrapeMetrics")
"""Requests that cannot contradict their document."""
BYTES = ("readMessage", "scrapeMetrics")
"""Answers of any content type."""


@pytest.mark.parametrize("door", ["data", "admin"])
async def test_every_answer_is_documented(tmp_path: Path, door: str) -> None:
    async with running_doors(tmp_path, wait_ms=100) as rig:
        for number in range(3):
            await rig.publish(b"%d" % number)
        port = rig.data_port if door == "data" else rig.admin_port
        async with asyncio.timeout(100):
            await asyncio.to_thread(ask, rig, port)


def ask(rig: Rig, port: int) -> None:
    url = f"http://127.0.0.1:{port}"
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    for found in schema.get_all_operations():
        operation = found.ok()
        name = operation.definition.raw["operationId"]
        if name not in ENDLESS:
            for mode in GenerationMode:
                if mode is GenerationMode.POSITIVE or name not in NOTHING_WRONG:
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
        if "topic" in case.path_parameters and hash(str(case.path_parameters)) % 2:
            case.path_parameters["topic"] = "orders"  # else nearly all of them are 404
        case.call_and_validate(checks=checks, timeout=10)

    answers()
