"""Matrices that depend on one parameter, enclosed by polynomials with a rigorous remainder.

A model of degree p on |δ| ≤ w is a list of p + 1 matrices of balls, and stands for every matrix
function F with F(δ) in Σ_k A_k δᵏ there. The last matrix takes up what is cut off. Interval
matrices alone would lose how their entries move together, and with it every inverse of a smooth
kernel's covariance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from typing import Any

import flint

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.traces.gaussian.balls import Ball, BallMatrix, identity
from optmech.traces.gaussian.kernels import Kernel


@dataclass(frozen=True, eq=False)
class Model:
    """Σ_k coefficients[k] δᵏ for |δ| ≤ width."""

    coefficients: tuple[BallMatrix, ...]
    width: Ball

    @property
    def degree(self) -> int:
        """p."""
        return len(self.coefficients) - 1

    def map(self, change: Callable[[BallMatrix], BallMatrix]) -> Model:
        """A linear change of every coefficient."""
        return Model(tuple(change(a) for a in self.coefficients), self.width)

    def __add__(self, matrix: BallMatrix) -> Model:
        """The model and a matrix that does not depend on δ."""
        first, *others = self.coefficients
        return Model((first + matrix, *others), self.width)

    def __sub__(self, other: Model) -> Model:
        pairs = zip(self.coefficients, other.coefficients, strict=True)
        return Model(tuple(a - b for a, b in pairs), self.width)

    def __mul__(self, other: Model) -> Model:
        p = self.degree
        rows, columns = self.coefficients[0].nrows(), other.coefficients[0].ncols()
        out = [flint.arb_mat(rows, columns) for _ in range(2 * p + 1)]
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(other.coefficients):
                out[i + j] += a * b
        # what is beyond the degree becomes part of the last coefficient
        return Model((*out[:p], Model(tuple(out[p:]), self.width).range()), self.width)

    def range(self) -> BallMatrix:
        """Every matrix that the model takes."""
        span = flint.arb(0, 1) * self.width
        return reduce(lambda total, a: total * span + a, reversed(self.coefficients))

    def inverse(self) -> Model:
        """The inverse, proved to exist on the whole interval.

        With Y the truncated series of the inverse and A Y = I − E, ‖E‖ = e < 1, the inverse is Y +
        Y E(I − E)⁻¹, whose last factor has entries of at most e/(1 − e). Raises ZeroDivisionError
        where it cannot be proved to exist.
        """
        size = self.coefficients[0].nrows()
        first = self.coefficients[0].inv()
        series = [first]
        for k in range(1, self.degree):
            total = flint.arb_mat(size, size)
            for j in range(1, k + 1):
                total += self.coefficients[j] * series[k - j]
            series.append(-1 * (first * total))
        series.append(flint.arb_mat(size, size))
        near = Model(tuple(series), self.width)
        unit = [identity(size), *[flint.arb_mat(size, size)] * self.degree]
        error = _norm((Model(tuple(unit), self.width) - self * near).range())
        if not error < 1:
            raise ZeroDivisionError
        left = error / (1 - error)
        for i, row in enumerate(_row_sums(near.range())):
            for j in range(size):
                series[0][i, j] += flint.arb(0, 1) * (row * left)
        return Model(tuple(series), self.width)


def covariance_model(
    kernel: Callable[[Any], Kernel],
    interval: tuple[float, float],
    times: Floats,
    degree: int,
) -> Model:
    """Covariances of all pairs of times for every length scale of an interval.

    Coefficients below the degree are those of the Taylor series at the middle, and the last is
    the one over the whole interval (Taylor's theorem with Lagrange's remainder).
    """
    low, high = flint.arb(interval[0]), flint.arb(interval[1])
    middle, width = (low + high) / 2, (high - low) / 2
    exact = flint.arb(middle.mid())
    width = width + (middle - exact).abs_upper()
    whole = exact + flint.arb(0, 1) * width
    if not whole > 0:
        # an interval too wide for these digits: no precision, or a narrower piece
        raise ZeroDivisionError
    at_middle, over = _series(kernel, exact, degree), _series(kernel, whole, degree)
    size = len(times)
    out = [flint.arb_mat(size, size) for _ in range(degree + 1)]
    known: dict[Fraction, list[Ball]] = {}
    moments = [Fraction(t) for t in times.tolist()]
    for i in range(size):
        for j in range(i + 1):
            lag = moments[i] - moments[j]
            if lag not in known:
                known[lag] = [*at_middle(lag)[:degree], over(lag)[degree]]
            for matrix, value in zip(out, known[lag], strict=True):
                matrix[i, j] = matrix[j, i] = value
    return Model(tuple(out), width)


def _series(
    kernel: Callable[[Any], Kernel], length: Ball, degree: int
) -> Callable[[Fraction], list[Ball]]:
    """The Taylor coefficients of the kernel in its length scale, by lag."""

    def at(lag: Fraction) -> list[Ball]:
        exact = flint.arb(flint.fmpq(lag.numerator, lag.denominator))
        before, flint.ctx.cap = flint.ctx.cap, degree + 1
        try:
            made = kernel(flint.arb_series([length, 1], degree + 1)).ball(exact)
        except (AttributeError, TypeError, NotImplementedError) as error:
            raise ProblemError(
                "this kernel has no enclosure over an interval of length scales",
                where="kernel",
                remedy="Use rbf, periodic, or matern with smoothness 1/2, 3/2, 5/2, ...",
            ) from error
        finally:
            flint.ctx.cap = before
        if not isinstance(made, flint.arb_series):
            return [made] + [flint.arb(0)] * degree
        return [made[k] for k in range(degree + 1)]

    return at


def _norm(matrix: BallMatrix) -> Ball:
    """An upper bound of the largest row sum of moduli."""
    return reduce(lambda most, row: most.max(row), _row_sums(matrix))


def _row_sums(matrix: BallMatrix) -> list[Ball]:
    """Upper bounds of the sums of moduli."""
    return [sum((x.abs_upper() for x in row), flint.arb(0)) for row in matrix.table()]
