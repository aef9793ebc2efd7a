"""What can be read off a pod. Pure."""

from ibrik_operator.keys import Document


def is_pod_ready(pod: Document) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def is_terminating(document: Document) -> bool:
    return document["metadata"].get("deletionTimestamp") is not None
