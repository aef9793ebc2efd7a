"""Lease tokens: a message that was handed out, as one text that nobody can make up.

A token names the subscription, the place, the attempt and the epoch of the lease, and ends with a
MAC under a key that lies in the metadata database: it is valid after a restart and at any broker.
What it does not hold is whether the lease still stands; `Leases` knows. Pure but for the key given.
"""

import binascii
from functools import lru_cache
from hashlib import blake2b
from hmac import compare_digest
from struct import Struct

from ibrik_api.errors import Refusal
from ibrik_broker.delivery.leases import LeaseRef

KEY_BYTES = 32
MAC_BYTES = 16
SUBSCRIPTION_BYTES = 8

_fields = Struct(f">{SUBSCRIPTION_BYTES}sHQII")
"""Digest of the subscription's id, partition, offset, attempt, epoch."""
TOKEN_CHARACTERS = (_fields.size + MAC_BYTES) * 4 // 3
"""42 bytes fill whole groups of base64: no padding, and no spare bit that could differ unseen."""

_TO_URL = bytes.maketrans(b"+/", b"-_")
_FROM_URL = bytes.maketrans(b"-_+/", b"+/!!")
"""The other alphabet is no second way to write a token: `!` is in neither."""


class Tokens:
    """Signs and reads the leases of all subscriptions."""

    __slots__ = ("_keyed",)

    def __init__(self, key: bytes) -> None:
        assert len(key) >= KEY_BYTES, "a short key can be guessed"
        self._keyed = blake2b(key=key, digest_size=MAC_BYTES)  # copied: the key is worked in once

    def sign(self, subscription_id: str, ref: LeaseRef) -> str:
        content = _fields.pack(_digest(subscription_id), *ref)
        signed = binascii.b2a_base64(content + self._mac(content), newline=False)
        return signed.translate(_TO_URL).decode("ascii")

    def read(self, subscription_id: str, token: str) -> LeaseRef:
        """What `sign` was given. Raises Refusal `invalid-lease`."""
        content = self._verified(token)
        if content is None:
            raise Refusal("invalid-lease", "This is no lease of this broker: send it as it came.")
        digest, partition, offset, attempt, epoch = _fields.unpack(content)
        if digest != _digest(subscription_id):
            raise Refusal(
                "invalid-lease",
                "This lease belongs to another subscription: send it to the one that gave it.",
            )
        return LeaseRef(partition, offset, attempt, epoch)

    def _verified(self, token: str) -> bytes | None:
        if len(token) != TOKEN_CHARACTERS or not token.isascii():
            return None
        try:
            signed = binascii.a2b_base64(token.encode().translate(_FROM_URL), strict_mode=True)
        except binascii.Error:
            return None
        content, mac = signed[: _fields.size], signed[_fields.size :]
        return content if compare_digest(mac, self._mac(content)) else None

    def _mac(self, content: bytes) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(content)
        return keyed.digest()


@lru_cache(4_096)
def _digest(subscription_id: str) -> bytes:
    return blake2b(subscription_id.encode(), digest_size=SUBSCRIPTION_BYTES).digest()
