"""CPU as Kubernetes gives it to pods: control groups, shares of a request, quota of a limit.

Source: the kernel's documentation of the CPU controller, cgroup v1 and v2, and the weights that
the kubelet makes of requests (KEP-2254).
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from bench.framework import NotMeasured

V1, V2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")
PERIOD_US = 100_000  # of a limit, what the kubelet sets
LEAST_SHARES, MOST_SHARES = 2, 262_144


@contextmanager
def cpu_group(pid: int, request_millis: int, limit_millis: int | None = None) -> Iterator[None]:
    """A process and all below it, in a group like that of a container, until the block ends.

    Raises NotMeasured where this machine lets nobody make such a group.
    """
    root = V1 if V1.is_dir() else V2
    group = root / f"ibrik-bench-{pid}"
    try:
        if root == V2:
            (root / "cgroup.subtree_control").write_text("+cpu")
        group.mkdir()
    except OSError as error:
        raise NotMeasured(f"needs control groups of its own: {error}") from error
    try:
        for name, value in settings(request_millis, limit_millis, is_v1=root == V1).items():
            (group / name).write_text(value)
        _move([pid, *(child.pid for child in psutil.Process(pid).children(recursive=True))], group)
        yield
    finally:
        _move(map(int, (group / "cgroup.procs").read_text().split()), root)
        group.rmdir()


def settings(request_millis: int, limit_millis: int | None, *, is_v1: bool) -> dict[str, str]:
    """What the files of a group say."""
    shares = max(request_millis * 1024 // 1000, LEAST_SHARES)
    quota = None if limit_millis is None else limit_millis * PERIOD_US // 1000
    if is_v1:
        v1 = {"cpu.shares": str(shares)}
        return v1 if quota is None else v1 | {"cpu.cfs_quota_us": str(quota)}
    weight = 1 + (shares - LEAST_SHARES) * 9999 // (MOST_SHARES - LEAST_SHARES)
    v2 = {"cpu.weight": str(weight)}
    return v2 if quota is None else v2 | {"cpu.max": f"{quota} {PERIOD_US}"}


def _move(pids: Iterable[int], group: Path) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            (group / "cgroup.procs").write_text(str(pid))
