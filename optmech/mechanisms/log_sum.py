"""E[ln(X + Y₁ + … + Y_k)] for independent non-negative terms, between rigorous bounds."""

from __future__ import annotations

import math

import numpy as np

from optmech.base.arrays import Floats
from optmech.exact.number import Interval
from optmech.exact.rounding import depth, total
from optmech.mechanisms.hockey_sum import UNIT, fourier_error, spread, spread_reach


def expected_log(
    values: Floats, first: Floats, others: Floats, copies: int, nodes: int, units: int = 8
) -> Interval:
    """E ln S, S = X + Y₁ + … + Y_copies, where X takes values[k] with probability first[k] and
    every Y with probability others[k]. S > 0 almost surely is assumed.

    Values are known to ``units`` units in the last place each, and so are probabilities.

    Terms are spread over a lattice of step h with their means kept: S' = S + Ξ, E[Ξ|S] = 0. Let
    g be ln, continued below the least positive S by its tangent: g is concave, so that
    E g(S') <= E ln S, and by Taylor's formula the difference is at most
    E[Ξ²/2 max(S' - |Ξ|, least)²] (docs/theory.md). The law of S' comes from Fourier transforms
    over its whole range, with their error bounded by its norm.
    """
    from scipy.fft import irfft, rfft

    terms = copies + 1
    step = terms * float(values.max()) / (nodes - 2 * terms - 2)
    one, many = (np.bincount(*spread(values / step, p), nodes) for p in (first, others))
    law = np.maximum(irfft(rfft(one) * rfft(many) ** copies, nodes), 0.0)
    norms = [float(np.sqrt((part**2).sum())) for part in (one, many, law)]
    blur_unit = fourier_error(nodes, terms, max(norms[:2]), norms[2])
    least = float(values[(values > 0) & (first + others > 0)].min())
    sums = np.arange(nodes) * step
    logs = np.log(np.maximum(sums, least)) + np.minimum(sums - least, 0.0) / least
    # the law has mass one: a constant may be taken off before errors are multiplied
    centre = math.log(max(float(total(law * sums)), least))
    centred = law * (logs - centre)
    blur = blur_unit * float(np.sqrt(((logs - centre) ** 2).sum()))
    blur += 2 * depth(nodes) * UNIT * float(np.abs(centred).sum())
    # no sum is outside these: probabilities that are a little off move the mean by no more
    low, high = math.log(least), math.log(terms * float(values.max()))
    off = terms * (units + 2 * len(values)) + 16
    blur += off * UNIT * (1 + abs(centre) + max(abs(low), abs(high)))
    reach, chance = spread_reach(terms, step)
    with np.errstate(over="ignore", invalid="ignore"):
        curvature = (reach / np.maximum(sums - reach, least)) ** 2 / 2
        lost = float(total(law * curvature)) * (1 + 2.0**-40)
        lost += blur_unit * float(np.sqrt((curvature**2).sum()))
    if chance:
        farthest = terms * step / least
        lost += chance * farthest * farthest / 2
    value = centre + float(total(centred))
    upper = value + lost + blur if math.isfinite(lost) else math.inf
    room = 16 * UNIT * (1 + abs(low) + abs(high))
    return Interval(max(value - blur, low - room), min(upper, high + room))
