"""The loss of one hypothesis and the terms that it is made of (Meehan and Chaudhuri 2019, eqs. 2
and 3)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import positive
from optmech.spaces.arguments import checked_arguments
from optmech_traces.gaussian.loss import renyi_order
from optmech_traces.gaussian.prior import GaussianPrior, information, noise_matrix, secret_steps


@record
class LossTerms(Shown):
    """(λ/2) (Δᵀ Σ_eff Δ + ‖Δ‖² / σ_z²): what the other positions tell of the secret ones, and what
    their own reports do. Floats, from an enclosure as narrow as these allow.

    Examples
    --------
    >>> beside = om.traces.GaussianPrior([0, 1], om.traces.rbf(1.0))
    >>> terms = om.traces.loss_terms(beside, 1.0, secrets=[0], difference=[1], order=2)
    >>> print(round(terms.direct, 4), round(terms.inferred, 4), round(terms.alpha, 4))
    1.0 0.2254 0.2254
    >>> terms.total == terms.direct + terms.inferred
    True
    """

    effective: Floats
    """Σ_eff, shape (m, m), m the number of secret coordinates."""
    inferred: float
    """The first term, which the prior causes."""
    direct: float
    """The second term, which no prior changes."""

    @property
    def total(self) -> float:
        """The Rényi loss of this hypothesis (eq. 3)."""
        return self.inferred + self.direct

    @property
    def alpha(self) -> float:
        """α*, the largest eigenvalue of Σ_eff (eq. 4)."""
        return float(np.linalg.eigvalsh(self.effective)[-1])


@checked_arguments
def loss_terms(
    trace: GaussianPrior,
    noise_variance: float,
    secrets: Iterable[int],
    *,
    difference: ArrayLike,
    order: float,
) -> LossTerms:
    """The Rényi loss of order λ of one hypothesis Δ, in its two terms (Meehan and Chaudhuri 2019,
    eqs. 2 and 3).

    Parameters
    ----------
    noise_variance:
        σ_z² > 0, of every coordinate.
    secrets:
        Indices of the secret times.
    difference:
        Δ, by how much two assumed secrets differ: shape (|S|,), or (|S|, k) for k axes.
    order:
        λ ≥ 1; 1 stands for its limit, the Kullback-Leibler divergence.

    Raises
    ------
    ProblemError
        On a Δ of another shape, and where the loss has no bound.

    Examples
    --------
    >>> alone = om.traces.GaussianPrior([0], om.traces.rbf(1.0))
    >>> om.traces.loss_terms(alone, 2.0, secrets=[0], difference=[1], order=2).direct  # λ/2 · 1/2
    0.5
    """
    steps, power = secret_steps(trace, secrets), renyi_order(order)
    variance = positive(noise_variance, "noise_variance")
    moved = finite_array(difference, where="difference").ravel()
    size = len(steps) * trace.dimensions
    if len(moved) != size:
        raise ProblemError(
            f"{len(moved)} numbers for {size} secret coordinates",
            where="difference",
            remedy="Give one for every secret time and axis",
        )
    whole = information(trace, noise_matrix(trace, variance), steps).mid
    effective = whole - np.eye(size) / variance
    inferred, direct = float(moved @ effective @ moved), float(moved @ moved) / variance
    return LossTerms(effective, power / 2 * inferred, power / 2 * direct)
