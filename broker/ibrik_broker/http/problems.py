"""Refusals as problem documents (RFC 9457), the only form in which this door says no.

Knows nothing of routes. `guard.py` calls it for handlers, `server.py` for what never reached one.
"""

import logging
import math
import secrets

import msgspec
from aiohttp import web

from ibrik_api.errors import Refusal

MEDIA_TYPE = "application/problem+json"

logger = logging.getLogger("ibrik.http")


def refuse(refusal: Refusal) -> web.Response:
    """Answer with the problem document of `refusal`, and with Retry-After where waiting helps."""
    response = web.Response(
        status=refusal.status,
        body=msgspec.json.encode(refusal.problem()),
        content_type=MEDIA_TYPE,
    )
    if refusal.retry_after_ms is not None:
        # Retry-After counts whole seconds; rounding down would invite the client too early.
        response.headers["Retry-After"] = str(math.ceil(refusal.retry_after_ms / 1000))
    if refusal.status == 401:
        response.headers["WWW-Authenticate"] = "Bearer"
    return response


def internal(error: BaseException, *, route: str) -> web.Response:
    """Log an unexpected error under an id, and answer with the id alone."""
    incident = secrets.token_hex(8)
    logger.error("request failed", exc_info=error, extra={"incident": incident, "route": route})
    return refuse(
        Refusal(
            "internal",
            f"Something broke in the broker. Its log has it as {incident}.",
            incident=incident,
        )
    )
