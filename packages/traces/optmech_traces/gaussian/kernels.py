"""Kernels: the covariance of a position at two times, as floats and as rigorous enclosures.

Smooth kernels make covariance matrices that no float64 matrix stands for: rounding alone leaves
them indefinite. The kernels here are therefore also evaluated in ball arithmetic of any precision.
Callables and scikit-learn kernels are taken as the float64 matrices that they return.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import flint
import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, finite_array, largest_entry
from optmech.base.read_only import ReadOnly, locked
from optmech.errors import ProblemError
from optmech.exact.arguments import positive
from optmech.exact.exponentials import ball_of
from optmech.spaces.arguments import checked_arguments
from optmech_traces.gaussian.balls import Ball, BallMatrix, of_floats

Parameter = Any
"""A float; or a power series of balls, where a length scale varies (``covariance_model``)."""


class Kernel(ABC):
    """A covariance function of time; kernels can be added and multiplied.

    Examples
    --------
    >>> kernel = om.traces.rbf(2.0) + om.traces.white(0.5)
    >>> print(kernel.covariance(np.array([0.0, 2.0])).round(4))  # exp(-1/2) beside 1 + 0.5
    [[1.5    0.6065]
     [0.6065 1.5   ]]
    >>> from flint import arb
    >>> print(kernel.ball(arb(2)))
    [0.606530659712633 +/- 4.26e-16]
    """

    @property
    def exact(self) -> bool:
        """Whether ``ball`` encloses the kernel itself, and not a rounded matrix."""
        return True

    @abstractmethod
    def covariance(self, times: Floats) -> Floats:
        """Covariances of all pairs of times, shape (d, d), in squared units of position."""

    @abstractmethod
    def ball(self, lag: Ball) -> Ball:
        """The covariance over an exact non-negative lag, at the current precision."""

    def __add__(self, other: Kernel) -> Kernel:
        return _Both(operator.add, self, _kernel(other))

    def __mul__(self, other: Kernel | float) -> Kernel:
        return _Both(operator.mul, self, _kernel(other))

    __rmul__ = __mul__


class Stationary(Kernel):
    """A kernel of the lag alone."""

    def covariance(self, times: Floats) -> Floats:
        return np.asarray(self.at(np.abs(times[:, None] - times[None, :])))

    def ball(self, lag: Ball) -> Ball:
        return self.at(lag)

    @abstractmethod
    def at(self, lag: Any) -> Any:
        """The covariance over an array of lags >= 0, or over a ball."""


@dataclass(frozen=True)
class _Rbf(Stationary):
    length_scale: Parameter
    variance: Parameter

    def at(self, lag: Any) -> Any:
        return self.variance * _exp(-((lag / self.length_scale) ** 2) / 2)


@dataclass(frozen=True)
class _Periodic(Stationary):
    length_scale: Parameter
    period: Parameter
    variance: Parameter

    def at(self, lag: Any) -> Any:
        turns = lag / self.period
        wave = np.sin(np.pi * turns) if isinstance(lag, np.ndarray) else turns.sin_pi()
        return self.variance * _exp(-2 * (wave / self.length_scale) ** 2)


@dataclass(frozen=True)
class _Matern(Stationary):
    length_scale: Parameter
    smoothness: float
    variance: Parameter

    def at(self, lag: Any) -> Any:
        plain = isinstance(lag, np.ndarray)
        nu: Any = self.smoothness if plain else flint.arb(self.smoothness)
        z = (2 * nu) ** 0.5 * lag / self.length_scale
        p, f = int(self.smoothness), math.factorial
        if self.smoothness - p == 0.5 and p <= 20:
            # a polynomial in 2 z, its highest power first
            total = 0
            for i in range(p + 1):
                c = Fraction(f(p) * f(p + i), f(2 * p) * f(i) * f(p - i))
                total = total * (2 * z) + (float(c) if plain else ball_of(c))
            return self.variance * _exp(-z) * total
        if plain:
            from scipy.special import gamma, kv

            with np.errstate(invalid="ignore", over="ignore"):
                values = 2 ** (1 - nu) / gamma(nu) * z**nu * kv(nu, z)
            return self.variance * np.where(z > 0, values, 1.0)
        if lag == 0:
            return flint.arb(self.variance)
        return self.variance * 2 ** (1 - nu) * nu.rgamma() * z**nu * z.bessel_k(nu)


@dataclass(frozen=True)
class _Flat(Stationary):
    """A variance that is the same everywhere, or at lag 0 only."""

    variance: Parameter
    everywhere: bool

    def at(self, lag: Any) -> Any:
        if isinstance(lag, np.ndarray):
            return np.where(self.everywhere | (lag == 0), float(self.variance), 0.0)
        return flint.arb(self.variance if self.everywhere or lag == 0 else 0)


@dataclass(frozen=True)
class _Both(Kernel):
    """The sum or the product of two kernels."""

    joined: Callable[[Any, Any], Any]
    left: Kernel
    right: Kernel

    @property
    def exact(self) -> bool:
        return self.left.exact and self.right.exact

    def covariance(self, times: Floats) -> Floats:
        return np.asarray(self.joined(self.left.covariance(times), self.right.covariance(times)))

    def ball(self, lag: Ball) -> Ball:
        return self.joined(self.left.ball(lag), self.right.ball(lag))


@dataclass(frozen=True)
class _Function(ReadOnly, Kernel):
    """A kernel that is known by the matrices that it returns."""

    function: Callable[[NDArray[np.float64]], object]

    @property
    def exact(self) -> bool:
        return False

    def covariance(self, times: Floats) -> Floats:
        values = finite_array(self.function(times), where="kernel", ndim=2)  # type: ignore[arg-type]
        if values.shape != (len(times), len(times)):
            raise ProblemError(
                f"the kernel returned shape {values.shape} for {len(times)} times",
                where="kernel",
                remedy="Return the covariances of all pairs of times",
            )
        return symmetric(values, where="kernel")

    def ball(self, lag: Ball) -> Ball:
        raise NotImplementedError("a kernel known by its matrices has no enclosure")


def rbf(length_scale: float, variance: float = 1.0) -> Kernel:
    """variance · exp(−lag²/(2 length_scale²)): smooth paths (Meehan and Chaudhuri 2019, section
    3.2).

    ``length_scale`` has the unit of the times, ``variance`` squared units of position.

    Examples
    --------
    >>> kernel = om.traces.rbf(1.0, variance=4.0)
    >>> print(kernel.covariance(np.array([0.0, 1.0])).round(4))  # 4 e^(-1/2)
    [[4.     2.4261]
     [2.4261 4.    ]]
    """
    return _Rbf(_positive(length_scale, "length_scale"), _positive(variance, "variance"))


def ornstein_uhlenbeck(length_scale: float, variance: float = 1.0) -> Kernel:
    """variance · exp(−lag/length_scale): the Markovian kernel, Matérn with smoothness 1/2.

    Examples
    --------
    >>> print(om.traces.ornstein_uhlenbeck(1.0).covariance(np.array([0.0, 1.0])).round(4))  # e^-1
    [[1.     0.3679]
     [0.3679 1.    ]]
    """
    return matern(length_scale, 0.5, variance)


def matern(length_scale: float, smoothness: float = 1.5, variance: float = 1.0) -> Kernel:
    """The Matérn kernel (Rasmussen and Williams, 4.14); paths have ⌈smoothness⌉ − 1 derivatives.

    Examples
    --------
    >>> kernel = om.traces.matern(1.0, smoothness=0.5)
    >>> print(kernel.covariance(np.array([0.0, 1.0])).round(4))  # e^-1
    [[1.     0.3679]
     [0.3679 1.    ]]
    """
    nu = _positive(smoothness, "smoothness")
    if nu > 100:
        raise ProblemError(
            f"{nu:g} is too large", where="smoothness", remedy="Use rbf, its limit at infinity"
        )
    length = _positive(length_scale, "length_scale")
    return _Matern(length, float(nu), _positive(variance, "variance"))


def periodic(length_scale: float, period: float, variance: float = 1.0) -> Kernel:
    """variance · exp(−2 sin²(π lag/period)/length_scale²): paths that repeat themselves.

    ``length_scale`` has no unit here; ``period`` has the unit of the times.

    Examples
    --------
    >>> daily = om.traces.periodic(1.0, period=24.0)
    >>> print(daily.covariance(np.array([0.0, 12.0, 24.0])).round(4)[0])  # e^-2 after half a day
    [1.     0.1353 1.    ]
    """
    return _Periodic(
        _positive(length_scale, "length_scale"),
        _positive(period, "period"),
        _positive(variance, "variance"),
    )


def white(variance: float) -> Kernel:
    """Independent positions: ``variance`` at lag 0 and nothing elsewhere.

    Examples
    --------
    >>> print(om.traces.white(2.0).covariance(np.array([0.0, 1.0])))
    [[2. 0.]
     [0. 2.]]
    """
    return _Flat(_positive(variance, "variance"), everywhere=False)


def constant(variance: float) -> Kernel:
    """One unknown position for all times; a factor in products.

    Examples
    --------
    >>> print(om.traces.constant(4.0).covariance(np.array([0.0, 9.0])))
    [[4. 4.]
     [4. 4.]]
    """
    return _Flat(_positive(variance, "variance"), everywhere=True)


@checked_arguments
def custom(function: Callable[[Floats, Floats], object]) -> Kernel:
    """A kernel given as ``function(s, t)``, called once with a column (d, 1) and a row (1, d) of
    times. The float64 matrix that it returns is taken as the covariance, exactly; it must be
    positive definite as it is.

    Examples
    --------
    >>> kernel = om.traces.custom(lambda s, t: np.exp(-abs(s - t)))
    >>> print(om.traces.GaussianPrior([0, 1], kernel).dimensions)
    1
    """
    return _Function(lambda times: function(times[:, None], times[None, :]))


def as_kernel(value: object) -> Kernel:
    """A kernel from what users hand over: one of ours, scikit-learn's, or a function."""
    if isinstance(value, Kernel):
        return value
    if hasattr(value, "is_stationary") and callable(value):
        return _Function(lambda times: value(times[:, None]))
    if not callable(value):
        raise ProblemError(
            f"{type(value).__name__} is not a kernel",
            where="kernel",
            remedy="Use om.traces.rbf(...) or another kernel, or a function of two times",
        )
    return custom(value)


