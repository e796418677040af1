"""The same report for as long as the place is the same, without remembering anything.

Whoever sees many independent reports about one place averages them. Here the bytes of a draw come
from a pseudo-random function of place and epoch under a key that stays on the device: a night at
one place is one report, and a new epoch a new draw. The reports of different places or epochs are
as good as independent to everybody without the key. That a report repeats shows that the place did
not change; what moving reveals is not hidden (docs/sticky.md).
"""

from __future__ import annotations

import hashlib
import hmac
import math
import struct
from collections.abc import Hashable

from optmech.errors import ProblemError
from optmech.exact.checked import whole
from optmech.packed.ledger import Ledger, refuse_meshes
from optmech.packed.load import PackedMechanism

_LABEL = b"optmech-sticky/1"
KEY_BYTES = 32


class StickyReports:
    """Reports of a packed mechanism that repeat within an epoch.

    Parameters
    ----------
    key:
        32 bytes that nobody else has, such as ``secrets.token_bytes(32)``: who knows them knows
        the place of every report.
    period:
        Seconds of an epoch.
    ledger:
        Where fresh draws are entered; beyond its budget its fall-back decides.

    Raises ProblemError on a key of another length, a period below 1, and a mechanism for every
    point.
    """

    def __init__(
        self,
        mechanism: PackedMechanism,
        key: bytes,
        *,
        period: int = 86_400,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ProblemError(f"is not {KEY_BYTES} bytes", where="key")
        refuse_meshes(mechanism)
        self.mechanism, self.ledger = mechanism, ledger
        self.period = whole(period, "period", least=1)
        self._key = key
        self._entered: set[tuple[int, int]] = set()
        self._last: Hashable | None = None

    def entropy(self, place: int, epoch: int) -> bytes:
        """The bytes of the draw for a place's number and an epoch: the first ``draw_bytes`` of
        HMAC-SHA-256 over the text "optmech-sticky/1", the packed file's digest, the place (4 bytes)
        and the epoch (8 bytes, little-endian both)."""
        message = _LABEL + self.mechanism.digest + struct.pack("<IQ", place, epoch)
        drawn = hmac.new(self._key, message, hashlib.sha256).digest()
        return drawn[: self.mechanism.draw_bytes]

    def report(self, secret: Hashable, time: float) -> Hashable | None:
        """The report for a place at a time (seconds since 1970): equal for equal places within an
        epoch. Where a fresh draw would go beyond the ledger's budget, its fall-back: the report
        before, or None for no report."""
        place = self.mechanism.secrets.index(secret)
        epoch = int(time // self.period) if math.isfinite(time) else -1
        if epoch < 0:
            raise ProblemError(f"{time!r} is before 1970", where="time")
        if epoch >= 2**64:
            raise ProblemError(f"{time!r} is too late for epochs of 64 bits", where="time")
        fresh = (place, epoch) not in self._entered
        if fresh and self.ledger is not None:
            if not self.ledger.allows(secret):
                return self._last if self.ledger.fall_back == "repeat" else None
            self.ledger.enter(secret)
        self._entered = {kept for kept in self._entered if kept[1] == epoch} | {(place, epoch)}
        self._last = self.mechanism.report(secret, self.entropy(place, epoch))
        return self._last
