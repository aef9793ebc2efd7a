"""Which cluster, namespace and pool a command is meant for. Pure; `kubectl.py` goes there.

The options work at any place of the command line, as those of kubectl do, so they are taken out
before typer reads the rest. `chosen` tells the session whether there is a cluster at all.
"""

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace

from ibrik_api.kubernetes import DEFAULT_POOL
from ibrik_cli.failures import WRONG_USAGE, Failure

OPTIONS = {"--context": "context", "--kubeconfig": "kubeconfig", "--pool": "pool"}
NAMESPACE_OPTIONS = ("--namespace", "-n")
"""Commands have them as well, for resources of a broker; on a cluster both are the same."""
OTHER_PLACES = ("--server", "--admin")
LOCAL = (
    *("serve", "listen", "metadata", "quality", "traffic"),
    *("archive run", "archive plan", "log ls", "log dump", "log verify"),
)
OWNED = ("apply", "delete")


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is not named is what the kubeconfig says."""

    context: str = ""
    namespace: str = ""
    pool: str = DEFAULT_POOL
    kubeconfig: str = ""

    @property
    def flags(self) -> list[str]:
        """The part that kubectl takes, too."""
        named = {
            "--kubeconfig": self.kubeconfig,
            "--context": self.context,
            "--namespace": self.namespace,
        }
        return [f"{option}={value}" for option, value in named.items() if value]

    def in_namespace(self, namespace: str) -> "Cluster":
        return replace(self, namespace=namespace)

    @property
    def doctor(self) -> str:
        """The command that looks at the same place."""
        return " ".join(["ibrik", *self.flags, "doctor"])

    @property
    def text(self) -> str:
        return f"context '{self.context}'" if self.context else "the current context"


_chosen: ContextVar[Cluster | None] = ContextVar("chosen_cluster", default=None)


def chosen() -> Cluster | None:
    """The cluster that this command is for; None: the broker at an address."""
    return _chosen.get()


def choose(cluster: Cluster | None) -> None:
    """Say it for this command; the program runs one."""
    _chosen.set(cluster)


def take_options(
    arguments: Sequence[str], *, is_plugin: bool = False
) -> tuple[Cluster | None, list[str]]:
    """The cluster that the arguments name, and the arguments without it.

    `kubectl ibrik` always means a cluster. Raises Failure on a value that is missing.
    """
    end = list(arguments).index("--") if "--" in arguments else len(arguments)
    given, tail = list(arguments[:end]), list(arguments[end:])
    front = _front_length(given)
    named, front_rest = _take(given[:front], (*OPTIONS, *NAMESPACE_OPTIONS))
    later, rest = _take(given[front:], tuple(OPTIONS))
    named |= later
    if not named and not is_plugin:
        return None, [*front_rest, *rest, *tail]
    namespace, rest = _take(rest, NAMESPACE_OPTIONS)
    named |= namespace
    cluster = Cluster()
    for option, value in named.items():
        field = OPTIONS.get(option, "namespace")
        cluster = replace(cluster, **{field: value})
    return cluster, [*front_rest, *rest, *tail]


def check_command(arguments: Sequence[str]) -> None:
    """Refuse what has no meaning on a cluster, with what to type instead."""
    if any(a.partition("=")[0] in OTHER_PLACES for a in arguments):
        raise Failure("--context and --server name two brokers: leave one out", WRONG_USAGE)
    words = [a for a in arguments if not a.startswith("-")]
    verb = words[0] if words else ""
    is_help = "--help" in arguments or "-h" in arguments
    if verb in OWNED and not is_help:
        raise Failure(
            f"use kubectl {verb}: on a cluster the API server keeps the resources, and the "
            "operator carries them to the brokers",
            WRONG_USAGE,
        )
    if {verb, " ".join(words[:2])} & set(LOCAL) and not is_help:
        raise Failure(
            f"{' '.join(words[:2])} works on this machine: leave --context, --pool and "
            "--namespace out",
            WRONG_USAGE,
        )


def _front_length(arguments: Sequence[str]) -> int:
    """How many arguments stand before the command."""
    position = 0
    while position < len(arguments) and arguments[position].startswith("-"):
        has_value = arguments[position] in (*OPTIONS, *NAMESPACE_OPTIONS)
        position += 2 if has_value else 1
    return min(position, len(arguments))


def _take(arguments: Sequence[str], options: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Values of these options, the last of each, and what is left."""
    found: dict[str, str] = {}
    rest: list[str] = []
    left = iter(arguments)
    for argument in left:
        name, equals, value = argument.partition("=")
        if name not in options:
            rest.append(argument)
            continue
        value = value if equals else next(left, "")
        if not value:
            raise Failure(f"{name} needs a value", WRONG_USAGE)
        found[name] = value
    return found, rest
