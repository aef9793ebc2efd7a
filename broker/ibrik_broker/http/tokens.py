"""The admin tokens: read from files, again when those change, compared in constant time.

One file with a token a line, or a folder as Kubernetes mounts a Secret: `current` and `previous`
are of the operator and of people, `archive` is of jobs, which may call only what is marked for it.
"""

import hmac
import logging
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from aiohttp import hdrs, web

from ibrik_api.errors import Refusal
from ibrik_broker.auth.tokens import bearer_token
from ibrik_broker.http.operations import Handler

logger = logging.getLogger("ibrik.http")

Stamp = tuple[int, int, int]


class Scope(StrEnum):
    """What a token is good for; whoever may administer may do everything."""

    ADMIN = "admin"
    ARCHIVE = "archive"


NEEDED = "current"
FILES = {NEEDED: Scope.ADMIN, "previous": Scope.ADMIN, "archive": Scope.ARCHIVE}
"""Files of a folder; only the first has to be there."""


class TokenFile:
    """Tokens that are valid now; more than one, so that the next is there before the last goes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stamps: dict[Path, Stamp] = {}
        self._tokens: list[tuple[bytes, Scope]] = []

    def accepts(self, token: bytes, scope: Scope = Scope.ADMIN) -> bool:
        """Whether the token is good for `scope`."""
        self._load()
        good = (scope, Scope.ADMIN)
        # No early return: the time must not tell which of the tokens was nearly right.
        return (
            sum(hmac.compare_digest(token, known) for known, of in self._tokens if of in good) > 0
        )

    def _load(self) -> None:
        """Read what changed. Without a file that can be read, nobody is let in."""
        try:
            files = dict(self._files())
            # Before the reading: a change in between is seen at the next look.
            stamps = {path: _stamp(path) for path in files}
            if stamps == self._stamps:
                return
            tokens = [(token, scope) for path, scope in files.items() for token in _tokens_of(path)]
        except OSError as error:
            logger.warning("admin token file unreadable", extra={"reason": error.strerror})
            self._tokens, self._stamps = [], {}
            return
        self._tokens, self._stamps = tokens, stamps

    def _files(self) -> Iterator[tuple[Path, Scope]]:
        if not self._path.is_dir():
            yield self._path, Scope.ADMIN
            return
        for name, scope in FILES.items():
            path = self._path / name
            if name == NEEDED or path.exists():
                yield path, scope


def _stamp(path: Path) -> Stamp:
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _tokens_of(path: Path) -> list[bytes]:
    return [line.strip() for line in path.read_bytes().splitlines() if line.strip()]


def needs_token(handler: Handler, tokens: TokenFile | None, scope: Scope = Scope.ADMIN) -> Handler:
    """Let only requests with a token for `scope` through; all of them when none is configured."""
    if tokens is None:
        return handler

    async def checked(request: web.Request) -> web.StreamResponse:
        if not has_token(request, tokens, scope):
            raise Refusal(
                "unauthorized",
                "The admin door needs `Authorization: Bearer TOKEN`, with one of the tokens in its"
                " file.",
            )
        return await handler(request)

    return checked


def has_token(request: web.Request, tokens: TokenFile, scope: Scope = Scope.ADMIN) -> bool:
    """Whether the request carries one of the tokens that are valid now, for `scope`."""
    token = bearer_token(request.headers.get(hdrs.AUTHORIZATION, ""))
    return tokens.accepts(token.encode(errors="replace"), scope)
