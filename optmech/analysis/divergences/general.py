"""f-divergences for any convex function given as a function, and what coupling mechanisms keep when
their inputs are only approximately known (Kawamoto and Murakami, Allerton 2019, Theorem 3).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from optmech.analysis.divergences.named import both
from optmech.analysis.guarantees.guarantee import RULES, Guarantee
from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.arguments import float_or_nan
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, parse_exact, sum_up
from optmech.exact.ratios.generators import divergence_name
from optmech.exact.rounding import UNIT
from optmech.spaces.prior import Distribution

Function = Callable[[Floats], Floats] | Callable[[float], float]

_ONE = 1e-12
_PROBES = 2.0 ** np.arange(-40.0, 41.0)
_RELATIVE = 1e-12
_CANCELLED = 64 * UNIT
"""Rounding of f, relative to itself, and to the terms that cancel in it."""
_DOUBLINGS = (40, 60, 80)
"""f(t)/t is looked at where t is 2 to these powers."""
_SETTLED = 1e-9
_STEADY = 0.95
"""Growth like ln t adds the same between equal ratios of t; anything slower may settle yet."""


def f_divergence(
    p: Distribution,
    q: Distribution,
    f: Function,
    *,
    at_zero: float | None = None,
    recession: float | None = None,
) -> float:
    """Σ q f(p/q) for a convex f with f(1) = 0 (Kawamoto and Murakami, Allerton 2019, Def. 6), zero
    masses included.

    Parameters
    ----------
    p, q:
        Distributions of shape (m,).
    f:
        A convex function of t > 0: of an array, or of a number. f(1) = 0 is required; convexity
        is probed on a wide grid and at the likelihood ratios, which refutes and does not prove.
    at_zero:
        lim f(t) as t -> 0, where f(0) is not it; used where p = 0 < q. May be inf.
    recession:
        lim f(t)/t as t -> inf; used where p > 0 = q, once per unit of p. May be inf. Unless
        given it is taken from slopes at t = 2^40, 2^60, 2^80, if these have settled or grow
        without slowing down; else it is asked for.

    Raises
    ------
    ProblemError
        If f(1) is not 0, f is not convex or not finite where it is needed, or a limit is unknown.

    Examples
    --------
    >>> p, q = [0.75, 0.25], [0.5, 0.5]
    >>> print(om.divergences.f_divergence(p, q, lambda t: (t - 1) ** 2))  # chi squared: 1/4
    0.25
    """
    first, second = both(p, q)
    joint = (first > 0) & (second > 0)
    with np.errstate(over="ignore"):
        ratios = first[joint] / second[joint]
    if not np.isfinite(ratios).all():
        raise ProblemError("a likelihood ratio is above 1e308", where="p", remedy="Round p or q")
    at_one = float(evaluated(f, np.array([1.0]))[0])
    if abs(at_one) > _ONE:
        raise ProblemError(
            f"f(1) is {at_one:g}", where="f", remedy="Subtract f(1): the divergence of p and p is 0"
        )
    _require_convex(f, np.concatenate([_PROBES, ratios]))
    values = evaluated(f, ratios)
    out = math.fsum((second[joint] * values).tolist())
    for name, share, limit, given in (
        ("at_zero", float(second[first == 0].sum()), _at_zero, at_zero),
        ("recession", float(first[second == 0].sum()), _recession, recession),
    ):
        if share > 0:
            weight = limit(f) if given is None else float_or_nan(given)
            if math.isnan(weight) or weight == -math.inf:
                raise ProblemError(
                    f"{given!r} is not a limit", where=name, remedy="Give a number, or inf"
                )
            out = math.inf if weight == math.inf else out + share * weight
    return max(0.0, out)


def evaluated(f: Function, t: Floats) -> Floats:
    """f at every t > 0, finite."""
    if not callable(f):
        raise ProblemError(f"{type(f).__name__} is not a function", where="f")
    with np.errstate(all="ignore"):
        try:
            values = np.asarray(f(t), dtype=np.float64)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            values = np.empty(0)
        if values.shape != t.shape:
            values = np.array([_number(f, x) for x in t.tolist()])
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise ProblemError(f"f({t[bad[0]]:g}) is {values[bad[0]]}", where="f")
    return values


def _number(f: Function, t: float) -> float:
    try:
        return float(f(t))  # type: ignore[arg-type]
    except ArithmeticError:
        return math.nan
    except (TypeError, ValueError) as error:
        raise ProblemError(f"f({t:g}) fails: {error}", where="f") from error


def _require_convex(f: Function, points: Floats) -> None:
    t = np.unique(points)
    values = evaluated(f, t)
    step, rise = np.diff(t), np.diff(values)
    # the middle of three points may exceed the chord by rounding only
    excess = rise[:-1] * step[1:] - rise[1:] * step[:-1]
    size = np.abs(values)
    noise = _RELATIVE * np.maximum(np.maximum(size[:-2], size[1:-1]), size[2:])
    # near 1, where f vanishes, its terms cancel: they are as large as f is a factor 2 away
    noise = (noise + _CANCELLED * _nearby(t[1:-1], t, size)) * (step[:-1] + step[1:])
    bad = np.flatnonzero(excess > noise)
    if len(bad):
        k = int(bad[0])
        raise ProblemError(
            f"is not convex: f({t[k + 1]:g}) = {values[k + 1]:g} lies above the chord from "
            f"f({t[k]:g}) = {values[k]:g} to f({t[k + 2]:g}) = {values[k + 2]:g}",
            where="f",
        )


def _nearby(at: Floats, t: Floats, size: Floats) -> Floats:
    """The largest |f| at the probes around every point: up to two below, two above."""
    probed = size[np.searchsorted(t, _PROBES)]
    below = np.searchsorted(_PROBES, at, side="right") - 1
    around = [np.clip(below + k, 0, len(probed) - 1) for k in (-1, 0, 1, 2)]
    return np.asarray(np.max(probed[np.array(around)], axis=0))


def _at_zero(f: Function) -> float:
    with np.errstate(all="ignore"):
        value = _number(f, 0.0)
    if math.isnan(value) or value == -math.inf:
        raise ProblemError(
            "f(0) is not a number, and p = 0 < q somewhere",
            where="at_zero",
            remedy="Give the limit of f(t) as t goes to 0 (inf is allowed)",
        )
    return value


def _recession(f: Function) -> float:
    near, far, farthest = (
        float(np.diff(evaluated(f, np.array([2.0**k, 2.0 ** (k + 1)])))[0]) / 2.0**k
        for k in _DOUBLINGS
    )
    if abs(farthest - far) <= _SETTLED * max(abs(far), abs(farthest)):
        return farthest
    if farthest - far >= _STEADY * (far - near) > 0:
        return math.inf
    raise ProblemError(
        f"f(t)/t has not settled at t = 2^{_DOUBLINGS[-1]} ({farthest:g}), and p > 0 = q somewhere",
        where="recession",
        remedy="Give the limit of f(t)/t as t grows (inf is allowed)",
    )


_LARGE = 700.0
"""e^700 is a float64."""
_UNDERFLOW = 2.0**-1070
"""More than squares of small ratios lose to the least float."""


def misestimated(divergence: str, closeness: Number, promised: Number = 0.0) -> Guarantee:
    """The divergence of two outputs when every actual input is within max divergence ε =
    ``closeness`` of the assumed one, both ways, and the assumed outputs within ``promised``.

    "max": 2ε + promised. The others: the chord bound (see ``chord``) at that log ratio, which for
    "kl" and equal outputs is 2ε tanh ε (Kawamoto and Murakami, Allerton 2019, have 2ε e^ε). Where
    the assumed outputs are equal, less still: times (1 + e^{-2ε}) / (1 + e^{-ε}), and that is
    attained (docs/theory/targets.md).

    Examples
    --------
    >>> print(round(om.divergences.misestimated("max", closeness=0.1).epsilon, 4))
    0.2
    >>> print(round(om.divergences.misestimated("kl", closeness=0.1).epsilon, 4))
    0.019
    """
    name = divergence_name(divergence)
    own, base = (
        _log_ratio(closeness, "closeness"),
        _log_ratio(promised, "promised"),
    )
    ratio = sum_up(own, own, base)
    value = named_chord(name, ratio)
    theorem = "CM19 Theorem 3 with the chord bound"
    if name == "max":
        theorem = "CM19 Theorem 3.1"
    else:
        if base == 0:
            value *= (1 + math.exp(-2 * own)) / (1 + math.exp(-own))
            theorem = "CM19 Theorem 3, tight"
        # upwards by more than all roundings, of which that of an exponent counts r times
        value *= 1 + (16 + 4 * min(ratio, _LARGE)) * UNIT
        value += _UNDERFLOW if ratio > 0 else 0.0
        value = min(RULES[name].largest, value)
    pairs = f"inputs within max divergence {own:.6g} of the assumed ones"
    return Guarantee(value, 0.0, pairs, theorem, divergence=name)


def named_chord(divergence: str, log_ratio: Number) -> float:
    """``chord`` of a named divergence, in closed form; the log ratio itself for "max".

    Examples
    --------
    >>> print(round(om.divergences.named_chord("kl", "ln 3"), 4))
    0.5493
    >>> print(round(om.divergences.named_chord("tv", "ln 3"), 4))  # (3 - 1) / (3 + 1)
    0.5
    """
    name, ratio = divergence_name(divergence), _log_ratio(log_ratio, "log_ratio")
    if name == "max":
        return ratio
    half = math.tanh(ratio / 2)
    if name in ("kl", "reverse_kl"):
        return ratio * half
    if name == "tv":
        return half
    if ratio > _LARGE:
        return math.inf if name == "chi2" else 1.0
    if name == "chi2":
        return 4 * math.sinh(ratio / 2) ** 2
    return 2 * math.sinh(ratio / 4) ** 2 / math.cosh(ratio / 2)


def chord(f: Function, log_ratio: Number) -> float:
    """((b−1) f(a) + (1−a) f(b)) / (b−a) with b = e^r, a = 1/b and r = ``log_ratio``: the largest
    f-divergence of two distributions with likelihood ratios in [a, b], for convex f, f(1) = 0.

    With r = 2ε it bounds the outputs of a coupling mechanism. Kawamoto and Murakami, Allerton 2019,
    Theorem 3.3 has e^ε f(e^{2ε}) in its place, which looks at f above 1 only and is false
    (docs/theory/targets.md).

    Examples
    --------
    >>> kl = om.divergences.chord(lambda t: t * np.log(t), "ln 3")
    >>> print(round(kl, 4), round(np.log(3) / 2, 4))  # ln 3 tanh(ln 3 / 2)
    0.5493 0.5493
    """
    ratio = _log_ratio(log_ratio, "log_ratio")
    if ratio > _LARGE:
        raise ProblemError(f"e^{ratio:g} is no float", where="log_ratio")
    high = math.exp(ratio)
    # (b−1)/(b−a) = b/(b+1) and (1−a)/(b−a) = 1/(b+1)
    below, above = evaluated(f, np.array([1 / high, high])).tolist()
    return float(high * below + above) / (high + 1)


def _log_ratio(value: Number, where: str) -> float:
    return math.inf if value == math.inf else stated_up(parse_exact(value, where=where))
