"""The one door to the broker: what it knows of the archive, and what it is told.

Refusals become the job's: which need somebody, and which the next run may not meet any more.
"""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import ibrik_client
from ibrik_client import IbrikError, RetryPolicy, ServerFailed, Unavailable

from .errors import BrokerAway, BrokerRefused

PATIENCE_S = 30.0
NOT_SERVED = ("unknown-topic", "topic-detached", "owner-elsewhere")


@dataclass(frozen=True, slots=True)
class KnownTable:
    """The table that the broker was told of last."""

    table_id: str
    url: str


@dataclass(frozen=True, slots=True)
class KnownArchive:
    """What the broker knows of a topic's archive."""

    topic_id: str
    is_enabled: bool
    table: KnownTable | None
    archived_up_to: dict[int, int]
    complete_through: str | None = None
    """All messages that were appended before this time are in the table, as it was told."""


class Broker:
    """The broker whose volume is read."""

    def __init__(self, client: ibrik_client.Client) -> None:
        self._admin = client.admin

    async def archive(self, topic: str) -> KnownArchive | None:
        """What is known of the topic of this name; None when the broker does not serve it."""
        with refusals(f"ask for the archive of {topic}"):
            try:
                view = await self._admin.archive(topic)
            except IbrikError as error:
                if error.code in NOT_SERVED:
                    return None
                raise
        table = view.get("table")
        return KnownArchive(
            topic_id=view["topicId"],
            is_enabled=view["enabled"],
            table=None if table is None else KnownTable(table["id"], table["url"]),
            archived_up_to={p["partition"]: p["archivedUpTo"] for p in view["partitions"]},
            complete_through=view.get("completeThrough"),
        )

    async def roll(self, topic: str, min_age: str) -> None:
        """Seal what is older than a run's period, so that a quiet topic is archived too."""
        with refusals(f"roll {topic}"):
            await self._admin.roll_topic(topic, min_age=min_age)

    async def report(
        self,
        topic: str,
        topic_id: str,
        *,
        table: dict[str, Any],
        archived_up_to: Mapping[int, int],
        last_run: dict[str, Any] | None,
    ) -> None:
        """Tell what is proved to be in the table; retention may delete it from the log then."""
        with refusals(f"tell how far {topic} is archived"):
            await self._admin.report_archive(
                topic,
                topic_id=topic_id,
                table=table,
                archived_up_to=archived_up_to,
                last_run=last_run,
            )


@asynccontextmanager
async def connect(admin_url: str, token: str | None) -> AsyncIterator[Broker]:
    """Nothing is sent before the first call; only the admin door is asked."""
    async with ibrik_client.connect(
        admin_url,
        admin_url=admin_url,
        admin_token=token,
        retry=RetryPolicy(deadline_s=PATIENCE_S),
    ) as client:
        yield Broker(client)


@contextmanager
def refusals(what: str) -> Iterator[None]:
    """What the client raises, as what ends a job."""
    try:
        yield
    except (Unavailable, ServerFailed) as error:
        raise BrokerAway(f"cannot {what}: {error.detail}; the next run tries again") from error
    except IbrikError as error:
        advice = f"; {error.advice}" if error.advice else ""
        raise BrokerRefused(f"cannot {what}: {error.detail}{advice}") from error
