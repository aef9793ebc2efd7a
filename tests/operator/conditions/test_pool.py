"""What is said of a BrokerPool: the first thing that is wrong, and what a person does about it."""

from typing import Any

import pytest

from ibrik_operator.conditions.condition import Verdict, Violation
from ibrik_operator.conditions.pool import PoolFacts, pool_verdicts
from ibrik_operator.conditions.reasons import REASONS, Reason
from ibrik_operator.keys import Key
from ibrik_operator.observations import PoolObservation
from tests.support.pool_documents import broker, observation, pod, silent

POOL = Key("BrokerPool", "shop", "default")
SERVING = observation(broker(0))
ASPECTS = [
    "Accepted", "ObjectsApplied", "BrokersReady", "MetadataReady", "StorageAvailable", "Scaled",
    "VolumesGrown", "UpToDate",
]  # fmt: skip
OTHER = Violation("Invalid", "Do this.")


def told(
    pods: list[dict[str, Any]], seen: PoolObservation = SERVING, **facts: Any
) -> dict[str, Verdict]:
    known = {"replicas": len(pods) or 1} | facts
    return {
        one.type: one
        for one in pool_verdicts(PoolFacts(POOL, pods=pods, observation=seen, **known))
    }


def test_a_pool_that_is_as_wished_says_so_in_every_aspect() -> None:
    verdicts = told([pod(0)])
    assert {name: one.status for name, one in verdicts.items()} == dict.fromkeys(
        ["Ready", *ASPECTS], "True"
    ) | {"Reconciling": "False", "Stalled": "False"}


PODS = {
    "not there": ([], Reason.STARTING, "ibrik-default-0 is not there yet"),
    "starting": ([pod(0, ready=False)], Reason.STARTING, "ibrik-default-0 is starting"),
    "no image": (
        [pod(0, ready=False, waiting=("ImagePullBackOff", "Back-off"))],
        Reason.IMAGE_UNAVAILABLE,
        "image ibrik/broker:1 cannot be pulled (ImagePullBackOff). Correct spec.image",
    ),
    "no image at first": (
        [pod(0, ready=False, waiting=("ErrImagePull", "not found"))],
        Reason.IMAGE_UNAVAILABLE,
        "(ErrImagePull)",
    ),
    "no secret": (
        [pod(0, ready=False, waiting=("CreateContainerConfigError", 'secret "db" not found'))],
        Reason.SECRET_MISSING,
        'ibrik-default-0: secret "db" not found',
    ),
    "crashing": (
        [pod(0, ready=False, waiting=("CrashLoopBackOff", "back-off"), restarts=4)],
        Reason.CRASH_LOOPING,
        "ended 4 times. See why: kubectl -n shop logs ibrik-default-0 --previous",
    ),
    "between two crashes": (
        [pod(0, ready=False, restarts=5)],
        Reason.CRASH_LOOPING,
        "ended 5 times",
    ),
    "started twice": ([pod(0, ready=False, restarts=1)], Reason.STARTING, "is starting"),
    "no node": (
        [pod(0, ready=False, unscheduled="0/3 nodes are available: 3 Insufficient cpu.")],
        Reason.UNSCHEDULABLE,
        "ibrik-default-0: 0/3 nodes are available: 3 Insufficient cpu.",
    ),
    "no volume": (
        [pod(0, ready=False, unscheduled="pod has unbound immediate PersistentVolumeClaims")],
        Reason.CLAIM_PENDING,
        "Claims. See: kubectl -n shop describe pvc data-ibrik-default-0",
    ),
    "no class": (
        [pod(0, ready=False, unscheduled='storageclass.storage.k8s.io "fast" not found')],
        Reason.CLAIM_PENDING,
        'storageclass.storage.k8s.io "fast" not found',
    ),
    "the second one": ([pod(0), pod(1, ready=False)], Reason.STARTING, "ibrik-default-1"),
}


@pytest.mark.parametrize(("pods", "reason", "sentence"), PODS.values(), ids=PODS)
def test_a_pod_that_is_not_ready_is_named_with_what_helps(
    pods: list[dict[str, Any]], reason: Reason, sentence: str
) -> None:
    verdicts = told(pods, observation(broker(0), broker(1)))
    for name in ("BrokersReady", "Ready"):
        assert (verdicts[name].status, verdicts[name].reason) == ("False", reason)
        assert sentence in verdicts[name].message


def test_pods_beyond_the_wish_do_not_count() -> None:
    assert told([pod(0), pod(1, ready=False)], replicas=1)["Ready"].status == "True"


def test_a_ready_broker_that_does_not_answer_the_operator_is_told() -> None:
    verdict = told([pod(0)], observation(silent(0)))["BrokersReady"]
    assert verdict.reason == "BrokerSilent"
    assert "ibrik-default-0 is ready but does not answer: no answer within 20 s" in verdict.message


def test_a_database_out_of_reach_is_told() -> None:
    verdict = told([pod(0)], observation(broker(0, is_metadata_ready=False)))["MetadataReady"]
    assert verdict.reason == "PostgresUnreachable"
    assert "Check the database and its Secret" in verdict.message


def test_a_full_volume_is_told_with_its_numbers() -> None:
    facts = {"is_storage_low": True, "free_bytes": 100 * 2**20}
    verdict = told([pod(0)], observation(broker(0, **facts)))["StorageAvailable"]
    assert verdict.reason == "StorageLow"
    assert "100Mi free of 10Gi; publishing is refused below 256Mi" in verdict.message


@pytest.mark.parametrize("aspect", ["accepted", "applied"])
def test_what_kubernetes_refuses_makes_it_not_ready(aspect: str) -> None:
    assert told([pod(0)], **{aspect: OTHER})["Ready"].message == "Do this."


@pytest.mark.parametrize(
    ("fact", "type_"), [("scaled", "Scaled"), ("grown", "VolumesGrown"), ("rolled", "UpToDate")]
)
def test_what_waits_informs_while_the_pool_serves(fact: str, type_: str) -> None:
    verdicts = told([pod(0)], **{fact: OTHER})
    assert verdicts[type_].status == "False"
    assert verdicts["Ready"].status == "True"


def test_every_reason_has_a_meaning_and_a_next_step() -> None:
    assert set(REASONS) == set(Reason)
    assert all(
        entry.meaning.endswith(".") and entry.next_step.endswith(".") for entry in REASONS.values()
    )
