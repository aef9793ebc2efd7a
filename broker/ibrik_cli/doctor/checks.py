"""The table of checks: what was seen, and what follows from it. Pure."""

from collections.abc import Callable, Iterator, Sequence

from ibrik_cli.doctor import operator_checks, pool_checks, resource_checks
from ibrik_cli.doctor.finding import Finding, Seen

Check = Callable[[Seen], Iterator[Finding]]


def everything_was_seen(seen: Seen) -> Iterator[Finding]:
    for what, why in seen.unseen.items():
        yield Finding("warning", f"could not look at {what}: {why}")


CHECKS: Sequence[Check] = (
    everything_was_seen,
    operator_checks.operator_works,
    operator_checks.definitions_fit,
    pool_checks.pools_are_ready,
    pool_checks.pods_run,
    pool_checks.claims_are_bound,
    pool_checks.brokers_are_well,
    pool_checks.nothing_is_paused,
    resource_checks.resources_are_ready,
    resource_checks.nothing_was_warned_of,
)
BROKER_CHECKS: Sequence[Check] = (pool_checks.brokers_are_well,)
"""Of a broker alone, without a cluster."""


def examine(seen: Seen, checks: Sequence[Check] = CHECKS) -> list[Finding]:
    """All findings, in the order of the checks."""
    return [finding for check in checks for finding in check(seen)]


def is_well(findings: Sequence[Finding]) -> bool:
    return all(finding.level != "problem" for finding in findings)
