"""Reading everything anew: the world becomes as the API server says, and news is told of."""

from collections.abc import Callable
from typing import Any

import pytest

from ibrik_operator.handlers.watching import Watching
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import KubeUnavailable
from ibrik_operator.resync import Resync
from ibrik_operator.world import World
from tests.support.resources import topic


def at(name: str, version: int, **given: Any) -> dict[str, Any]:
    return topic(name, resourceVersion=str(version), **given)


Change = Callable[[], None]


class Server:
    """Answers a list; `meanwhile` happens while it is on its way."""

    def __init__(self, *documents: Document) -> None:
        self.documents = list(documents)
        self.meanwhile: Change = lambda: None
        self.asked: list[tuple[str, str, str]] = []

    async def list(self, kind: str, namespace: str = "", labels: str = "") -> list[Document]:
        self.asked.append((kind, namespace, labels))
        found = [
            one
            for one in self.documents
            if one["kind"] == kind and namespace in {"", one["metadata"]["namespace"]}
        ]
        self.meanwhile()
        return found


class Case:
    def __init__(self, *known: Document, served: list[Document], namespaces: Any = ()) -> None:
        self.world, self.queued = World(), list[Key]()
        self.watching = Watching(self.world, self.queued.append)
        for document in known:
            self.watching.seen("ADDED", document)
        self.queued.clear()
        kube: Any = Server(*served)
        self.server = kube
        self.resync = Resync(
            kube,
            self.world,
            self.watching.seen,
            watched={"Topic": ""},
            namespaces=namespaces,
        )

    def names(self) -> list[str]:
        return sorted(Key.of(one).name for one in self.world.all("Topic"))


async def test_what_no_event_told_of_is_found() -> None:
    case = Case(
        at("changed", 1), at("gone", 1), served=[at("changed", 5, generation=2), at("new", 4)]
    )
    await case.resync.refresh()
    assert case.names() == ["changed", "new"]
    for name in ("changed", "gone", "new"):
        assert Key("Topic", "shop", name) in case.queued


async def test_where_nothing_was_missed_nothing_happens() -> None:
    case = Case(at("a", 9), at("b", 10), served=[at("a", 9), at("b", 10)])
    await case.resync.refresh()
    assert case.queued == []
    assert case.names() == ["a", "b"]


async def test_what_watching_told_while_the_list_came_counts() -> None:
    case = Case(at("ends", 1), at("moves", 1), served=[at("ends", 1), at("moves", 1)])

    def meanwhile() -> None:
        case.watching.seen("DELETED", at("ends", 20))
        case.watching.seen("MODIFIED", at("moves", 21, generation=2))
        case.watching.seen("ADDED", at("comes", 22))

    case.server.meanwhile = meanwhile
    await case.resync.refresh()
    assert case.names() == ["comes", "moves"]
    moved = case.world.get(Key("Topic", "shop", "moves"))
    assert moved is not None
    assert moved["metadata"]["generation"] == 2


async def test_only_the_served_namespaces_are_read_and_no_other_is_emptied() -> None:
    other = at("other", 1, namespace="bank")
    case = Case(other, at("gone", 1), served=[], namespaces=("shop",))
    await case.resync.refresh()
    assert case.server.asked == [("Topic", "shop", "")]
    assert case.names() == ["other"]


async def test_a_list_that_fails_keeps_no_other_from_being_read() -> None:
    case = Case(served=[at("new", 4)], namespaces=("bank", "shop"))
    server: Any = case.server
    read = server.list

    async def list_or_fail(kind: str, namespace: str = "", labels: str = "") -> list[Document]:
        if namespace == "bank":
            raise KubeUnavailable("its sentence")
        found: list[Document] = await read(kind, namespace, labels)
        return found

    server.list = list_or_fail
    with pytest.raises(KubeUnavailable, match=r"^its sentence$"):
        await case.resync.refresh()
    assert case.names() == ["new"]
