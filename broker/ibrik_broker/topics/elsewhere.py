"""The topics of the pool that other brokers own: known by their rows, never served here.

A name of such a topic is refused by the engine with the name of its owner; the doors that can pass
a request on look here first.
"""

from collections.abc import Iterable

from ibrik_api.errors import Refusal
from ibrik_broker.metadata.follow import Follower
from ibrik_broker.metadata.topics import TopicRow, TopicRows, TopicState
from ibrik_broker.partitions.engine import Engine
from ibrik_broker.pool.pool import Pool
from ibrik_broker.topics.changes import Listeners

CODE = "owner-elsewhere"


class Elsewhere:
    def __init__(self, pool: Pool, engine: Engine, rows: TopicRows, on_change: Listeners) -> None:
        self.pool = pool
        self._engine = engine
        self._on_change = on_change
        self._follower = Follower(rows)
        self._rows: dict[str, TopicRow] = {}
        """By id."""
        self._by_name: dict[str, TopicRow] = {}

    def by_name(self, name: str) -> TopicRow | None:
        return self._by_name.get(name)

    def rows(self) -> Iterable[TopicRow]:
        return self._by_name.values()

    def ready(self) -> dict[str, TopicRow]:
        """By name, those that can be used if their broker is there."""
        return {n: row for n, row in self._by_name.items() if row.state is TopicState.READY}

    def by_identity(self, namespace: str, resource_name: str) -> TopicRow | None:
        wanted = (namespace, resource_name)
        rows = self._rows.values()
        return next((r for r in rows if (r.namespace, r.resource_name) == wanted), None)

    async def look(self, own: Iterable[TopicRow]) -> None:
        """Take over what the others changed; `own` are the rows of this broker's topics.

        Raises Refusal `metadata-unavailable`.
        """
        mine = {row.id: row.revision for row in own}
        known = mine | {row.id: row.revision for row in self._rows.values()}
        news = await self._follower.look(known)
        for row_id in news.gone:
            if row_id in self._rows:
                self._forget(self._rows[row_id])
        for row in news.changed:
            if row.id not in mine:
                self.put(row)

    def put(self, row: TopicRow) -> None:
        known = self._rows.get(row.id)
        if known is not None and known.name != row.name:
            self._forget(known)
        self._rows[row.id] = self._by_name[row.name] = row
        self._engine.absent[row.name] = self._refusal(row)
        self._on_change.tell(*(r for r in (known, row) if r is not None))

    def _forget(self, row: TopicRow) -> None:
        del self._rows[row.id]
        if self._by_name.get(row.name) is row:
            del self._by_name[row.name]
            refusal = self._engine.absent.get(row.name)
            if refusal is not None and refusal.code == CODE:
                del self._engine.absent[row.name]
        self._on_change.tell(row)

    def _refusal(self, row: TopicRow) -> Refusal:
        owner = "none yet" if row.owner is None else self.pool.name(row.owner)
        return Refusal(
            CODE,
            f"The topic '{row.name}' is served by broker {owner}. Use its door, or HTTP, where any "
            "broker passes the request on.",
            owner=owner,
        )
