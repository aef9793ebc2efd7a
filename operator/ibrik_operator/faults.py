"""Places where a test can end the operator: after each side effect, before the next.

Outside tests nothing happens. IBRIK_OPERATOR_FAULT=`name` or `name:3` ends the process, as SIGKILL
would, when the place is reached for the first or third time.
"""

import os
from collections import Counter

VARIABLE = "IBRIK_OPERATOR_FAULT"
EXIT_CODE = 137

POINTS = (
    "pool-secret-applied",
    "pool-objects-applied",
    "pool-set-applied",
    "pool-set-orphaned",
    "pool-claim-labelled",
    "pool-claim-grown",
    "pool-pod-deleted",
    "pool-status-written",
    "pool-default-made",
    "credentials-applied",
    "finalizer-added",
    "finalizer-released",
    "archive-token-made",
    "archive-claim-applied",
    "archive-run-created",
    "archive-schedule-applied",
    "archive-schedule-deleted",
    "brokers-applied",
    "status-written",
)

_reached: Counter[str] = Counter()


def reach(point: str) -> None:
    """Say that the side effect of this name has happened."""
    wanted, _, times = os.environ.get(VARIABLE, "").partition(":")
    assert point in POINTS, point
    if wanted != point:
        return
    _reached[point] += 1
    if _reached[point] == int(times or 1):
        os._exit(EXIT_CODE)
