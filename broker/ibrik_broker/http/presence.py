"""Waits that end when the client goes: what it would have got is for others.

A handler learns of a disconnect from the connection itself, which calls back: no task and no timer
for a request. All waits can be let go at once, when the door closes.
"""

import asyncio
from collections.abc import Coroutine
from functools import partial
from typing import Any, TypeVar

from aiohttp import web

from ibrik_broker.http.server import DoorProtocol
from ibrik_broker.partitions.refusals import shutting_down

T = TypeVar("T")


class Presence:
    """The requests that wait, each while its client is there."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Task[Any]] = set()
        self._let_go: set[asyncio.Task[Any]] = set()
        self._is_closing = False

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    async def wait(self, request: web.BaseRequest, answer: Coroutine[Any, Any, T]) -> T:
        """The answer. It is cancelled, and ConnectionError raised, when the client goes before.

        Raises Refusal `shutting-down` when the door closes before.
        """
        protocol = _protocol(request)
        if protocol.has_ended or self._is_closing:
            answer.close()
            raise self._reason()
        task = asyncio.current_task()
        assert task is not None, "a request is handled in a task"
        protocol.on_end = partial(self._let_go_of, task)
        self._waiting.add(task)
        try:
            return await answer
        except asyncio.CancelledError:
            if task not in self._let_go:
                raise
            task.uncancel()
            raise self._reason() from None
        finally:
            protocol.on_end = None
            self._waiting.discard(task)
            self._let_go.discard(task)

    def close(self) -> None:
        """Let all of them go."""
        self._is_closing = True
        for task in self._waiting:
            self._let_go_of(task)

    def _reason(self) -> Exception:
        return shutting_down() if self._is_closing else gone()

    def _let_go_of(self, task: asyncio.Task[Any]) -> None:
        if task not in self._let_go:
            self._let_go.add(task)
            task.cancel()


def is_gone(request: web.BaseRequest) -> bool:
    """Whether nobody may be there any more to get an answer."""
    transport = request.transport
    return transport is None or transport.is_closing() or _protocol(request).has_ended


def gone() -> ConnectionResetError:
    return ConnectionResetError("the client is gone")


def _protocol(request: web.BaseRequest) -> DoorProtocol:
    protocol = request.protocol
    assert isinstance(protocol, DoorProtocol), "a door runs with its own protocol"
    return protocol
