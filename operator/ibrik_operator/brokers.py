"""The one door to the brokers: desired resources in, observed ones out.

A broker is reached at the address of its pod, on the admin port, with the token of its pool's
Secret. No exception of the client leaves this file: whatever means "later" is BrokersUnavailable.
"""

import asyncio
import base64
import contextlib
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from ibrik_api.desired import Outcome
from ibrik_api.kubernetes import ADMIN_PORT, POOL_LABEL, admin_secret_name
from ibrik_api.observed import Observed
from ibrik_client.admin import Admin
from ibrik_client.errors import Forbidden, IbrikError
from ibrik_client.retry import NO_RETRY
from ibrik_client.transport import Transport
from ibrik_operator import faults, metrics
from ibrik_operator.documents import is_ready, is_terminating
from ibrik_operator.keys import Document, Key
from ibrik_operator.kube import Kube
from ibrik_operator.observations import BrokerSeen
from ibrik_operator.world import World

MAX_TOGETHER = 200
TIMEOUT_S = 20.0
MAX_DOORS = 256


class BrokersUnavailable(Exception):
    """No broker of the pool did it; the text says why. Later it may work."""


@dataclass
class _Waiting:
    document: Document
    outcome: asyncio.Future[Outcome]


@dataclass
class _Pool:
    """What the operator keeps of a pool between two calls."""

    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    waiting: list[_Waiting] = field(default_factory=list)
    token: str | None = None


class Brokers:
    def __init__(self, kube: Kube, world: World) -> None:
        self._kube = kube
        self._world = world
        self._pools: dict[Key, _Pool] = {}
        self._doors: dict[tuple[str, str], Admin] = {}
        self._open = AsyncExitStack()

    async def close(self) -> None:
        self._doors.clear()
        await self._open.aclose()

    async def apply(self, pool: Key, document: Document) -> Outcome:
        """Make one resource so at its pool.

        Documents of a pool travel together: while one call is under way, the next ones gather.
        Raises BrokersUnavailable.
        """
        state = self._pools.setdefault(pool, _Pool())
        entry = _Waiting(document, asyncio.get_running_loop().create_future())
        state.waiting.append(entry)
        while not entry.outcome.done():
            async with state.turn:
                if entry.outcome.done():
                    break
                together, state.waiting = (
                    state.waiting[:MAX_TOGETHER],
                    state.waiting[MAX_TOGETHER:],
                )
                await self._send(pool, together)
        return entry.outcome.result()

    async def observe(self, pool: Key) -> list[BrokerSeen]:
        """What every pod of the pool serves; pods that do not answer are named with the reason."""
        pods = sorted(self._pods(pool), key=lambda pod: str(pod["metadata"]["name"]))
        return list(await asyncio.gather(*(self._observe(pool, pod) for pod in pods)))

    async def _observe(self, pool: Key, pod: Document) -> BrokerSeen:
        name, uid = pod["metadata"]["name"], pod["metadata"].get("uid", "")
        address = _address(pod)
        if address is None:
            return BrokerSeen(name, None, "the pod has no address yet", uid)
        try:
            answer = await self._with_token(pool, address, Admin.observed)
            observed = Observed.model_validate(answer)
        except (IbrikError, BrokersUnavailable, ValidationError) as error:
            metrics.broker_calls.labels("observe", "failed").inc()
            return BrokerSeen(name, None, str(error), uid)
        metrics.broker_calls.labels("observe", "done").inc()
        return BrokerSeen(name, observed, uid=uid)

    async def _send(self, pool: Key, together: Sequence[_Waiting]) -> None:
        """One call; every future is done afterwards, whatever happened."""
        try:
            results = await self._put(pool, [dict(one.document) for one in together])
            for one, result in zip(together, results, strict=True):
                if not one.outcome.done():
                    one.outcome.set_result(Outcome.model_validate(result))
            faults.reach("brokers-applied")
        except (BrokersUnavailable, ValidationError, ValueError) as error:
            _fail(together, BrokersUnavailable(str(error)))
        finally:  # Also when the one that carried the others is cancelled.
            _fail(together, BrokersUnavailable("the call to the brokers was given up"))

    async def _put(self, pool: Key, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """At the first ready broker that answers; brokers pass on what is not theirs."""
        reasons = []
        for pod in sorted(self._pods(pool), key=lambda pod: str(pod["metadata"]["name"])):
            address = _address(pod)
            if address is None or not is_ready(pod):
                reasons.append(f"{pod['metadata']['name']} is not ready")
                continue
            try:
                results = await self._with_token(pool, address, Admin.apply, documents)
            except IbrikError as error:
                metrics.broker_calls.labels("apply", "failed").inc()
                reasons.append(f"{pod['metadata']['name']}: {error}")
                continue
            metrics.broker_calls.labels("apply", "done").inc()
            return list(results)
        raise BrokersUnavailable("; ".join(reasons) or f"{pool.name} has no pods yet")

    async def _with_token(self, pool: Key, address: str, call: Any, *arguments: Any) -> Any:
        """Call with the token that is known; when refused, with those of the Secret."""
        state = self._pools.setdefault(pool, _Pool())
        if state.token is not None:
            try:
                return await call(await self._door(address, state.token), *arguments)
            except Forbidden:
                state.token = None
        tokens = await self._read_tokens(pool)
        for token in tokens[:-1]:
            with contextlib.suppress(Forbidden):
                answer = await call(await self._door(address, token), *arguments)
                state.token = token
                return answer
        answer = await call(await self._door(address, tokens[-1]), *arguments)
        state.token = tokens[-1]
        return answer

    async def _read_tokens(self, pool: Key) -> list[str]:
        """The current one, then the previous: a Secret reaches the pods a minute or two later."""
        name = admin_secret_name(pool.name)
        secret = await self._kube.get(Key("Secret", pool.namespace, name))
        data = (secret or {}).get("data") or {}
        if not data.get("current"):
            raise BrokersUnavailable(f"Secret {pool.namespace}/{name} has no key 'current' yet")
        found = [data[key] for key in ("current", "previous") if data.get(key)]
        return [base64.b64decode(encoded).decode().strip() for encoded in found]

    async def _door(self, address: str, token: str) -> Admin:
        """A door for each address and token. When there are many, most are of pods long gone."""
        door = self._doors.get((address, token))
        if door is None:
            if len(self._doors) >= MAX_DOORS:
                await self.close()
            transport = Transport(
                f"http://{address}:{ADMIN_PORT}", token=token, timeout_s=TIMEOUT_S
            )
            await self._open.enter_async_context(transport)
            door = self._doors[address, token] = Admin(transport, transport, NO_RETRY, "default")
        return door

    def _pods(self, pool: Key) -> Iterator[Document]:
        for pod in self._world.all("Pod", pool.namespace):
            labels = pod["metadata"].get("labels") or {}
            if labels.get(POOL_LABEL) == pool.name and not is_terminating(pod):
                yield pod


def _address(pod: Document) -> str | None:
    address = (pod.get("status") or {}).get("podIP")
    if not address:
        return None
    return f"[{address}]" if ":" in address else str(address)


def _fail(together: Sequence[_Waiting], error: Exception) -> None:
    for one in together:
        if not one.outcome.done():
            one.outcome.set_exception(error)
