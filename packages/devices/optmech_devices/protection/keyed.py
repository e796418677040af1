"""Draws that repeat: bytes by a key and what is drawn for."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from optmech.base.arrays import Ints

_DIGEST = 32
_DOMAIN = b"optmech sticky 1"


class Keyed:
    """An ``EachBytes`` whose draws repeat: draw k takes its bytes from the k-th message.

    HMAC-SHA-256 (FIPS 198-1), a pseudorandom function: to whoever lacks the key, the bytes of
    different messages look like independent uniform ones, and those of one message are always the
    same. Every part of what is hashed has a fixed length but the message, which stands last.
    """

    def __init__(self, key: bytes, messages: Sequence[bytes]) -> None:
        self._key, self._messages = key, messages

    def __call__(self, which: Ints, size: int, attempt: int) -> bytes:
        """``size`` bytes for each draw in ``which``; others at every attempt."""
        blocks = -(-size // _DIGEST)
        heads = [
            _DOMAIN + attempt.to_bytes(4, "big", signed=True) + block.to_bytes(4, "big")
            for block in range(blocks)
        ]
        key, messages, digest = self._key, self._messages, hmac.digest
        if blocks == 1:
            (head,) = heads
            return b"".join(
                [digest(key, head + messages[k], "sha256")[:size] for k in which.tolist()]
            )
        return b"".join(
            b"".join(digest(key, head + messages[k], "sha256") for head in heads)[:size]
            for k in which.tolist()
        )
