"""What archive jobs ask of a broker over its admin door; a token of the scope `archive` does."""

from collections.abc import Mapping
from urllib.parse import quote

from ibrik_client.calls import Calls, Resource


class Archive(Calls):
    async def roll_topic(self, topic: str, *, min_age: str = "0s") -> list[Resource]:
        """Seal the active segments whose oldest record is that old (`1h`).

        Of each partition what the broker has sealed then: {partition, sealedUpTo}.
        """
        path = f"{_path(topic)}:roll"
        body = {"minAge": min_age}
        answer = await self._document("POST", path, body=body, over=self._admin_door())
        partitions: list[Resource] = answer["partitions"]
        return partitions

    async def archive(self, topic: str) -> Resource:
        """How far the archive of a topic is: table, last run, and offsets of each partition."""
        return await self._document("GET", f"{_path(topic)}/archive", over=self._admin_door())

    async def report_archive(
        self,
        topic: str,
        *,
        topic_id: str,
        table: Resource,
        archived_up_to: Mapping[int, int],
        last_run: Resource | None = None,
    ) -> Resource:
        """Tell what is proved to be in the table, by partition; what holds then.

        `table` is {id, url, version}, `last_run` {startedAt, endedAt, code, rows}. Offsets never
        move back.
        """
        partitions = [
            {"partition": number, "archivedUpTo": offset}
            for number, offset in archived_up_to.items()
        ]
        body = {"topicId": topic_id, "table": table, "partitions": partitions}
        if last_run is not None:
            body["lastRun"] = last_run
        path = f"{_path(topic)}/archive"
        return await self._document("PUT", path, body=body, over=self._admin_door())


def _path(topic: str) -> str:
    return f"/admin/v1/topics/{quote(topic, safe='')}"
