"""Who may change which topics, channels, subscriptions, publishers and clients there are.

On loopback everybody: whoever reaches the door could read the data folder as well. Beyond it only
who has the admin token, unless the settings open registration. Publishing, reading and leasing are
not touched by any of this.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from aiohttp import web

from ibrik_api.errors import Refusal
from ibrik_broker.http.door import expect_body
from ibrik_broker.http.operations import ExpectHandler, Handler, Operation
from ibrik_broker.http.problems import refuse
from ibrik_broker.http.tokens import TokenFile, has_token
from ibrik_broker.settings import Settings


@dataclass(frozen=True, slots=True)
class Access:
    is_open: bool = True
    tokens: TokenFile | None = None
    """None while registration is not open: nobody may."""

    def restrict(self, operations: Iterable[Operation]) -> list[Operation]:
        """The same operations; those that register something ask first, and say so."""
        return [self._restrict(o) if o.is_registration else o for o in operations]

    def _restrict(self, operation: Operation) -> Operation:
        # Documented alike at every broker, whatever its settings: a client may meet both.
        described = replace(operation, codes=(*operation.codes, "unauthorized"), needs_token=True)
        if self.is_open:
            return described
        return replace(
            described,
            handler=self._asking(operation.handler),
            expect=self._asking_first(operation.expect or expect_body),
        )

    def _asking(self, handler: Handler) -> Handler:
        async def asking(request: web.Request) -> web.StreamResponse:
            self._check(request)
            return await handler(request)

        return asking

    def _asking_first(self, expect: ExpectHandler) -> ExpectHandler:
        async def asking(request: web.Request) -> web.StreamResponse | None:
            try:
                self._check(request)
            except Refusal as refusal:
                response = refuse(refusal)
                response.force_close()  # whether the body still comes is the client's choice
                return response
            return await expect(request)

        return asking

    def _check(self, request: web.Request) -> None:
        """Raises Refusal `unauthorized` with the next step."""
        if self.tokens is None:
            raise Refusal(
                "unauthorized",
                "This door is open to other machines, so registering needs a token, and the broker"
                " has none. Name a file that holds one in admin.token_file"
                " (IBRIK_ADMIN__TOKEN_FILE), or let everybody register with http.open_registration"
                " (IBRIK_HTTP__OPEN_REGISTRATION=true).",
            )
        if not has_token(request, self.tokens):
            raise Refusal(
                "unauthorized",
                "This door is open to other machines, so registering needs"
                " `Authorization: Bearer TOKEN` with one of the tokens in admin.token_file."
                " http.open_registration lets everybody register.",
            )


def access_of(settings: Settings) -> Access:
    """Who may register at a broker with these settings."""
    if settings.http.is_loopback or settings.http.open_registration:
        return Access()
    file = settings.admin.token_file
    return Access(is_open=False, tokens=None if file is None else TokenFile(file))
