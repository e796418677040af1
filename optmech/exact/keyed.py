"""Draws that repeat: bytes that a key and a message determine, instead of fresh ones.

HMAC-SHA-256 (FIPS 198-1), a pseudorandom function: to whoever lacks the key, the bytes of different
messages look like independent uniform ones, and those of one message are always the same.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from optmech.base.arrays import Ints
from optmech.base.labelled import label_text

LEAST_KEY = 32
"""Bytes of a key, at least: as many as SHA-256 puts out."""
_BLOCK = 32
_DOMAIN = b"optmech sticky 1"


class Keyed:
    """An ``EachBytes``: draw k takes its bytes from the k-th message.

    Every part of what is hashed has a fixed length but the message, which stands last.
    """

    def __init__(self, key: bytes, messages: Sequence[bytes]) -> None:
        self._key, self._messages = key, messages

    def __call__(self, which: Ints, size: int, attempt: int) -> bytes:
        """``size`` bytes for each draw in ``which``; others at every attempt."""
        blocks = -(-size // _BLOCK)
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


def framed(parts: Sequence[bytes]) -> bytes:
    """Parts joined so that no other parts give the same bytes: each after its length."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def fingerprint(numbers: NDArray[Any], *labels: Sequence[object]) -> bytes:
    """A digest of numbers with their shape, and of lists of labels as they are written."""
    lists = [
        framed([label_text(label).encode("utf-8", "surrogatepass") for label in listed])
        for listed in labels
    ]
    content = [repr(numbers.shape).encode(), numbers.tobytes(), *lists]
    return hashlib.sha256(framed(content)).digest()
