"""Standard Webhooks signatures (v1, HMAC-SHA256) over bytes; the broker signs, receivers verify.

What is signed is `<webhook-id>.<webhook-timestamp>.<body>`, so the id may hold no dot. Pure.
"""

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence

SECRET_PREFIX = "whsec_"  # noqa: S105 - what secrets begin with, not one
MIN_SECRET_BYTES, MAX_SECRET_BYTES = 24, 64
MAX_SECRETS = 8
TOLERANCE_S = 300
"""How far the timestamp of a delivery may be from the receiver's clock."""

_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")
_SECONDS = re.compile(r"[0-9]{1,12}")


class InvalidSecret(ValueError):
    """Text that holds no signing secrets; the message names the line and never what is in it."""


def parse_secrets(text: str) -> list[bytes]:
    """The secrets of a file, `whsec_<base64 of 24 to 64 bytes>` a line; raises InvalidSecret.

    A line without the prefix is refused rather than taken as plain text: two receivers would read
    it in two ways.
    """
    secrets = [
        _parse_secret(line.strip(), number)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]
    if not secrets:
        raise InvalidSecret(f"there is no secret: write {SECRET_PREFIX} and base64 on one line")
    if len(secrets) > MAX_SECRETS:
        raise InvalidSecret(f"there are {len(secrets)} secrets, at most {MAX_SECRETS} may sign")
    return secrets


def webhook_id(identity: str) -> str:
    """The `webhook-id` of a message: the same for each attempt and each replay.

    An identity of up to 128 letters, digits, `_` and `-` stays as it is. Any other one, with a dot
    or of any length, becomes `sha256-` and the digest of its UTF-8 in base64url without padding.
    """
    if _SAFE_ID.fullmatch(identity):
        return identity
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).digest()
    return "sha256-" + base64.urlsafe_b64encode(digest).decode().rstrip("=")


def sign(secrets: Sequence[bytes], message_id: str, timestamp_s: int, body: bytes) -> str:
    """The value of `webhook-signature`: one signature for each secret, with spaces between."""
    return " ".join(_signature(secret, message_id, str(timestamp_s), body) for secret in secrets)


def verify(
    secrets: Sequence[bytes],
    *,
    message_id: str,
    timestamp: str,
    signature: str,
    body: bytes,
    now_s: float,
    tolerance_s: int = TOLERANCE_S,
) -> bool:
    """Whether the headers `webhook-id`, `-timestamp` and `-signature` fit the body and one secret.

    Too old or too new is no: a copy of a delivery cannot be sent again later.
    """
    if not _SECONDS.fullmatch(timestamp) or abs(now_s - int(timestamp)) > tolerance_s:
        return False
    expected = [_signature(secret, message_id, timestamp, body).encode() for secret in secrets]
    given = [part.encode("utf-8", "surrogatepass") for part in signature.split(" ")]
    return any(hmac.compare_digest(one, other) for one in expected for other in given)


def _signature(secret: bytes, message_id: str, timestamp: str, body: bytes) -> str:
    signed = b"%b.%b.%b" % (
        message_id.encode("utf-8", "surrogatepass"),
        timestamp.encode(),
        body,
    )
    digest = hmac.digest(secret, signed, "sha256")
    return "v1," + base64.b64encode(digest).decode()


def _parse_secret(line: str, number: int) -> bytes:
    if not line.startswith(SECRET_PREFIX):
        raise InvalidSecret(f"line {number} does not begin with {SECRET_PREFIX}")
    try:
        secret = base64.b64decode(line.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidSecret(f"line {number}: what follows {SECRET_PREFIX} is no base64") from error
    if not MIN_SECRET_BYTES <= len(secret) <= MAX_SECRET_BYTES:
        raise InvalidSecret(
            f"line {number}: a secret has {MIN_SECRET_BYTES} to {MAX_SECRET_BYTES} bytes, this one "
            f"{len(secret)}"
        )
    return secret
