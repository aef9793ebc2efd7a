"""Commands for a cluster: what the options mean, and the way through a forwarded port."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ibrik_cli.cluster import Cluster, check_command, take_options
from ibrik_cli.failures import Failure
from ibrik_cli.kubectl import explain
from ibrik_cli.pods import pod_state
from tests.cli.clusters import World
from tests.support.broker import Broker, running_broker

TOKEN = "a-token-of-the-admin-door"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker as in a pod: it listens on all addresses, so registering needs the token."""
    folder = tmp_path_factory.mktemp("pod")
    (folder / "token").write_text(TOKEN)
    with running_broker(
        folder, IBRIK_HTTP__HOST="0.0.0.0", IBRIK_ADMIN__TOKEN_FILE=str(folder / "token")
    ) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World.make(tmp_path / "world")


@pytest.fixture
def cluster(world: World, broker: Broker) -> World:
    url = broker.http_url.replace("0.0.0.0", "127.0.0.1")
    world.forward("service/ibrik-default", 8080, url)
    world.secret("default", TOKEN)
    return world


@pytest.mark.parametrize(
    ("arguments", "cluster", "rest"),
    [
        (["topic", "ls"], None, ["topic", "ls"]),
        (["--context", "kind", "topic", "ls"], Cluster("kind"), ["topic", "ls"]),
        (["topic", "ls", "--context=kind"], Cluster("kind"), ["topic", "ls"]),
        (["-n", "shop", "topic", "ls"], Cluster(namespace="shop"), ["topic", "ls"]),
        (["get", "topics", "-n", "shop"], None, ["get", "topics", "-n", "shop"]),
        (
            ["get", "topics", "-n", "shop", "--context", "kind"],
            Cluster("kind", "shop"),
            ["get", "topics"],
        ),
        (
            ["topic", "--pool", "fast", "ls", "--kubeconfig=k"],
            Cluster(pool="fast", kubeconfig="k"),
            ["topic", "ls"],
        ),
        (
            ["--context", "kind", "bench", "--", "--pool"],
            Cluster("kind"),
            ["bench", "--", "--pool"],
        ),
    ],
)
def test_options_of_a_cluster_work_at_any_place(
    arguments: list[str], cluster: Cluster | None, rest: list[str]
) -> None:
    assert take_options(arguments) == (cluster, rest)


def test_as_a_plugin_it_always_means_a_cluster() -> None:
    assert take_options(["topic", "ls"], is_plugin=True) == (Cluster(), ["topic", "ls"])
    assert take_options(["get", "topics", "-n", "shop"], is_plugin=True) == (
        Cluster(namespace="shop"),
        ["get", "topics"],
    )


def test_an_option_without_a_value_is_refused() -> None:
    with pytest.raises(Failure, match="--context needs a value"):
        take_options(["topic", "ls", "--context"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["apply", "-f", "a.yaml"], "use kubectl apply: on a cluster the API server keeps"),
        (["delete", "topic", "a"], "use kubectl delete"),
        (["serve", "--dev"], "serve works on this machine"),
        (["log", "verify", "data"], "log verify works on this machine"),
        (["topic", "ls", "--server=http://x"], "--context and --server name two brokers"),
    ],
)
def test_what_has_no_meaning_on_a_cluster_is_refused(arguments: list[str], sentence: str) -> None:
    with pytest.raises(Failure, match=sentence) as refused:
        check_command(arguments)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize(
    ("errors", "sentence"),
    [
        (
            "Error in configuration: context was not found for specified context: kind",
            "there is no context 'kind' in your kubeconfig. List them with: kubectl config",
        ),
        ('error: context "kind" does not exist', "there is no context 'kind'"),
        (
            'Error from server (NotFound): services "ibrik-fast" not found',
            "there is no pool 'fast' in this namespace. List the pools with: kubectl get",
        ),
        (
            'error: the server doesn\'t have a resource type "brokerpools"',
            "Ibrik is not installed in the cluster of context 'kind'",
        ),
        (
            'Error from server (Forbidden): pods "x" is forbidden: User "u" cannot create '
            'resource "pods/portforward"',
            "you may not do that in the cluster of context 'kind': pods \"x\" is forbidden",
        ),
        (
            "E1128 08:56:19.0 1 memcache.go:265] a\nE1128 08:56:19.1 1 memcache.go:265] b\n"
            "The connection to the server localhost:8080 was refused - did you specify the right "
            "host or port?",
            "your kubeconfig names no cluster. Name one with --context",
        ),
        (
            "Unable to connect to the server: dial tcp: lookup api: no such host",
            "the API server of context 'kind' does not answer (Unable to connect",
        ),
        ("error: You must be logged in to the server (Unauthorized)", "does not know you"),
        ("Warning: old\nerror: something new\nerror: and more", "kubectl: something new"),
        ("", "kubectl: failed without a word"),
    ],
)
def test_what_kubectl_says_becomes_a_sentence(errors: str, sentence: str) -> None:
    said = explain(errors, Cluster("kind", pool="fast"))
    assert sentence in said
    assert "memcache" not in said


