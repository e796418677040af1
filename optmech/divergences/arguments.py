"""What divergences take: two distributions over one set."""

from __future__ import annotations

import math

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.checked import distribution
from optmech.spaces.prior import Distribution, weights_of


def both(p: Distribution, q: Distribution) -> tuple[Floats, Floats]:
    """The two as arrays of one shape (m,), divided by their sums; see ``given``."""
    first, second = given(p, q)
    return first / math.fsum(first.tolist()), second / math.fsum(second.tolist())


def given(p: Distribution, q: Distribution) -> tuple[Floats, Floats]:
    """The two as arrays of one shape (m,), as they are; raises ProblemError on NaN, a negative
    entry, a sum that is not 1 (within 1e-9), or different lengths."""
    first, second = distribution(weights_of(p), "p"), distribution(weights_of(q), "q")
    if first.shape != second.shape:
        raise ProblemError(
            f"has {second.size} entries, and p has {first.size}",
            where="q",
            remedy="Give distributions over the same set",
        )
    return first, second
