"""Losses of pairs of whole numbers: a loss of their norm."""

from __future__ import annotations

import math
from fractions import Fraction

from attrs import frozen

from optmech.errors import ProblemError
from optmech.noise.additive.loss import NAMES, NoiseLoss
from optmech.noise.additive.planar_law import Place, radius, require_norm

_ROOT_BITS = 80


@frozen
class PlanarLoss:
    """c(‖k‖) for an even loss c of one number and the norm "l1", "l2" or "linf". With "l2" c is
    absolute, square or a threshold; roots are enclosed, and sums of losses rounded up."""

    loss: NoiseLoss
    norm: str

    def __attrs_post_init__(self) -> None:
        require_norm(self.norm, "loss_norm")
        if self.norm == "l2" and self.loss.name not in NAMES:
            raise ProblemError(
                "is a loss of whole numbers, which l2 norms are not",
                where="loss",
                remedy="Give absolute, square or threshold, or the norm l1 or linf",
            )

    @property
    def words(self) -> str:
        """The loss in words."""
        size = {"l1": "‖noise‖₁", "l2": "‖noise‖₂", "linf": "‖noise‖∞"}[self.norm]
        if self.loss.name == "threshold":
            return f"probability of {size} above {self.loss.last - 1}"
        named = {"absolute": f"expected {size}", "square": f"expected {size}²"}
        return named.get(
            self.loss.name, f"expected loss of {self.loss.described}".replace("|noise|", size)
        )

    def bounds(self, place: Place) -> tuple[Fraction, Fraction]:
        """The loss of a place, from below and above; equal but for l2 norms and functions."""
        size = radius(self.norm, *place)
        if self.norm != "l2":
            return self.loss.minorant(size), self.loss(size)
        return self._of_square(size)

    def _of_square(self, size: int) -> tuple[Fraction, Fraction]:
        if self.loss.name == "square":
            return Fraction(size), Fraction(size)
        if self.loss.name == "threshold":
            value = Fraction(size > (self.loss.last - 1) ** 2)
            return value, value
        root = math.isqrt(size << (2 * _ROOT_BITS))
        exact = root * root == size << (2 * _ROOT_BITS)
        unit = 1 << _ROOT_BITS
        return Fraction(root, unit), Fraction(root + (not exact), unit)

    def least_beyond(self, shape: str, m: int) -> Fraction:
        """At most the loss of every place of radius m or more."""
        if self.norm == "l2":
            # ‖k‖₂ is at least ‖k‖∞, and ‖k‖₁/√2
            return self._of_square(m * m if shape == "linf" else -(-m * m // 2))[0]
        start = -(-m // 2) if (shape, self.norm) == ("l1", "linf") else m
        if start >= self.loss.last:
            return self.loss.minorant(start)
        return min(self.loss.values[start:])

    def beyond(self, shape: str, start: int) -> tuple[Fraction, Fraction, Fraction]:
        """(α, β, γ) with α + βj + γj² at least the loss of every place of radius ``start`` + j.

        Raises ProblemError where places of that radius lie within a table.
        """
        least = -(-start // 2) if (shape, self.norm) == ("l1", "linf") else start
        if least < self.loss.last + 1:
            raise ProblemError("the window ends within the table of the loss", where="law")
        grown = Fraction(1)
        if shape == "linf":
            grown = {"l1": Fraction(2), "linf": Fraction(1), "l2": Fraction(3, 2)}[self.norm]
        a, b, g = self.loss.polynomial(self.loss.last)
        # c(last + t) with t = grown (start + j) - last
        at = grown * start - self.loss.last
        return a + b * at + g * at * at, grown * (b + 2 * g * at), g * grown**2
