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
import re
import struct
from collections.abc import Hashable, Mapping
from typing import Any

from optmech.base.lock import Mutex
from optmech.base.read_only import Kept
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys, whole
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech_devices.packed.earth import Earth
from optmech_devices.packed.ledger import Ledger
from optmech_devices.packed.mechanism import PackedMechanism

_LABEL = b"optmech-sticky/1"
_KEPT = b"optmech-sticky-state/1"
KEY_BYTES = 32
_MOST_EPOCHS = 2**64
_EPOCH = re.compile("[0-9]{1,20}")


class StickyReports(Kept):
    """Reports of a packed mechanism that repeat within an epoch; safe between threads.

    Of a mechanism for every point, a place is a position, which counts as a point of
    ``mechanism.lattice``: two positions count as up to ``snap`` farther apart than they are, by
    which the radius of a ledger has to be larger.

    Parameters
    ----------
    key:
        32 bytes that nobody else has, such as ``secrets.token_bytes(32)``: who knows them knows
        the place of every report.
    period:
        Seconds of an epoch.
    ledger:
        Where fresh draws are charged; beyond its budget its fall-back decides.

    Raises ProblemError on a key of another length, a period below 1, a ledger of another
    mechanism, or one whose radius is not above ``snap``, and on a mechanism for every point that
    states no ε.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> packed = om.pack(om.solve(problem), "cells.omm")
    >>> key = bytes(32)  # in use: secrets.token_bytes(32), kept on the device
    >>> sticky = om.devices.StickyReports(packed, key, period=86400)
    >>> one_day = {sticky.report((0, 0), time=60 * minute) for minute in range(1440)}
    >>> len(one_day)
    1
    >>> stored = sticky.to_dict()  # kept on the device
    >>> again = om.devices.StickyReports(packed, key, period=86400)
    >>> again.restore(stored)
    >>> again.entropy(place=0, epoch=0) == sticky.entropy(place=0, epoch=0)
    True
    """

    @checked_arguments
    def __init__(
        self,
        mechanism: PackedMechanism | Earth,
        key: bytes,
        *,
        period: int = 86_400,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise ProblemError(f"is not {KEY_BYTES} bytes", where="key")
        lattice = mechanism.lattice
        if isinstance(mechanism, MeshMechanism) and lattice is None:
            raise ProblemError(
                "is a mechanism for every point that states no ε, or one too large: reports would "
                "repeat on a lattice whose width depends on it",
                where="mechanism",
                remedy="Draw anew for each position, and charge a Ledger",
            )
        self.snap = 0.0 if lattice is None else lattice.slack
        """How much farther apart two positions count than they are, in the mesh's unit."""
        if ledger is not None:
            self._require_own(ledger, mechanism)
        self.mechanism, self.ledger = mechanism, ledger
        self.period = whole(period, "period", least=1, most=2**53 - 1)
        self._key = key
        self._mutex = Mutex()
        self._entered: dict[int, int] = {}
        """The last epoch that every place was drawn for in."""
        self._last: Hashable | None = None

    def __repr__(self) -> str:
        with self._mutex:
            places = len(self._entered)
        spent = "nothing is charged" if self.ledger is None else repr(self.ledger)
        return f"StickyReports({places:,} places drawn, epochs of {self.period:,} s; {spent})"

    def _require_own(self, ledger: Ledger, mechanism: PackedMechanism | Earth) -> None:
        """Raise ProblemError unless it counts draws of the mechanism, for a radius that is wide
        enough."""
        if ledger.radius <= self.snap:
            name = getattr(mechanism.observables, "unit", "km")
            unit = f" {name}" if name else ""
            raise ProblemError(
                f"is for a radius of {ledger.radius:g}{unit}, and positions count as up to "
                f"{self.snap:g}{unit} farther apart than they are",
                where="ledger",
                remedy="Give the radius of positions, and that much more",
            )
        if ledger.mechanism.digest != mechanism.digest:
            raise ProblemError(
                "is that of another packed file",
                where="ledger",
                remedy="Make one for this mechanism; Ledger.restore(…, redesigned=True) takes over "
                "what was spent",
            )

    def entropy(self, place: int, epoch: int) -> bytes:
        """The bytes of the draw for a place's number and an epoch: the first ``draw_bytes`` of
        HMAC-SHA-256 over the text "optmech-sticky/1", the packed file's digest, the place (4 bytes,
        of a file for every point or the whole earth 8) and the epoch (8 bytes), little-endian.
        Raises ProblemError on numbers of none."""
        own = self.mechanism
        number = whole(place, "place", most=own.numbers - 1)
        when = whole(epoch, "epoch", most=_MOST_EPOCHS - 1)
        message = own.digest + number.to_bytes(own.place_bytes, "little") + struct.pack("<Q", when)
        return self._hmac(_LABEL + message)[: own.draw_bytes]

    def report(self, secret: Hashable, time: float) -> Hashable | None:
        """The report for a place, or of a mechanism for every point a position, at a time (seconds
        since 1970): equal for equal places within an epoch. Where a fresh draw would go beyond the
        ledger's budget, its fall-back: the report before, or None for no report; None outside the
        region, where the file says to refuse that.

        A draw is fresh unless the place's last one was in the same epoch, so that a clock that goes
        back charges again.
        """
        place = self.mechanism.number(secret)
        epoch = self._epoch(time)
        if place is None:
            return None
        with self._mutex:
            if self._entered.get(place) != epoch:
                if self.ledger is not None and not self.ledger.charge(secret):
                    return self._last if self.ledger.fall_back == "repeat" else None
                self._entered[place] = epoch
            self._last = self.mechanism.report_of(place, self.entropy(place, epoch))
            return self._last

    def to_dict(self) -> dict[str, Any]:
        """What was drawn and reported last as plain values, to be kept on the device; the
        JavaScript client reads and writes the same. It holds true places."""
        with self._mutex:
            last = None if self._last is None else self.mechanism.observables.index(self._last)
            entered = [[place, str(epoch)] for place, epoch in sorted(self._entered.items())]
        return {"for": self._bound(), "entered": entered, "last": last}

    def restore(self, plain: Mapping[str, Any]) -> None:
        """Take over what ``to_dict`` gave, so that what was drawn is not charged again. Raises
        ProblemError where it is of another key, file or period."""
        plain = dict(plain) if isinstance(plain, Mapping) else plain
        require_keys(plain, {"for", "entered", "last"}, "sticky reports")
        if plain["for"] != self._bound():
            raise ProblemError("are of another key, file or period", where="sticky reports")
        labels, last = self.mechanism.observables.labels, plain["last"]
        try:
            entered = dict(self._drawn(*entry) for entry in plain["entered"])
        except (TypeError, ValueError):
            raise ProblemError("are no pairs of place and epoch", where="entered") from None
        if last is not None:
            last = labels[whole(last, "last", most=len(labels) - 1)]
        with self._mutex:
            self._entered, self._last = entered, last

    def _drawn(self, place: int, epoch: str) -> tuple[int, int]:
        number = whole(place, "entered", most=self.mechanism.numbers - 1)
        if not isinstance(epoch, str) or not _EPOCH.fullmatch(epoch):
            raise ValueError
        return number, whole(int(epoch), "entered", most=_MOST_EPOCHS - 1)

    def _epoch(self, time: float) -> int:
        try:
            # as the client has it, True is no time
            epoch = math.floor(time if not isinstance(time, bool) else math.nan) // self.period
        except (TypeError, ValueError, OverflowError):
            raise ProblemError(f"{time!r} is no time", where="time") from None
        if epoch < 0:
            raise ProblemError(f"{time!r} is before 1970", where="time")
        if epoch >= _MOST_EPOCHS:
            raise ProblemError("is too late for epochs of 64 bits", where="time")
        return epoch

    def _bound(self) -> str:
        """What tells key, file and period, and nothing of the key."""
        message = _KEPT + self.mechanism.digest + struct.pack("<Q", self.period)
        return self._hmac(message).hex()

    def _hmac(self, message: bytes) -> bytes:
        return hmac.new(self._key, message, hashlib.sha256).digest()