def test_a_pod_is_described_in_a_few_words() -> None:
    pod = {
        "metadata": {"name": "ibrik-default-0"},
        "status": {
            "phase": "Pending",
            "containerStatuses": [{"state": {"waiting": {"reason": "ImagePullBackOff"}}}],
        },
    }
    assert pod_state(pod) == "ibrik-default-0 is Pending (ImagePullBackOff)"
    pod["status"] = {
        "phase": "Pending",
        "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
    }
    assert pod_state(pod) == "ibrik-default-0 is Pending (Unschedulable)"


@pytest.mark.slow
def test_messages_go_through_a_forwarded_port(cluster: World) -> None:
    kind = ("--context", "kind", "-n", "shop")
    created = cluster.run(*kind, "topic", "create", "orders")
    assert created.stdout == "topic.ibrik.dev/orders created\n", created.stderr
    produced = cluster.run(*kind, "produce", "orders", given="1\n2\n")
    assert produced.returncode == 0, produced.stderr
    consumed = cluster.run("consume", "orders", "--format", "value", *kind)
    assert (consumed.stdout, consumed.returncode) == ("1\n2\n", 0)
    assert "orders" in cluster.run(program=[sys.executable, "-c", AS_PLUGIN]).stdout
    calls = cluster.notes("calls")
    assert sum("get secret" in call for call in calls) == 1, "only to register"
    assert all(c.startswith("--context=kind --namespace=shop ") for c in calls[:-1])
    assert calls[-1].startswith("port-forward ")
    assert not any(is_running(pid) for pid in cluster.notes("forwards"))
    assert TOKEN not in "".join((created.stdout, created.stderr, *calls))


AS_PLUGIN = """
import sys
sys.argv = ["kubectl-ibrik", "topic", "ls"]
from ibrik_cli.main import plugin
plugin()
"""


def is_running(pid: str) -> bool:
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.slow
def test_a_forward_that_breaks_is_made_again(cluster: World) -> None:
    kind = ("--context", "kind")
    cluster.run(*kind, "topic", "create", "live")
    cluster.run(*kind, "produce", "live", given="before\n")
    following = cluster.start(*kind, "consume", "live", "--follow", "--format", "value")
    assert following.stdout is not None
    assert following.stdout.readline() == "before\n"
    first = cluster.notes("forwards")[-1]
    os.kill(int(first), signal.SIGKILL)
    cluster.run(*kind, "produce", "live", given="after\n")
    assert following.stdout.readline() == "after\n"
    following.send_signal(signal.SIGTERM)
    following.communicate(timeout=30)
    assert following.returncode == 128 + signal.SIGTERM
    assert first in cluster.notes("forwards")
    assert not any(is_running(pid) for pid in cluster.notes("forwards"))


def test_a_pool_without_ready_pods_is_said(world: World) -> None:
    world.answer("get service ibrik-default", "service/ibrik-default\n")
    world.answer("get pods", '{"items": [{"metadata": {"name": "ibrik-default-0"}, "status": {}}]}')
    done = world.run("--context", "kind", "topic", "ls")
    assert done.returncode == 1
    assert done.stderr == (
        "error: no broker of pool 'default' can be reached: ibrik-default-0 is Unknown. "
        "See what is wrong with: ibrik --context=kind doctor\n"
    )


def test_a_pool_that_is_not_there_is_said(world: World) -> None:
    done = world.run("--context", "kind", "--pool", "fast", "topic", "ls")
    assert done.stderr.startswith("error: there is no pool 'fast' in this namespace")


def test_a_machine_without_kubectl_is_told_so(tmp_path: Path) -> None:
    world = World.make(tmp_path / "world")
    done = world.run("--context", "kind", "topic", "ls", PATH=str(tmp_path))
    assert done.stderr.startswith("error: kubectl is not installed, or not on PATH")


def test_the_shell_completes_behind_the_options_of_a_cluster(world: World) -> None:
    words = "ibrik --context kind --namespace shop topic de"
    completed = world.run(
        _IBRIK_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" "))
    )
    assert completed.stdout.split() == ["describe", "delete"]
