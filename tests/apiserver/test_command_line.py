"""What the command line makes of a real API server, by way of the real kubectl."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.cluster import Cluster

IBRIK = str(Path(sys.executable).with_name("ibrik"))


def ibrik(
    cluster: Cluster, token: str, namespace: str, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    config = cluster.server.kubeconfig(token, f"cli-{namespace}", namespace)
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("IBRIK_")}
    return subprocess.run(
        [IBRIK, *arguments],
        env=inherited | {"KUBECONFIG": str(config)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_namespace_without_a_pool_is_said(cluster: Cluster, namespace: str) -> None:
    done = ibrik(cluster, cluster.server.admin_token, namespace, "--context=test", "topic", "ls")
    assert done.returncode == 1
    assert done.stderr.startswith("error: there is no pool 'default' in this namespace")


def test_a_stranger_is_told_that_the_cluster_does_not_know_them(
    cluster: Cluster, namespace: str
) -> None:
    done = ibrik(cluster, "of-nobody", namespace, "--context=test", "topic", "ls")
    assert done.returncode == 1
    assert "does not know you" in done.stderr


def test_the_doctor_of_a_cluster_without_an_operator_says_so(
    cluster: Cluster, namespace: str
) -> None:
    done = ibrik(cluster, cluster.server.admin_token, namespace, "doctor", "-o", "json")
    assert done.returncode == 1, done.stderr
    texts = [finding["text"] for finding in json.loads(done.stdout)["findings"]]
    assert texts[0].startswith("there is no operator")
    assert any(text.startswith("definitions are those of ") for text in texts)
    assert f"no pool in namespace {namespace}" in texts
