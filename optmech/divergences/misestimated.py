"""What coupling mechanisms keep when their inputs are only approximately known (CM19 Theorem 3)."""

from __future__ import annotations

import math

import numpy as np

from optmech.analysis.guarantees.guarantee import RULES, Guarantee
from optmech.divergences.general import Function, evaluated
from optmech.errors import ProblemError
from optmech.exact.exponentials import stated_up
from optmech.exact.number import Number, parse_exact, sum_up
from optmech.exact.ratios.generators import divergence_name

_LARGE = 700.0
"""e^700 is a float64."""
_UNDERFLOW = 2.0**-1070
"""More than squares of small ratios lose to the least float."""


def misestimated(divergence: str, closeness: Number, promised: Number = 0.0) -> Guarantee:
    """The divergence of two outputs when every actual input is within max divergence ε =
    ``closeness`` of the assumed one, both ways, and the assumed outputs within ``promised``.

    "max": 2ε + promised. The others: the chord bound (see ``chord``) at that log ratio, which for
    "kl" and equal outputs is 2ε tanh ε (CM19 has 2ε e^ε). Where the assumed outputs are equal, less
    still: times (1 + e^{-2ε}) / (1 + e^{-ε}), and that is attained (docs/theory.md).
    """
    name = divergence_name(divergence)
    own, base = _number(closeness, "closeness"), _number(promised, "promised")
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
        value *= 1 + (16 + 4 * min(ratio, _LARGE)) * 2.0**-53
        value += _UNDERFLOW if ratio > 0 else 0.0
        value = min(RULES[name].largest, value)
    pairs = f"inputs within max divergence {own:.6g} of the assumed ones"
    return Guarantee(value, 0.0, pairs, theorem, divergence=name)


def named_chord(divergence: str, log_ratio: Number) -> float:
    """``chord`` of a named divergence, in closed form; the log ratio itself for "max"."""
    name, ratio = divergence_name(divergence), _number(log_ratio, "log_ratio")
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

    With r = 2ε it bounds the outputs of a coupling mechanism. CM19 Theorem 3.3 has e^ε f(e^{2ε}) in
    its place, which looks at f above 1 only and is false (docs/theory.md).
    """
    ratio = _number(log_ratio, "log_ratio")
    if ratio > _LARGE:
        raise ProblemError(f"e^{ratio:g} is no float", where="log_ratio")
    high = math.exp(ratio)
    # (b−1)/(b−a) = b/(b+1) and (1−a)/(b−a) = 1/(b+1)
    below, above = evaluated(f, np.array([1 / high, high])).tolist()
    return float(high * below + above) / (high + 1)


def _number(value: Number, where: str) -> float:
    return math.inf if value == math.inf else stated_up(parse_exact(value, where=where))
