"""The CPU of a pod: what the kubelet writes for a request and a limit."""

import pytest

from bench.beside import BROKER_MILLIS, JOB_MILLIS
from bench.cpu_groups import settings
from ibrik_api.resources.pool import BrokerPoolSpec
from ibrik_operator.desired.archive_pod import CPU


@pytest.mark.parametrize(
    ("request_millis", "limit_millis", "v1", "v2"),
    [
        (100, None, {"cpu.shares": "102"}, {"cpu.weight": "4"}),
        (
            1_000, 500,
            {"cpu.shares": "1024", "cpu.cfs_quota_us": "50000"},
            {"cpu.weight": "39", "cpu.max": "50000 100000"},
        ),
        (0, None, {"cpu.shares": "2"}, {"cpu.weight": "1"}),
    ],
    ids=["a request", "a request and a limit", "nothing"],
)  # fmt: skip
def test_a_group_has_the_weight_of_a_request_and_the_quota_of_a_limit(
    request_millis: int, limit_millis: int | None, v1: dict[str, str], v2: dict[str, str]
) -> None:
    assert settings(request_millis, limit_millis, is_v1=True) == v1
    assert settings(request_millis, limit_millis, is_v1=False) == v2


def test_broker_and_job_are_measured_with_what_they_ask_for_by_default() -> None:
    assert BrokerPoolSpec().resources.requests["cpu"] == f"{BROKER_MILLIS}m"
    assert f"{JOB_MILLIS}m" == CPU
