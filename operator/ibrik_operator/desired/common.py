"""What every object of a pool has: labels, an owner, and a digest of what is desired. Pure."""

from collections.abc import Mapping
from typing import Any

from ibrik_api.kubernetes import DESIRED_HASH, pool_labels
from ibrik_operator.documents import digest
from ibrik_operator.keys import Document

USER_ID = 65532  # of both images, so that a volume has one owner
POD_SECURITY = {
    "runAsNonRoot": True,
    "runAsUser": USER_ID,
    "runAsGroup": USER_ID,
    # One group in all pods that mount a volume: with another one its data would change hands.
    "fsGroup": USER_ID,
    "fsGroupChangePolicy": "OnRootMismatch",
    "seccompProfile": {"type": "RuntimeDefault"},
}
CONTAINER_SECURITY = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
"""What the restricted profile of Kubernetes asks for, and more."""


def child(pool: Document, api_version: str, kind: str, name: str) -> dict[str, Any]:
    """An object that goes with its pool; the builders add what it is for."""
    metadata = pool["metadata"]
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": metadata["namespace"],
            "labels": pool_labels(metadata["name"]),
            "annotations": {},
            "ownerReferences": [
                {
                    "apiVersion": pool["apiVersion"],
                    "kind": pool["kind"],
                    "name": metadata["name"],
                    "uid": metadata["uid"],
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
    }


def stamped(document: Mapping[str, Any]) -> dict[str, Any]:
    """The same, with the annotation that says what was desired."""
    metadata = document["metadata"]
    annotations = {**(metadata.get("annotations") or {}), DESIRED_HASH: digest(document)}
    return {**document, "metadata": {**metadata, "annotations": annotations}}
