"""What families over two pushed distributions λP and λ'P share: rows ``left`` and ``right`` (m, S),
which are meant divided by their sums, and a rate ε with a scale for every pair."""

from __future__ import annotations

from collections.abc import Hashable
from functools import cached_property
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, locked
from optmech.certificate.families.base import Trusted
from optmech.certificate.lagrangian import UNIT
from optmech.exact.exponentials import exp_range
from optmech.exact.number import Exact


class Pushed(ReadOnly, Trusted):
    """What such families have in common, however they store their rows."""

    left: Any
    right: Any
    epsilon: Exact
    scale: Floats

    @cached_property
    def factors(self) -> tuple[Floats, Floats]:
        """Floats at most e^{ε scale}, and at least e^{ε scale} Σa / Σb, shape (m,): what
        (aP)/Σa <= e^r (bP)/Σb needs in a check, and in a bound."""
        low, high = exp_range(self.epsilon, self.scale)
        first, second = (np.asarray(s.sum(axis=1)).reshape(-1) for s in (self.left, self.right))
        above = high * (first / second) * (1 + (2 * self.left.shape[1] + 16) * UNIT)
        return locked(low), locked(np.asarray(above))

    def signature(self) -> Hashable:
        return self.kind, self.left.shape
