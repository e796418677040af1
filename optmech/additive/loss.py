"""Losses of noise on the integers: even functions, known on all of ℤ.

A loss is given by its values c(0), …, c(m) and goes on as c(m) + a (k - m) + b (k - m)² from there,
a, b >= 0. So tails of infinitely many terms have sums in closed form, and a bound on all noise can
be proved beyond any window.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np
from attrs import frozen

from optmech.base.arrays import Floats, finite_array
from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.checked import whole

MOST_VALUES = 10_000
"""Values of a table."""
LARGEST = 2**60
"""Values are below this."""
NAMES = ("absolute", "square", "threshold")
LossLike = str | Callable[[int], float] | Sequence[float]


@frozen
class NoiseLoss(ReadOnly):
    """An even loss of noise k on the integers.

    ``values`` are c(0), …, c(m), all >= 0; for k > m the loss is
    c(m) + ``slope`` (k - m) + ``curvature`` (k - m)². ``name`` is what it was called.
    """

    name: str
    values: tuple[Fraction, ...]
    slope: Fraction
    curvature: Fraction

    @classmethod
    def of(cls, loss: LossLike, width: int | None = None, reach: int = 64) -> NoiseLoss:
        """A loss from its name, a table or a function.

        "absolute" is |k|, "square" k², "threshold" 1 where |k| > ``width`` and 0 elsewhere. A table
        has c(0), c(1), …, and goes on with its last step; a function is tabulated for
        0 <= k <= ``reach``. Raises ProblemError for anything else, for values that are negative or
        not finite, and for a last step downwards.
        """
        if (loss == "threshold") != (width is not None):
            raise ProblemError(
                "goes with the loss 'threshold', and is needed there",
                where="width",
                remedy="Give the largest noise that costs nothing, with loss='threshold'",
            )
        if isinstance(loss, str):
            return cls._named(loss, width)
        if callable(loss):
            reach = whole(reach, "reach", 1, MOST_VALUES - 1)
            return cls._table("function", _tabulated(loss, reach))
        table = finite_array(loss, where="loss", ndim=1)
        return cls._table("table", [Fraction(value) for value in table.tolist()])

    @classmethod
    def _named(cls, name: str, width: int | None) -> NoiseLoss:
        zero, one = Fraction(0), Fraction(1)
        if name == "absolute":
            return cls(name, (zero,), one, zero)
        if name == "square":
            return cls(name, (zero,), zero, one)
        if name == "threshold":
            zeros = whole(width, "width", 0, MOST_VALUES - 2) + 1
            return cls(name, (zero,) * zeros + (one,), zero, zero)
        raise ProblemError(
            f"{name[:60]!r} is no loss of noise",
            where="loss",
            remedy=f"Give one of {', '.join(NAMES)}, a table or a function",
        )

    @classmethod
    def _table(cls, name: str, values: Sequence[Fraction]) -> NoiseLoss:
        if not 2 <= len(values) <= MOST_VALUES:
            raise ProblemError(
                f"has {len(values)} values",
                where="loss",
                remedy=f"Give 2 to {MOST_VALUES:,} values: c(0), c(1), …",
            )
        if min(values) < 0 or max(values) >= LARGEST:
            raise ProblemError("has values below 0 or above 2^60", where="loss")
        if values[-1] < values[-2]:
            raise ProblemError(
                "falls at its end, and so would become negative",
                where="loss",
                remedy="End it with a step of 0 or upwards, with which it goes on",
            )
        return cls(name, tuple(values), values[-1] - values[-2], Fraction(0))

    def __call__(self, k: int) -> Fraction:
        """c(k), exactly."""
        beyond = abs(k) - self.last
        if beyond <= 0:
            return self.values[abs(k)]
        return self.values[-1] + self.slope * beyond + self.curvature * beyond**2

    @property
    def last(self) -> int:
        """m: from here on the loss is a polynomial that does not fall."""
        return len(self.values) - 1

    @cached_property
    def _floats(self) -> Floats:
        return np.array([float(value) for value in self.values])

    def floats(self, places: Floats) -> Floats:
        """c of whole numbers >= 0, nearly; for searches."""
        beyond = np.maximum(places - self.last, 0)
        start = self._floats[np.minimum(places, self.last).astype(int)]
        return np.asarray(start + float(self.slope) * beyond + float(self.curvature) * beyond**2)

    def polynomial(self, start: int) -> tuple[Fraction, Fraction, Fraction]:
        """(α, β, γ) with c(start + j) = α + β j + γ j² for j >= 0; start >= m."""
        at = start - self.last
        slope = self.slope + 2 * self.curvature * at
        return self(start), slope, self.curvature

    @property
    def words(self) -> str:
        """The loss in words."""
        if self.name == "threshold":
            return f"probability of noise beyond ±{self.last - 1}"
        return {"absolute": "expected |noise|", "square": "expected noise²"}.get(
            self.name, f"expected loss of a {self.name}"
        )

    @property
    def is_bounded(self) -> bool:
        """Whether noise far out costs no more than a constant."""
        return not self.slope and not self.curvature


def _tabulated(loss: Callable[[int], float], reach: int) -> list[Fraction]:
    values = []
    for k in range(reach + 1):
        value = float(finite_array(loss(k), where=f"loss({k})", ndim=0))
        if not math.isfinite(value):
            raise ProblemError(f"is {value}", where=f"loss({k})")
        values.append(Fraction(value))
    return values
