"""What a release tells of the secret positions: M = Bᵀ(N + C)⁻¹B, enclosed (TP19 eq. 3).

Given secret positions s, the release is Gaussian with mean B s and covariance N + C, where
B = [I; Σ_us Σ_ss⁻¹] and C = diag(0, Σ_{u|s}). The Rényi loss of order λ between s and s + Δ is
(λ/2) Δᵀ M Δ, for every noise covariance N.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import flint
import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.errors import ProblemError
from optmech.traces.gaussian.balls import (
    BallMatrix,
    Enclosure,
    at_first_precision,
    enclose,
    is_definite,
    of_floats,
    part,
)
from optmech.traces.gaussian.kernels import symmetric
from optmech.traces.gaussian.prior import GaussianPrior


@dataclass(frozen=True, eq=False)
class Axes:
    """Axes of a trace that say nothing of the others, and how their covariance is made."""

    trace: GaussianPrior
    axes: tuple[int, ...]

    @property
    def coordinates(self) -> Ints:
        """Their coordinates among those of the trace."""
        return self.of_steps(np.arange(len(self.trace)))

    def of_steps(self, steps: Ints) -> Ints:
        """The coordinates of some times on these axes."""
        k = self.trace.dimensions
        return np.asarray((steps[:, None] * k + np.array(self.axes)).ravel())

    def covariance(self, over_time: BallMatrix) -> BallMatrix:
        """The prior covariance on these axes, from the one over time."""
        cross = self.trace.cross[np.ix_(self.axes, self.axes)]
        if len(self.axes) == 1:
            return over_time * flint.arb(float(cross[0, 0]))
        k, size = len(self.axes), len(self.trace) * len(self.axes)
        exact = of_floats(cross)
        out = flint.arb_mat(size, size)
        for i in range(size):
            for j in range(size):
                out[i, j] = over_time[i // k, j // k] * exact[i % k, j % k]
        return out


def noise_matrix(trace: GaussianPrior, noise_covariance: ArrayLike) -> Floats:
    """The covariance of the noise on all coordinates, shape (d·k, d·k).

    A number is the variance of every coordinate; shape (d,) are variances by time; shape (d, d) is
    a covariance over time, the same and independent on every axis. Raises ProblemError on another
    shape, and on what is not symmetric and positive definite. Coordinates without any noise are
    allowed: their row is zero.
    """
    values = finite_array(noise_covariance, where="noise_covariance")
    d, k = len(trace), trace.dimensions
    if values.ndim == 0:
        values = np.diag(np.full(d * k, float(values)))
    elif values.shape == (d,):
        values = np.diag(np.repeat(values, k))
    elif values.shape == (d, d):
        values = np.kron(values, np.eye(k)).astype(np.float64)
    if values.shape != (d * k, d * k):
        raise ProblemError(
            f"shape {values.shape} does not fit {d} times and {k} axes",
            where="noise_covariance",
            remedy=f"Give a variance, {d} variances, or a matrix of shape ({d}, {d})"
            + (f" or ({d * k}, {d * k})" if k > 1 else ""),
        )
    values = symmetric(values, where="noise_covariance") if values.any() else values
    noisy = np.flatnonzero(np.abs(values).any(axis=1))
    inner = values[np.ix_(noisy, noisy)]
    if len(noisy) and not is_definite(inner):
        least = float(np.linalg.eigvalsh(inner)[0])
        raise ProblemError(
            f"is not positive definite (least eigenvalue about {least:.3g}): some mixture of "
            "positions would be released without noise",
            where="noise_covariance",
            remedy="Add noise to every direction, or none at all to single positions",
        )
    return values


def axis_groups(trace: GaussianPrior, noise: Floats) -> list[Axes]:
    """The axes one by one where neither prior nor noise couples them, else all together."""
    k = trace.dimensions
    axis = np.arange(len(trace) * k) % k
    if trace.independent_axes and not noise[axis[:, None] != axis].any():
        return [Axes(trace, (a,)) for a in range(k)]
    return [Axes(trace, tuple(range(k)))]


def conditional(sigma: BallMatrix, secrets: Ints) -> tuple[BallMatrix, BallMatrix]:
    """B, shape (n, m), and C, shape (n, n), of the coordinates ``secrets``. Raises
    ZeroDivisionError where Σ_ss is not proved to be regular at this precision."""
    chosen = secrets.tolist()
    ahead = part(sigma, range(sigma.nrows()), chosen)
    mean = part(sigma, chosen, chosen).solve(ahead.transpose()).transpose()
    rest = sigma - mean * ahead.transpose()
    pin(mean, rest, chosen)
    return mean, rest


def pin(mean: BallMatrix, rest: BallMatrix, secrets: Sequence[int], one: int = 1) -> None:
    """Write into B and C what is known of the secrets: ``one`` times the identity, and zeros."""
    for column, s in enumerate(secrets):
        for other in range(len(secrets)):
            mean[s, other] = flint.arb(one * int(other == column))
        for other in range(rest.nrows()):
            rest[s, other] = rest[other, s] = flint.arb(0)


def information(trace: GaussianPrior, noise: Floats, steps: Ints) -> Enclosure:
    """M on the coordinates of the secret times, shape (m, m), as narrow as floats allow.

    Entries between independent axes are exactly zero. Raises ProblemError where the secret
    positions determine each other, or are released without noise.
    """
    groups = axis_groups(trace, noise)

    def attempt() -> Enclosure | None:
        over_time = trace.balls()
        blocks = []
        for group in groups:
            own = group.coordinates
            secrets = np.searchsorted(own, group.of_steps(steps))
            mean, rest = conditional(group.covariance(over_time), secrets)
            released = of_floats(noise[np.ix_(own, own)]) + rest
            blocks.append(mean.transpose() * released.solve(mean))
        return assembled(groups, blocks, len(steps))

    found = at_first_precision(attempt)
    if found is None:
        raise ProblemError(
            "the secret positions determine each other, or some of them can be read off the "
            "release without noise: the loss has no bound",
            where="secrets",
            remedy="Use fewer secrets, a kernel that is not singular on them, or noise everywhere",
        )
    return found


def assembled(
    groups: Sequence[Axes], blocks: Iterable[BallMatrix], secrets: int
) -> Enclosure | None:
    """One enclosure of the matrices of all groups of axes; None unless all are narrow."""
    size = secrets * groups[0].trace.dimensions
    whole = Enclosure(np.zeros((size, size)), np.zeros((size, size)))
    for group, block in zip(groups, map(enclose, blocks), strict=True):
        if block is None or not block.narrow:
            return None
        places = np.ix_(*2 * (group.of_steps(np.arange(secrets)),))
        whole.mid[places], whole.rad[places] = block.mid, block.rad
    return whole
