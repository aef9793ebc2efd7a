"""A pod in a few words. Pure; for sentences of `kubectl.py` and of the doctor."""

from typing import Any


def pod_state(pod: dict[str, Any]) -> str:
    """`ibrik-default-0 is Pending (Unschedulable)`: one pod in a few words."""
    status = pod.get("status", {})
    waiting = [
        each["state"]["waiting"].get("reason", "")
        for each in status.get("containerStatuses") or []
        if "waiting" in each.get("state", {})
    ]
    unmet = [
        c.get("reason", "")
        for c in status.get("conditions") or []
        if c.get("type") == "PodScheduled" and c.get("status") == "False"
    ]
    reason = next((r for r in (*waiting, *unmet) if r), "")
    phase = status.get("phase", "Unknown")
    return f"{pod['metadata']['name']} is {phase}" + (f" ({reason})" if reason else "")


def is_ready(pod: dict[str, Any]) -> bool:
    return any(
        c.get("type") == "Ready" and c.get("status") == "True"
        for c in pod.get("status", {}).get("conditions") or []
    )


def is_ended(pod: dict[str, Any]) -> bool:
    """Whether it did what it was for, as the pod of a job, or is going."""
    is_done = pod.get("status", {}).get("phase") == "Succeeded"
    return is_done or "deletionTimestamp" in pod["metadata"]


def containers_of(pod: dict[str, Any]) -> list[dict[str, Any]]:
    """What is known of its containers, those that prepare it first."""
    status = pod.get("status", {})
    return [
        *(status.get("initContainerStatuses") or []),
        *(status.get("containerStatuses") or []),
    ]
