"""What the secrets of a destination become: an authorization, signing keys, a TLS context.

Built in a thread from `Credentials`, since that reads files; looked at again every few seconds, so
that a secret rotates without a restart. Both the HTTP and the TCP sender ask here.
"""

import asyncio
import ssl
from collections.abc import Callable
from typing import NamedTuple

from ibrik_api.resources.destination import Destination, SecretReference
from ibrik_api.signatures import InvalidSecret, parse_secrets
from ibrik_broker.delivery.credentials import CredentialMissing, Credentials
from ibrik_broker.delivery.senders.headers import Headers, basic, bearer, fixed_headers

RECHECK_MS = 5_000
"""How long secrets are used before their files are looked at again."""


class Dressing(NamedTuple):
    """Everything about a destination that its secrets decide."""

    headers: Headers
    signing_secrets: list[bytes] | None
    tls: ssl.SSLContext | None
    """None: no TLS over TCP; over HTTP the certificates of the system are trusted."""
    spoken: tuple[bytes, ...]
    """Secrets that are sent: whoever gets them may answer with them."""


class Wardrobe:
    """The dressing of one destination, as fresh as its files."""

    def __init__(
        self,
        destination: Destination,
        namespace: str,
        credentials: Credentials,
        clock_ms: Callable[[], int],
    ) -> None:
        self._destination = destination
        self._namespace = namespace
        self._credentials = credentials
        self._clock_ms = clock_ms
        self._lock = asyncio.Lock()
        self._has_secrets = _has_secrets(destination)
        self._due_ms = 0
        self._ca_pem = b""
        # Kept while the certificates are the same: connections of another context are not reused.
        self._tls: ssl.SSLContext | None = None
        self._current: Dressing | None = None

    async def dressing(self) -> Dressing:
        """What to send with now. Raises CredentialMissing."""
        current = self._current
        if current is not None and (not self._has_secrets or self._clock_ms() < self._due_ms):
            return current
        async with self._lock:  # all that wait share one look at the files
            if self._current is None or self._clock_ms() >= self._due_ms:
                self._current = None
                self._current = await asyncio.to_thread(self._build)
                self._due_ms = self._clock_ms() + RECHECK_MS
            return self._current

    def distrust(self) -> None:
        """The receiver refused who we are: look at the files before the next attempt."""
        self._due_ms = 0

    def _build(self) -> Dressing:
        destination, spoken = self._destination, []
        authorization = None
        if destination.auth.bearer is not None:
            token = self._text(destination.auth.bearer.secret_ref)
            if not (token.isascii() and token.isprintable()):
                raise CredentialMissing("the token is not one line of printable ASCII")
            authorization = bearer(token)
            spoken = [token]
        elif destination.auth.basic is not None:
            password = self._text(destination.auth.basic.secret_ref)
            authorization = basic(destination.auth.basic.username, password)
            spoken = [authorization.removeprefix("Basic "), password]
        own = destination.http.headers if destination.http is not None else {}
        return Dressing(
            fixed_headers(own, authorization),
            self._signing_secrets(),
            self._tls_context(),
            tuple(secret.encode() for secret in spoken),
        )

    def _signing_secrets(self) -> list[bytes] | None:
        signing = self._destination.signing
        if signing is None:
            return None
        try:
            return parse_secrets(self._text(signing.secret_ref))
        except InvalidSecret as error:
            raise CredentialMissing(f"the signing secret is none: {error}") from error

    def _tls_context(self) -> ssl.SSLContext | None:
        reference = self._destination.tls.ca_secret_ref
        if reference is None:
            tcp = self._destination.tcp
            if tcp is not None and tcp.tls and self._tls is None:
                self._tls = ssl.create_default_context()
            return self._tls
        pem = self._credentials.read(reference, self._namespace)
        if self._tls is not None and pem == self._ca_pem:
            return self._tls
        try:
            context = ssl.create_default_context(cadata=pem.decode("ascii"))
        except (ssl.SSLError, ValueError) as error:
            raise CredentialMissing("the trusted certificates are no PEM") from error
        self._ca_pem, self._tls = pem, context
        return context

    def _text(self, reference: SecretReference) -> str:
        try:
            return self._credentials.read(reference, self._namespace).decode()
        except UnicodeDecodeError as error:
            raise CredentialMissing("the secret is no text") from error


def _has_secrets(destination: Destination) -> bool:
    auth = destination.auth
    places = (auth.bearer, auth.basic, destination.signing, destination.tls.ca_secret_ref)
    return any(place is not None for place in places)
