"""The OpenAPI documents of both HTTP doors, as the doors serve them at `/openapi.json`.

The doors are put together without an engine: nothing is called, only described.
"""

import asyncio
import json
from typing import TYPE_CHECKING, Any, cast

from ibrik_broker.http.data import DESCRIPTION, build_data_plane
from ibrik_broker.http.openapi import build_document
from ibrik_broker.settings import LimitSettings

if TYPE_CHECKING:
    from ibrik_broker.partitions.engine import Engine


def pages() -> dict[str, str]:
    return asyncio.run(_pages())  # the doors look at the loop's clock when they are built


async def _pages() -> dict[str, str]:
    data = build_data_plane(cast("Engine", None), LimitSettings())
    return {
        "reference/openapi.json": _text(build_document("Ibrik", DESCRIPTION, data.operations)),
    }


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
