"""The variance of unbiased reports of a number in [-1, 1], of mechanisms in use, in closed form.

Duchi, Jordan and Wainwright (JASA 2018) and Wang et al. (ICDE 2019), "Collecting and Analyzing
Multidimensional Data with Local Differential Privacy". What is possible is found by ``om.solve``
with ``Bias`` and ``MetricPrivacy(…, everywhere=om.Mesh.line(…))``, see ``docs/statistics.md``.
"""

from __future__ import annotations

import math

from optmech.exact.arguments import positive
from optmech.exact.number import Number, float_of
from optmech.spaces.arguments import checked_arguments

_THRESHOLD = 0.61


@checked_arguments
def duchi(epsilon: Number, value: float = 0.0) -> float:
    """The variance of Duchi's report ±(e^ε + 1)/(e^ε - 1) of a number from -1 to 1.

    It is largest at 0, the default.

    Examples
    --------
    >>> from optmech_surveys import duchi
    >>> round(duchi(1.0), 4), round(duchi(3.0), 4)
    (4.6827, 1.2206)
    """
    rate = math.exp(positive(float_of(epsilon, "epsilon"), "epsilon"))
    return ((rate + 1) / (rate - 1)) ** 2 - float(value) ** 2


@checked_arguments
def piecewise(epsilon: Number, value: float = 1.0) -> float:
    """The variance of the piecewise mechanism's report of a number from -1 to 1.

    It is largest at 1, the default.

    Examples
    --------
    >>> from optmech_surveys import piecewise
    >>> round(piecewise(1.0), 4), round(piecewise(3.0), 4)
    (5.2236, 0.4929)
    """
    half = math.exp(positive(float_of(epsilon, "epsilon"), "epsilon") / 2)
    return float(value) ** 2 / (half - 1) + (half + 3) / (3 * (half - 1) ** 2)


@checked_arguments
def hybrid(epsilon: Number) -> float:
    """The largest variance of the hybrid mechanism, which mixes the two others.

    Above ε = 0.61 the piecewise one is taken with probability 1 - e^{-ε/2}, and below Duchi's.

    Examples
    --------
    >>> from optmech_surveys import hybrid
    >>> round(hybrid(1.0), 3), round(hybrid(3.0), 4)
    (4.289, 0.4322)
    """
    rate = positive(float_of(epsilon, "epsilon"), "epsilon")
    if rate <= _THRESHOLD:
        return duchi(rate)
    share = 1 - math.exp(-rate / 2)
    ends = (share * piecewise(rate, v) + (1 - share) * duchi(rate, v) for v in (0.0, 1.0))
    return max(ends)
