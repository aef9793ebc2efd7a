"""The publishers of all topics, in memory and in the database: register, list, rotate, remove.

A change is committed before it is answered and counts from then on. Loaded whole at the start: a
publisher takes a few hundred bytes, and looking one up must not wait for a database.
"""

import asyncio
import secrets
import uuid
from bisect import bisect_right
from collections.abc import Callable
from hmac import compare_digest

from ibrik_api.errors import Refusal
from ibrik_broker.auth.tokens import MAX_TOKEN_CHARACTERS, new_token, token_hash
from ibrik_broker.metadata.publishers import PublisherRow, PublisherRows
from ibrik_broker.metadata.rows import Mark, NameTaken, StaleRevision

Key = tuple[str, str]
"""Topic and name."""


class Publishers:
    def __init__(
        self,
        rows: PublisherRows,
        *,
        clock_ms: Callable[[], int],
        random_bytes: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._store = rows
        self._clock_ms = clock_ms
        self._random_bytes = random_bytes
        self._mark: Mark | None = None
        self._by_key: dict[Key, PublisherRow] = {}
        self._by_hash: dict[bytes, PublisherRow] = {}
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        await self._refresh()

    async def look(self) -> None:
        """Learn what other brokers did. Raises Refusal `metadata-unavailable`."""
        async with self._lock:
            mark = await self._store.mark()
            if mark != self._mark:
                await self._refresh()
                self._mark = mark

    # --- look -----------------------------------------------------------------------------------

    def by_token(self, topic: str, token: str) -> PublisherRow | None:
        """Whose token this is, when that publisher belongs to the topic."""
        if len(token) > MAX_TOKEN_CHARACTERS:
            return None
        digest = token_hash(token)
        row = self._by_hash.get(digest)
        if row is None or not compare_digest(row.token_hash, digest):
            return None
        return row if row.topic == topic else None

    def find(self, topic: str, name: str) -> PublisherRow | None:
        return self._by_key.get((topic, name))

    def describe(self, topic: str, name: str) -> PublisherRow:
        """Raises Refusal `unknown-publisher`."""
        row = self.find(topic, name)
        if row is None:
            raise Refusal(
                "unknown-publisher",
                f"The topic '{topic}' has no publisher {name[:60]!r}. Register it with"
                f" POST /v1/topics/{topic}/publishers.",
            )
        return row

    def list(
        self, *, topic: str | None = None, after: Key = ("", ""), limit: int = 100
    ) -> list[PublisherRow]:
        """By topic and name, those after `after`."""
        keys = sorted(key for key in self._by_key if topic is None or key[0] == topic)
        first = bisect_right(keys, after)
        return [self._by_key[key] for key in keys[first : first + limit]]

    # --- change ---------------------------------------------------------------------------------

    async def register(self, topic: str, name: str) -> tuple[PublisherRow, str | None]:
        """The publisher, and its token when it is new: nobody can be told a token twice."""
        async with self._lock:
            known = self.find(topic, name)
            if known is not None:
                return known, None
            token, now_ms = new_token(self._random_bytes), self._clock_ms()
            row = PublisherRow(
                id=str(uuid.uuid4()),
                topic=topic,
                name=name,
                token_hash=token_hash(token),
                revision=1,
                created_ms=now_ms,
                updated_ms=now_ms,
            )
            try:
                self._remember(await self._store.insert(row))
            except NameTaken:
                # Committed before, by a transaction whose answer got lost.
                await self._refresh()
                return self.describe(topic, name), None
            return row, token

    async def rotate(self, topic: str, name: str) -> tuple[PublisherRow, str]:
        """Another token; the old one is refused from now on. Raises Refusal `unknown-publisher`."""
        async with self._lock:
            row = self.describe(topic, name)
            token = new_token(self._random_bytes)
            try:
                changed = await self._store.rotate(row, token_hash(token), now_ms=self._clock_ms())
            except StaleRevision as error:
                await self._refresh()
                raise changed_meanwhile(f"The publisher '{name}' of '{topic}'") from error
            self._forget(row)
            self._remember(changed)
            return changed, token

    async def remove(self, topic: str, name: str) -> None:
        """Raises Refusal `unknown-publisher`."""
        async with self._lock:
            row = self.describe(topic, name)
            try:
                await self._store.delete(row)
            except StaleRevision as error:
                await self._refresh()
                if self.find(topic, name) is not None:
                    raise changed_meanwhile(f"The publisher '{name}' of '{topic}'") from error
            else:
                self._forget(row)

    async def forget_topic(self, topic: str) -> None:
        """The topic is gone for good; a later one of its name is another one."""
        async with self._lock:
            await self._store.delete_topic(topic)
            for row in [row for row in self._by_key.values() if row.topic == topic]:
                self._forget(row)

    async def _refresh(self) -> None:
        """Take what the database holds: it knows better after a commit of unknown outcome."""
        rows = await self._store.all()
        self._by_key.clear()
        self._by_hash.clear()
        for row in rows:
            self._remember(row)

    def _remember(self, row: PublisherRow) -> None:
        self._by_key[row.topic, row.name] = row
        self._by_hash[row.token_hash] = row

    def _forget(self, row: PublisherRow) -> None:
        del self._by_key[row.topic, row.name]
        del self._by_hash[row.token_hash]


def changed_meanwhile(what: str) -> Refusal:
    return Refusal(
        "precondition-failed", f"{what} was changed at the same time. GET it and try again."
    )