def enclosed_covariance(kernel: Kernel, times: Floats) -> BallMatrix:
    """Enclosures of the covariances of all pairs of times, at the current precision."""
    if not kernel.exact:
        return of_floats(kernel.covariance(times))
    moments = [flint.arb(t) for t in times.tolist()]
    out = flint.arb_mat(len(moments), len(moments))
    for i, late in enumerate(moments):
        for j in range(i + 1):
            out[i, j] = out[j, i] = kernel.ball(late - moments[j])
    return out


def symmetric(values: Floats, *, where: str) -> Floats:
    """The mean of a square matrix and its transpose; refuses what is not symmetric but for
    rounding."""
    off = np.abs(values - values.T)
    if off.max() > 1e-10 * np.abs(values).max():
        i, j = largest_entry(off)
        raise ProblemError(
            f"is not symmetric: {values[i, j]:g} at [{i}, {j}] and {values[j, i]:g} at [{j}, {i}]",
            where=where,
            remedy="Give a covariance matrix",
        )
    # halves first: sums of the largest floats are none; but half of the least float is none either
    out = np.where(values == values.T, values, values / 2 + values.T / 2)
    return locked(out)


def _kernel(value: object) -> Kernel:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return constant(value)
    return as_kernel(value)


def _positive(value: Parameter, where: str) -> Parameter:
    return value if isinstance(value, flint.arb_series) else positive(value, where)


def _exp(value: Any) -> Any:
    return np.exp(value) if isinstance(value, np.ndarray) else value.exp()
