"""Tokens of publishers: how they are made, stored and read from a header. Pure.

A token has 256 random bits, so its hash needs neither salt nor stretching: nobody can try them all.
"""

import base64
from collections.abc import Callable
from hashlib import sha256

PREFIX = "ibp_"
"""Tells people and secret scanners what they have found."""
TOKEN_BYTES = 32
MAX_TOKEN_CHARACTERS = 256
"""Longer ones are no tokens of ours, and are not hashed."""


def new_token(random_bytes: Callable[[int], bytes]) -> str:
    text = base64.urlsafe_b64encode(random_bytes(TOKEN_BYTES)).rstrip(b"=")
    return PREFIX + text.decode("ascii")


def token_hash(token: str) -> bytes:
    return sha256(token.encode(errors="replace")).digest()


def bearer_token(authorization: str) -> str:
    """The token of an Authorization header; empty when there is none."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""
