"""What archive jobs ask of a broker over its admin door; a token of the scope `archive` does."""

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


def _path(topic: str) -> str:
    return f"/admin/v1/topics/{quote(topic, safe='')}"
