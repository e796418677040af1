"""Noise for other libraries: OpenDP measurements, dp-accounting, SciPy, tables."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np

from optmech.base.machine import needed
from optmech.base.storage import csv_bytes, write_atomically
from optmech.exact.arguments import whole
from optmech.exact.exponentials import bracket, exp_bounds
from optmech.exact.number import Exact, rounded_up
from optmech.exchange.measurement import accounted
from optmech.spaces.arguments import checked_arguments
from optmech_noise.additive.bound import BITS, largest_delta
from optmech_noise.additive.cells import CellNoise
from optmech_noise.additive.design import ApproximateNoise, NoiseDesign, RealNoise
from optmech_noise.additive.entries import MOST_SENSITIVITY
from optmech_noise.additive.law import Law
from optmech_noise.additive.pairs import dominating
from optmech_noise.additive.radial import RadialNoise, radial_pair
from optmech_noise.additive.result import CertifiedNoise
from optmech_noise.additive.rounded import RoundedNoise
from optmech_noise.additive.shaped import CurveNoise, ShapedNoise, ShapedRealNoise

_TAIL = 1e-17
_MOST_ROWS = 1_000_000


@checked_arguments
def noise_to_opendp(
    design: NoiseDesign | RealNoise | ShapedNoise | ShapedRealNoise | RadialNoise,
) -> Any:
    """A user-defined OpenDP measurement that adds the noise to an integer, sampled exactly, to a
    float, of which the sum is rounded to a multiple of 2^-30, or to a list of two or three floats.

    The input metric is the absolute distance, for points the l2 distance. Without δ the output
    measure is the maximum divergence, and the privacy map d ↦ ⌈d/Δ⌉ε, rounded up; otherwise
    approximate maximum divergence with d ↦ (ε, δ(d)), where δ(d) is computed exactly for shifts up
    to d. Of a curve the pair is chosen by ``ε`` of its first pair; at others ``design.at`` says
    what is kept. Raises ProblemError without opendp and for Rényi promises, VerificationError
    where the noise is not as private as it says.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon=1, gap=1e-3)
    >>> measurement = om.exchange.noise_to_opendp(design)
    >>> print(round(measurement.map(2), 6))  # two steps of sensitivity 1
    2.0
    >>> type(measurement(41)).__name__
    'int'
    >>> padding = om.noise.optimal(1, "1/1000", support=(0, None))
    >>> print(tuple(round(number, 6) for number in om.exchange.noise_to_opendp(padding).map(1)))
    (1.0, 0.001)
    """
    dp = needed("opendp.prelude", "opendp", where="noise_to_opendp")
    design.require_private()
    # of one release: of several without δ an equal part
    epsilon = design.each if isinstance(design, ApproximateNoise) else design.epsilon
    above = bracket(epsilon)[1]
    scale = Fraction(design.sensitivity) / design.steps
    approximate = isinstance(design, CurveNoise) or design.delta > 0

    def pure(distance: Any) -> float:
        return rounded_up(above * math.ceil(Fraction(distance) / design.sensitivity))

    def both(distance: Any) -> tuple[float, float]:
        steps = math.ceil(Fraction(distance) / scale)
        if steps == 0:
            return 0.0, 0.0
        if steps > max(MOST_SENSITIVITY, design.steps):
            return rounded_up(above), 1.0
        # between two steps of the lattice it is at most that of the farther
        return rounded_up(above), min(1.0, rounded_up(_spent(design, epsilon, steps)))

    # what a library cannot verify of foreign code, its user has to ask for
    dp.enable_features("contrib", "honest-but-curious")
    measure = dp.approximate(dp.max_divergence()) if approximate else dp.max_divergence()
    domain, metric, draw = _measured(dp, design)
    return dp.m.make_user_measurement(domain, metric, measure, draw, both if approximate else pure)


def _measured(dp: Any, design: Any) -> tuple[Any, Any, Callable[[Any], Any]]:
    """What noise is added to in OpenDP, how that is compared, and the noisy number."""
    floats = dp.atom_domain(T=float, nan=False)
    if isinstance(design, RadialNoise):
        points = dp.vector_domain(floats, size=design.dimension)
        return points, dp.l2_distance(T=float), lambda value: list(design.release(value))
    if isinstance(design, CellNoise) and not isinstance(design, RoundedNoise):
        metric = dp.absolute_distance(T=float)
        return floats, metric, lambda value: float(cast("Fraction", design.release(value)))
    if isinstance(design, RoundedNoise):
        return dp.atom_domain(T="i64"), dp.absolute_distance(T="i64"), design.release

    def added(value: int) -> int:
        return value + int(design.law.sample(1)[0])

    return dp.atom_domain(T=int), dp.absolute_distance(T=int), added


def _spent(design: Any, epsilon: Exact, steps: int) -> Fraction:
    """A number at or above δ of shifts up to so many steps."""
    if isinstance(design, RadialNoise):
        return design.law.excess(design.dimension, steps, exp_bounds(epsilon, BITS)[0])
    if isinstance(design, CurveNoise):
        return design.largest(epsilon, steps)
    return largest_delta(design.law, epsilon, steps)[0]


@checked_arguments
def noise_to_dp_accounting(
    design: CertifiedNoise | CellNoise | ShapedNoise | RadialNoise, *, interval: float = 1e-4
) -> Any:
    """A ``PrivacyLossDistribution`` of dp-accounting for one release: pessimistic, with losses
    rounded up to multiples of ``interval``, of a pair that dominates every shift up to the
    sensitivity. Raises ProblemError without dp-accounting, or for noise of pairs.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon=1, gap=1e-3)
    >>> pld = om.exchange.noise_to_dp_accounting(design)
    >>> ten = pld.self_compose(10)
    >>> print(round(ten.get_epsilon_for_delta(1e-6), 2) <= 10)
    True
    """
    where = "noise_to_dp_accounting"
    if isinstance(design, RadialNoise):
        return accounted(radial_pair(design.law, design.dimension, design.steps), interval, where)
    return accounted(dominating(design.law, design.steps), interval, where)


@checked_arguments
def noise_to_scipy(design: CertifiedNoise | CellNoise) -> Any:
    """A frozen ``scipy.stats.rv_discrete`` with the probabilities in floats, for plots and tests,
    of real noise an ``rv_histogram`` that ends where next to nothing is left; its ``rvs`` are no
    draws to release.

    Examples
    --------
    >>> design = om.noise.optimal(epsilon=1, gap=1e-3)
    >>> law = om.exchange.noise_to_scipy(design)
    >>> print(round(law.pmf(0), 3), round(float(law.pmf(1) / law.pmf(0)), 3))
    0.462 0.368
    """
    from scipy.stats import rv_discrete, rv_histogram

    law = design.law
    if isinstance(design, CellNoise):
        last, width = _last(law), float(design.step)
        heights = [float(law.at(k)) for k in range(-last, last + 1)]
        return rv_histogram((heights, (np.arange(-last, last + 2) - 0.5) * width), density=False)

    class _Noise(rv_discrete):  # type: ignore[misc, unused-ignore]
        def _pmf(self, k: Any) -> Any:
            return np.vectorize(lambda v: float(law.at(int(v))), otypes=[np.float64])(k)

        def _cdf(self, k: Any) -> Any:
            return np.vectorize(lambda v: _below(law, math.floor(v)), otypes=[np.float64])(k)

    end = np.inf if law.tails else law.n
    return _Noise(a=-end, b=end, name="noise")()


def _last(law: Law) -> int:
    """A place beyond which next to nothing is left."""
    last = law.n
    while law.tails and law.upper_tail(last + 1) > Fraction(_TAIL) and last < _MOST_ROWS:
        last += len(law.tails)
    return last


def _below(law: Law, k: int) -> float:
    """P(Z <= k)."""
    if k >= 0:
        return float(1 - law.upper_tail(k + 1))
    return float(law.upper_tail(-k))


@checked_arguments
def write_noise_table(design: CertifiedNoise, path: str | Path, *, last: int | None = None) -> None:
    """A CSV file with the columns noise, probability (nearest float), numerator and denominator
    (exact), for |k| <= ``last``: by default to where next to nothing is left.

    Raises ProblemError for a last place that is none or where the file cannot be written.

    Examples
    --------
    >>> om.exchange.write_noise_table(om.noise.optimal(epsilon=1, gap=1e-3), "noise.csv", last=1)
    >>> print(open("noise.csv").readline().strip())
    noise,probability,numerator,denominator
    """
    law = design.law
    last = whole(_last(law) if last is None else last, "last", 0, _MOST_ROWS)
    exact = ((k, law.at(k)) for k in range(-last, last + 1))
    rows = ((k, repr(float(p)), p.numerator, p.denominator) for k, p in exact)
    header = ("noise", "probability", "numerator", "denominator")
    write_atomically(path, csv_bytes(chain([header], rows)))
