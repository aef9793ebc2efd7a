"""The OpenAPI documents of both HTTP doors, as the doors serve them at `/openapi.json`.

The doors are put together without anything behind them: nothing is called, only described.
"""

import asyncio
import json
from functools import partial
from typing import Any

from ibrik_broker.http import admin, data
from ibrik_broker.http.catalogue import Delivery
from ibrik_broker.http.consuming import ConsumerPlane, Subscriptions
from ibrik_broker.http.openapi import build_document
from ibrik_broker.settings import LimitSettings
from ibrik_broker.telemetry.collector import BrokerCollector


class _Nothing:
    """Stands behind the doors; what belongs to it is nothing, too."""

    def __getattr__(self, _name: str) -> "_Nothing":
        return self


NOTHING: Any = _Nothing()


def pages() -> dict[str, str]:
    return asyncio.run(_pages())  # the doors look at the loop's clock when they are built


async def _pages() -> dict[str, str]:
    limits = LimitSettings()
    public = data.build_data_plane(
        NOTHING,
        NOTHING,
        limits,
        allocate_producer_id=NOTHING,
        publishers=NOTHING,
        clients=NOTHING,
        delivery=Delivery(NOTHING, NOTHING, NOTHING, NOTHING, NOTHING, NOTHING),
        make_consumers=partial(ConsumerPlane, Subscriptions(NOTHING, NOTHING, NOTHING)),
    )
    private = admin.build_admin_plane(
        NOTHING, NOTHING, limits, is_ready=bool, collector=BrokerCollector(), observer=NOTHING
    )
    documents = {
        "openapi": build_document("Ibrik", data.DESCRIPTION, public.operations),
        "openapi-admin": build_document(
            "Ibrik administration", admin.DESCRIPTION, private.operations
        ),
    }
    return {f"reference/{name}.json": _text(content) for name, content in documents.items()}


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"
