"""Losses of noise."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from optmech.audit.document import fractions, integer, keys, listing, one_of, reals, whole
from optmech.audit.numbers import ONE, ZERO, need


class NoiseLoss(NamedTuple):
    """c(0), ..., c(m), and c(m) + slope j + curvature j² for k = m + j: of a function at most that,
    and at least the same with the two numbers of ``least``."""

    values: list[Fraction]
    slope: Fraction
    curvature: Fraction
    least: tuple[Fraction, Fraction] | None = None

    @property
    def below(self) -> NoiseLoss:
        return self if self.least is None else NoiseLoss(self.values, *self.least)

    @property
    def words(self) -> str:
        ends = [
            f"{float(self.values[-1]):.9g} + {float(a):.9g} j + {float(b):.9g} j²"
            for a, b in (self.least or (ZERO, ZERO), (self.slope, self.curvature))
        ]
        return f"a function, beyond {len(self.values) - 1} between {' and '.join(ends)}"

    @property
    def own_words(self) -> str:
        return "seconds" + ", that the loss is this function" * (self.least is not None)

    def at(self, k: int) -> Fraction:
        j = abs(k) - len(self.values) + 1
        return self.values[abs(k)] if j <= 0 else self.values[-1] + self.far(j)

    def far(self, j: int) -> Fraction:
        return self.slope * j + self.curvature * j * j

    def polynomial(self, start: int) -> tuple[Fraction, Fraction, Fraction]:
        """(a, b, g): c(start + j) = a + b j + g j² for j >= 0, from c at three places beyond m."""
        x, y, z = (self.at(start + j) for j in range(3))
        return x, (4 * y - 3 * x - z) / 2, (z - 2 * y + x) / 2


def read_noise_loss(plain: object) -> NoiseLoss:
    name = plain.get("name") if isinstance(plain, dict) else None
    if name == "absolute" or name == "square":
        keys(plain, "name")
        one = Fraction(name == "absolute"), Fraction(name == "square")
        return NoiseLoss([ZERO], *one)
    if name == "threshold":
        width = whole(keys(plain, "name width")["width"], 9999)
        return NoiseLoss([ZERO] * (width + 1) + [ONE], ZERO, ZERO)
    if name == "function":
        body = keys(plain, "name values most least")
        values = [Fraction(v) for v in reals(body["values"])]
        need(0 < len(values) <= 10_000 and min(values) >= 0, "the loss is no function")
        need(max(values) < 2**60, "the loss is no function")
        most, least = fractions(body["most"], 2), fractions(body["least"], 2)
        need(all(0 <= a <= b < 2**60 for a, b in zip(least, most, strict=True)), "it falls")
        return NoiseLoss(values, most[0], most[1], (least[0], least[1]))
    one_of(name, ("table",), "the loss")
    values = [Fraction(v) for v in reals(keys(plain, "name values")["values"])]
    need(2 <= len(values) <= 10_000 and min(values) >= 0, "the loss is no table")
    need(max(values) < 2**60 and values[-1] >= values[-2], "the loss is no table")
    return NoiseLoss(values, values[-1] - values[-2], ZERO)


def wholes(value: object) -> list[int]:
    return [integer(v, 0) for v in listing(value)]
