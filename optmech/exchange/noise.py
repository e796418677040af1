"""Noise for other tools: OpenDP measurements, dp-accounting, SciPy, tables."""

from __future__ import annotations

import csv
import io
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from optmech.additive.certified import CertifiedNoise
from optmech.additive.design import NoiseDesign
from optmech.additive.encoded import MOST_SENSITIVITY
from optmech.additive.pairs import dominating
from optmech.additive.privacy import largest_delta
from optmech.base.machine import needed
from optmech.base.storage import write_atomically
from optmech.errors import ProblemError
from optmech.exact.checked import positive, whole
from optmech.exact.exponentials import bracket
from optmech.exact.number import rounded_up

_TAIL = 1e-17
_MOST_ROWS = 1_000_000


def noise_to_opendp(design: NoiseDesign) -> Any:
    """A user-defined OpenDP measurement that adds the noise to an integer, sampled exactly.

    The input metric is the absolute distance. Without δ the output measure is the maximum
    divergence, and the privacy map d ↦ ⌈d/Δ⌉ε, rounded up; otherwise approximate maximum divergence
    with d ↦ (ε, δ(d)), where δ(d) is computed exactly for shifts up to d. Raises ProblemError
    without opendp and for Rényi promises, VerificationError where the noise is not as private as it
    says.
    """
    dp = needed("opendp.prelude", "opendp", where="noise_to_opendp")
    _require_delta(design)
    design.require_private()
    # of one release: of several without δ an equal part
    law, epsilon = design.law, design.each
    above = bracket(epsilon)[1]

    def draw(value: int) -> int:
        return value + int(law.sample(1)[0])

    def pure(distance: int) -> float:
        return rounded_up(above * -(-int(distance) // design.sensitivity))

    def approximate(distance: int) -> tuple[float, float]:
        steps = int(distance)
        if steps == 0:
            return 0.0, 0.0
        if steps > MOST_SENSITIVITY:
            return rounded_up(above), 1.0
        worst = largest_delta(law, epsilon, steps)[0]
        return rounded_up(above), min(1.0, rounded_up(worst))

    # what a library cannot verify of foreign code, its user has to ask for
    dp.enable_features("contrib", "honest-but-curious")
    measure = dp.max_divergence() if not design.delta > 0 else dp.approximate(dp.max_divergence())
    return dp.m.make_user_measurement(
        dp.atom_domain(T=int),
        dp.absolute_distance(T=int),
        measure,
        draw,
        approximate if design.delta > 0 else pure,
    )


def noise_to_dp_accounting(design: CertifiedNoise, *, interval: float = 1e-4) -> Any:
    """A ``PrivacyLossDistribution`` of dp-accounting for one release: pessimistic, with losses
    rounded up to multiples of ``interval``, of a pair that dominates every shift up to the
    sensitivity. Raises ProblemError without dp-accounting, or for noise of pairs."""
    module = needed(
        "dp_accounting.pld.privacy_loss_distribution",
        "dp-accounting",
        where="noise_to_dp_accounting",
    )
    pmfs = needed("dp_accounting.pld.pld_pmf", "accounting", where="noise_to_dp_accounting")
    _require_one_number(design)
    step = positive(interval, "interval")
    pair = dominating(design.law, design.sensitivity)
    rounded = np.ceil((pair.losses + 1e-15 * np.abs(pair.losses)) / step).astype(np.int64)
    chances: dict[int, float] = {}
    for place, chance in zip(rounded.tolist(), pair.chances.tolist(), strict=True):
        chances[place] = chances.get(place, 0.0) + chance
    lost = min(1.0, pair.lost + pair.error)
    made = pmfs.create_pmf(chances, step, lost, pessimistic_estimate=True)
    return module.PrivacyLossDistribution(made)


def noise_to_scipy(design: CertifiedNoise) -> Any:
    """A frozen ``scipy.stats.rv_discrete`` with the probabilities in floats, for plots and tests;
    its ``rvs`` are no draws to release."""
    from scipy.stats import rv_discrete

    _require_one_number(design)
    law = design.law

    class _Noise(rv_discrete):  # type: ignore[misc, unused-ignore]
        def _pmf(self, k: Any) -> Any:
            return np.array([float(law.at(int(v))) for v in np.ravel(k)]).reshape(np.shape(k))

        def _cdf(self, k: Any) -> Any:
            return np.array([_below(design, math.floor(v)) for v in np.ravel(k)]).reshape(
                np.shape(k)
            )

    end = np.inf if law.tails else law.n
    return _Noise(a=-end, b=end, name="noise")()


def _require_delta(design: object) -> None:
    if not isinstance(design, NoiseDesign):
        promise = getattr(design, "promise", f"a {type(design).__name__} is no noise")
        raise ProblemError(
            f"promises otherwise: {promise}",
            where="design",
            remedy="Give noise for ε, or ε and δ",
        )


def _require_one_number(design: object) -> None:
    if not isinstance(design, CertifiedNoise):
        raise ProblemError(
            "is no noise for one number",
            where="design",
            remedy="Give what om.noise.optimal returns without bounded and dimensions",
        )


def _below(design: CertifiedNoise, k: int) -> float:
    """P(Z <= k)."""
    if k >= 0:
        return float(1 - design.law.upper_tail(k + 1))
    return float(design.law.upper_tail(-k))


def write_noise_table(design: CertifiedNoise, path: str | Path, *, last: int | None = None) -> None:
    """A CSV file with the columns noise, probability (nearest float), numerator and denominator
    (exact), for |k| <= ``last``: by default to where next to nothing is left.

    Raises ProblemError for a last place that is none or where the file cannot be written.
    """
    _require_one_number(design)
    law = design.law
    if last is None:
        last = law.n
        while law.tails and law.upper_tail(last + 1) > Fraction(_TAIL) and last < _MOST_ROWS:
            last += len(law.tails)
    last = whole(last, "last", 0, _MOST_ROWS)
    text = io.StringIO(newline="")
    table = csv.writer(text)
    table.writerow(["noise", "probability", "numerator", "denominator"])
    for k in range(-last, last + 1):
        exact = law.at(k)
        table.writerow([k, repr(float(exact)), exact.numerator, exact.denominator])
    write_atomically(path, text.getvalue().encode())


__all__ = ["noise_to_dp_accounting", "noise_to_opendp", "noise_to_scipy", "write_noise_table"]
