"""Where the binaries of Kubernetes are that tests of the API server need.

`KUBE_ASSETS` names their folder; without it the folder that a prepared machine has, else PATH. No
test of this kind is collected where one of them is missing: there is nothing it could say.
"""

import os
import shutil
from pathlib import Path

NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "helm")
_PREPARED = Path.home() / ".cache" / "local-cluster" / "bin"


def asset(name: str) -> str:
    """The path of one binary."""
    found = _found(name)
    if found is None:
        raise FileNotFoundError(f"{name}: set KUBE_ASSETS to the folder that holds it")
    return found


def are_there() -> bool:
    return all(_found(name) is not None for name in NEEDED)


def _found(name: str) -> str | None:
    if folder := os.environ.get("KUBE_ASSETS"):
        return shutil.which(name, path=folder)
    return shutil.which(name, path=str(_PREPARED)) or shutil.which(name)
