"""The admin token: read from a file, again when the file changes, compared in constant time."""

import hmac
import logging
from pathlib import Path

from aiohttp import hdrs, web

from ibrik_api.errors import Refusal
from ibrik_broker.auth.tokens import bearer_token
from ibrik_broker.http.operations import Handler

logger = logging.getLogger("ibrik.http")


class TokenFile:
    """Tokens that are valid now: one a line, so that the next can be added before the last goes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamp: tuple[int, int, int] | None = None
        self._tokens: list[bytes] = []

    def accepts(self, token: bytes) -> bool:
        self._load()
        # No early return: the time must not tell which of the tokens was nearly right.
        return sum(hmac.compare_digest(token, known) for known in self._tokens) > 0

    def _load(self) -> None:
        """Read the file when it changed. One that cannot be read lets nobody in."""
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
            if stamp == self._stamp:
                return
            lines = self._path.read_bytes().splitlines()
        except OSError as error:
            logger.warning("admin token file unreadable", extra={"reason": error.strerror})
            self._tokens, self._stamp = [], None
            return
        self._tokens = [line.strip() for line in lines if line.strip()]
        self._stamp = stamp


def needs_token(handler: Handler, tokens: TokenFile | None) -> Handler:
    """Let only requests with a valid token through; all of them when no file is configured."""
    if tokens is None:
        return handler

    async def checked(request: web.Request) -> web.StreamResponse:
        if not has_token(request, tokens):
            raise Refusal(
                "unauthorized",
                "The admin door needs `Authorization: Bearer TOKEN`, with one of the tokens in its"
                " file.",
            )
        return await handler(request)

    return checked


def has_token(request: web.Request, tokens: TokenFile) -> bool:
    """Whether the request carries one of the tokens that are valid now."""
    token = bearer_token(request.headers.get(hdrs.AUTHORIZATION, ""))
    return tokens.accepts(token.encode(errors="replace"))
