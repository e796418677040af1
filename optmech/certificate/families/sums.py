"""What families over two pushed distributions λP and λ'P share: rows ``left`` and ``right`` (m, S),
which are meant divided by their sums, and a rate ε with a scale for every pair."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.certificate.lagrangian import UNIT
from optmech.exact.exponentials import exp_range
from optmech.exact.number import Exact
from optmech.statement import locked


def factors(
    left: Floats | sp.csr_array, right: Floats | sp.csr_array, epsilon: Exact, scale: Floats
) -> tuple[Floats, Floats]:
    """Floats at most e^{ε scale}, and at least e^{ε scale} Σa / Σb, shape (m,): what
    (aP)/Σa <= e^r (bP)/Σb needs in a check, and in a bound."""
    low, high = exp_range(epsilon, scale)
    first, second = (np.asarray(side.sum(axis=1)).reshape(-1) for side in (left, right))
    above = high * (first / second) * (1 + (2 * left.shape[1] + 16) * UNIT)
    return locked(low), locked(np.asarray(above))


def weighed(sides: Sequence[Floats | sp.csr_array]) -> Floats:
    """Total weight of every secret, shape (S,)."""
    return np.asarray(sum(np.asarray(side.sum(axis=0)).ravel() for side in sides))
