"""``om.noise.curve``: promises about attacks and trade-offs as pairs (ε, δ), all to be kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from optmech.errors import ProblemError
from optmech.exact.arguments import probability, whole
from optmech.exact.number import Exact, Number, parse_exact, rounded_down
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.real_loss import pair, rational
from optmech_noise.additive.shaped_law import MOST_PAIRS_OF, Curve, require_curve
from optmech_noise.repeated import Repeated
from optmech_noise.session import require_range

_SPAN = 5.0
"""Tangents of a Gaussian curve are taken up to ε = 5 μ."""
_LEAST = 1e-12
_MOST_RELEASES = 1000
Pairs = list[tuple[float, float]]


@checked_arguments
def curve(
    *,
    gdp: Number | None = None,
    points: int = 9,
    tangents: Sequence[tuple[Number, Number]] | None = None,
    advantage: Number | None = None,
    power: tuple[Number, Number] | None = None,
    releases: tuple[Number, Number, int] | None = None,
) -> Pairs:
    """Pairs (ε, δ) that state a promise of another kind, to be kept all at once by
    ``om.noise.optimal(curve=…)`` and ``om.noise.real(curve=…)``.

    Parameters
    ----------
    gdp:
        μ: the trade-off curve of N(0, 1) and N(μ, 1) (Dong, Roth and Su, Gaussian differential
        privacy, 2022), at ``points`` values of ε from 0 to 5 μ. Noise that keeps them is as private
        as the tangents there say; between and beyond them ``design.at(ε)`` says what it keeps.
    tangents:
        Pairs (slope, intercept) of lines: an attack with the false-positive rate a has a
        true-positive rate of at most intercept + slope a, with slopes from 1 on.
    advantage:
        The most by which true positives may exceed false positives.
    power:
        (a, b): at the false-positive rate a the true-positive rate is at most b. That is kept by
        the tangent of the Gaussian curve through (a, b), and the bound is of all noise below that.
    releases:
        (ε, δ, k): what each of k releases of the same noise has to keep where all of them together
        keep (ε, δ). It is necessary, not sufficient: the lower bound under it is one for k
        releases.

    Raises
    ------
    ProblemError
        For arguments that are not as said, or not exactly one of the five.

    Examples
    --------
    >>> [(round(rate, 2), round(part, 4)) for rate, part in om.noise.curve(gdp=1, points=3)]
    [(0.0, 0.3829), (2.5, 0.0063), (5.0, 0.0)]
    >>> om.noise.curve(advantage=0.1)
    [(0.0, 0.1)]
    >>> attacked = om.noise.optimal(curve=om.noise.curve(power=(0.01, 0.03)))
    >>> print(attacked.gap < 0.01)
    True
    """
    given = {
        "gdp": gdp,
        "tangents": tangents,
        "advantage": advantage,
        "power": power,
        "releases": releases,
    }
    names = [name for name, value in given.items() if value is not None]
    if len(names) != 1:
        raise ProblemError(
            f"has {len(names)} promises", where="curve", remedy=f"Give one of {', '.join(given)}"
        )
    if gdp is not None:
        return _gaussian(float(rational(gdp, "gdp")), whole(points, "points", 2, MOST_PAIRS_OF))
    if advantage is not None:
        return [(0.0, float(_within(advantage, "advantage")))]
    if releases is not None:
        if not isinstance(releases, tuple | list) or len(releases) != 3:
            raise ProblemError("are not three numbers", where="releases", remedy="Give (ε, δ, k)")
        rate, part = (float(rational(v, f"releases[{k}]")) for k, v in enumerate(releases[:2]))
        return Repeated(rate, part, whole(releases[2], "releases[2]", 1, _MOST_RELEASES)).pairs()
    if power is not None:
        return [
            _through(
                *(float(_within(v, f"power[{k}]")) for k, v in enumerate(pair(power, "power")))
            )
        ]
    lines = [pair(line, f"tangents[{k}]") for k, line in enumerate(tangents or ())]
    found = []
    for k, (slope, start) in enumerate(lines):
        steep = float(rational(slope, f"tangents[{k}]"))
        if steep < 1:
            raise ProblemError(
                "has a slope below 1", where=f"tangents[{k}]", remedy="Give slopes from 1 on"
            )
        found.append((math.log(steep), float(_within(start, f"tangents[{k}]"))))
    return sorted(found)


def _within(value: Number, where: str) -> Fraction:
    found = rational(value, where)
    if not 0 < found < 1:
        raise ProblemError("is not between 0 and 1", where=where, remedy="Give a probability")
    return found


def _gaussian(mu: float, points: int) -> Pairs:
    from optmech_noise.gaussian import gaussian_delta

    """Tangents of the curve, rounded down."""
    found = []
    for k in range(points):
        rate = _SPAN * mu * k / (points - 1)
        part = rounded_down(
            gaussian_delta(Fraction(rate), Fraction(mu)) * (1 - Fraction(1, 1 << 50))
        )
        if part >= _LEAST:
            found.append((rate, part))
    return found


def _through(alarms: float, caught: float) -> tuple[float, float]:
    from scipy.special import ndtri

    if alarms >= caught:
        raise ProblemError(
            "has no more true than false positives", where="power", remedy="Give (a, b), a < b"
        )
    a, b = float(ndtri(alarms)), float(ndtri(caught))
    rate = max(0.0, (a * a - b * b) / 2)
    part = caught - math.exp(rate) * alarms
    return (rate, part * (1 - 1e-12)) if part > 0 else (0.0, caught - alarms)


def stated_curve(
    epsilon: Number | None, delta: Number, curve: Sequence[tuple[Number, Number]] | None
) -> Curve:
    """The pairs that are to be kept, by growing ε, without those that others imply; raises
    ProblemError for what are none."""
    if curve is None:
        if epsilon is None:
            raise ProblemError("is missing", where="epsilon", remedy="Give ε, or a curve")
        found = [(parse_exact(epsilon, where="epsilon"), probability(delta))]
    elif epsilon is not None:
        raise ProblemError("goes without a curve", where="epsilon", remedy="Leave one of them out")
    else:
        pairs = [pair(each, f"curve[{k}]") for k, each in enumerate(curve)]
        found = [
            (parse_exact(rate, where=f"curve[{k}]"), probability(part, f"curve[{k}]"))
            for k, (rate, part) in enumerate(pairs)
        ]
    for rate, part in found:
        require_range(rate, 1e-4, "curve", zero=True)
        if not part > 0:
            raise ProblemError(
                "is 0, which noise that ends somewhere does not keep",
                where="delta" if curve is None else "curve",
                remedy="Allow some δ",
            )
    found.sort(key=lambda each: float(each[0]))
    kept: list[tuple[Exact, Exact]] = []
    for rate, part in found:
        if not kept or float(part) < float(kept[-1][1]):
            if kept and float(kept[-1][0]) == float(rate):
                kept.pop()
            kept.append((rate, part))
    require_curve(kept)
    return tuple(kept)
