"""The mechanism that protects where nobody has made a design: the whole earth's, at once."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from optmech.errors import ProblemError
from optmech.exact.number import from_above
from optmech.exact.rounding import exp_up
from optmech_devices.packed.earth import Earth

RADIUS, FACTOR = "1km", 4
"""Places so far apart differ by e^(ε (d + 2 snap)), where ε d is the logarithm of so many times and
snap what positions are rounded by, where nothing is said. Neither comes from the data,
so that the promise says nothing of them: a kilometre is ten minutes on foot, and who believed one
of two places as much as the other believes it five to one after a report, at most."""
_LENGTH = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(km|m)?\s*")
BOUGHT = "how much less a design for these data errs: optmech init {data}, then optmech solve"


def everywhere(radius: str | None = None) -> Earth:
    """Reports from everywhere on earth, for which two places ``radius`` apart, as 500m or 2km,
    differ by ``FACTOR`` and what rounding adds. Raises ProblemError on what is no length."""
    text = RADIUS if radius is None else str(radius)
    found = _LENGTH.fullmatch(text)
    if found is None or not Fraction(found[1]):
        raise ProblemError(
            f"{text[:40]!r} is no length", where="radius", remedy="Give one, as 500m or 2km"
        )
    if found[2] is None:
        raise ProblemError(
            f"{found[1]} may be metres or kilometres",
            where="radius",
            remedy=f"Give {found[1]}m or {found[1]}km",
        )
    kilometres = Fraction(found[1]) / (1000 if found[2] == "m" else 1)
    return Earth.of(f"{1 / kilometres} ln {FACTOR}")


def said(earth: Earth, radius: str | None) -> str:
    """What was taken, and why, in words."""
    number, unit = _LENGTH.fullmatch(radius or RADIUS).groups()  # type: ignore[union-attr]
    apart, kilometres = f"{number} {unit}", float(number) / (1000 if unit == "m" else 1)
    rate, snap = earth.promise.epsilon or 0.0, earth.header.snap or 0.0
    most = exp_up(np.array(rate * (kilometres + 2 * snap)))
    why = "" if radius else ": a default that says nothing of the data, --radius sets another"
    return (
        f"without a design the mechanism of the whole earth reports: {apart} apart, a report is at "
        f"most {from_above(float(most), 3)} times as likely{why}; it errs by "
        f"{earth.header.loss.packed:.3g} km on average"
    )
