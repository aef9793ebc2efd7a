"""Which claims have to grow, and whether their class lets them. Pure."""

from collections.abc import Sequence

from ibrik_api.quantities import format_quantity, parse_quantity
from ibrik_operator.conditions.condition import Violation
from ibrik_operator.conditions.reasons import Reason
from ibrik_operator.keys import Document


def too_small(claims: Sequence[Document], wished_bytes: int) -> list[Document]:
    """Those that ask for less than wished; one that has more is left as it is.

    One without a volume waits: Kubernetes changes the size of bound claims only, and it may be the
    set's pod that binds it.
    """
    return [claim for claim in claims if _is_bound(claim) and _requested(claim) < wished_bytes]


def class_of(claim: Document) -> str:
    return str(claim["spec"].get("storageClassName") or "")


def unsupported(pool: str, namespace: str, class_name: str, claim: Document) -> Violation:
    size = format_quantity(_requested(claim))
    return Violation(
        Reason.EXPANSION_UNSUPPORTED,
        f"StorageClass '{class_name}' does not let volumes grow. Put the size back: kubectl -n "
        f"{namespace} patch brokerpools.ibrik.dev {pool} --type merge -p "
        f'\'{{"spec":{{"storage":{{"size":"{size}"}}}}}}\'',
        is_stalled=True,
    )


def growing(claims: Sequence[Document]) -> Violation | None:
    """While a volume is smaller than its claim asks for. Waiting for the node counts as grown."""
    for claim in claims:
        status = claim.get("status") or {}
        capacity = (status.get("capacity") or {}).get("storage")
        is_waiting_for_pod = any(
            one["type"] == "FileSystemResizePending" for one in status.get("conditions") or []
        )
        if capacity is None or is_waiting_for_pod:
            continue
        if parse_quantity(capacity) < _requested(claim):
            name = claim["metadata"]["name"]
            return Violation(
                Reason.RESIZING,
                f"{name} grows from {capacity} to {format_quantity(_requested(claim))}",
            )
    return None


def _is_bound(claim: Document) -> bool:
    return (claim.get("status") or {}).get("phase") == "Bound"


def _requested(claim: Document) -> int:
    return parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
