"""The kind cluster of a run: made, given its images, deleted at the end.

Environment: KIND_CLUSTER names the cluster (e2e), KIND_NODE_IMAGE its image, IMAGE_TAG the images
that `make images` built (dev); E2E_KEEP=1 uses a cluster that is there and leaves it at the end.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from e2e.support.cluster import Cluster, run

NAME = os.environ.get("KIND_CLUSTER", "e2e")
NODE_IMAGE = os.environ.get("KIND_NODE_IMAGE", "kindest/node:v1.34.4")
TAG = os.environ.get("IMAGE_TAG", "dev")
KEEP = os.environ.get("E2E_KEEP", "") not in {"", "0"}
START_S = 300


class ClusterInUse(Exception):
    """Another run uses the cluster of this name."""


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """The cluster with the images of the broker and the operator; raises ClusterInUse."""
    folder = Path(tempfile.gettempdir())
    with (folder / f"ibrik-e2e-{NAME}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"another run uses the cluster {NAME}: wait, or set KIND_CLUSTER"
            raise ClusterInUse(message) from None
        kubeconfig = folder / f"ibrik-e2e-{NAME}.kubeconfig"
        there = NAME in run("kind", "get", "clusters", "--quiet").split()
        if there and not KEEP:
            run("kind", "delete", "cluster", "--name", NAME)
        if there and KEEP:
            kubeconfig.write_text(run("kind", "get", "kubeconfig", "--name", NAME))
        else:
            run(
                "kind", "create", "cluster", "--name", NAME, "--image", NODE_IMAGE,
                "--kubeconfig", str(kubeconfig), "--wait", "120s", timeout_s=START_S,
            )  # fmt: skip
        kubeconfig.chmod(0o600)
        try:
            made = Cluster(NAME, kubeconfig, TAG)
            made.load(f"ibrik/broker:{TAG}", f"ibrik/operator:{TAG}")
            yield made
        finally:
            if not KEEP:
                run("kind", "delete", "cluster", "--name", NAME)
