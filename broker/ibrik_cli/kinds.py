"""The kinds of resources that `apply`, `get`, `describe` and `delete` know, as a table.

A further kind is a row here and a module like `channels`.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ibrik_cli import channels, subscriptions, topics
from ibrik_cli.failures import WRONG_USAGE, Failure
from ibrik_cli.manifests import Place, Resource, place_of

if TYPE_CHECKING:
    from ibrik_cli.options import Output
    from ibrik_cli.showing import Listing
    from ibrik_client import Client


class Kind(NamedTuple):
    noun: str
    short: str
    """The short name that kubectl knows."""
    read: "Callable[[Client, Place], Awaitable[Resource]]"
    look_up: "Callable[[Client, Sequence[Place]], Awaitable[Listing]]"
    """Those of these places; all when there is none."""
    describe: "Callable[[Client, Place, Output], Awaitable[None]]"

    @property
    def words(self) -> tuple[str, ...]:
        names = (self.noun, f"{self.noun}s")
        return (*names, *(f"{name}.ibrik.dev" for name in names), self.short)


KINDS = (
    Kind("topic", "ibt", topics.read_topic, topics.look_up, topics.describe),
    Kind("channel", "ibc", channels.read_channel, channels.look_up, channels.describe),
    Kind(
        "subscription",
        "ibs",
        subscriptions.read_subscription,
        subscriptions.look_up,
        subscriptions.describe,
    ),
)


def find_kind(word: str) -> Kind:
    """The kind that a person means; raises Failure."""
    for kind in KINDS:
        if word.lower() in kind.words:
            return kind
    nouns = ", ".join(f"{kind.noun}s" for kind in KINDS)
    raise Failure(f"unknown kind {word!r}: this broker serves {nouns}", WRONG_USAGE)


def by_kind(resources: Sequence[Resource]) -> list[tuple[Kind, list[Place]]]:
    """Where the resources of files are, kind by kind, in the order in which they came."""
    places: dict[Kind, list[Place]] = {}
    for resource in resources:
        places.setdefault(find_kind(resource["kind"]), []).append(place_of(resource))
    return list(places.items())
