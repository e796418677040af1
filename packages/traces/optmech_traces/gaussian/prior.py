"""Gaussian priors of a trace, and what a release tells of the secret positions: M = Bᵀ(N + C)⁻¹B,
enclosed (Meehan and Chaudhuri 2019, eq. 3).

Given secret positions s, the release is Gaussian with mean B s and covariance N + C, where
B = [I; Σ_us Σ_ss⁻¹] and C = diag(0, Σ_{u|s}). The Rényi loss of order λ between s and s + Δ is
(λ/2) Δᵀ M Δ, for every noise covariance N.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import flint
import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array, square_array
from optmech.base.read_only import locked, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import whole
from optmech.spaces.arguments import kind
from optmech_traces.gaussian.balls import (
    BallMatrix,
    Enclosure,
    at_first_precision,
    enclose,
    is_definite,
    of_floats,
    part,
)
from optmech_traces.gaussian.kernels import Kernel, as_kernel, enclosed_covariance, symmetric


@kind("Make one with om.traces.GaussianPrior(times, kernel)")
@record
class GaussianPrior(Shown):
    """How the positions of a trace depend on each other: a Gaussian process at given times.

    Only conditional distributions of some positions given others are used, so the marginal prior
    need not be Gaussian (Meehan and Chaudhuri 2019, section 2). Coordinates are ordered by time,
    and by axis within a time: coordinate t·k + a is axis a at time t.

    Parameters
    ----------
    times:
        Strictly increasing, shape (d,).
    kernel:
        From ``om.traces``; or a scikit-learn kernel, or a function of two times.
    dimensions:
        Spatial axes k, independent of each other unless ``cross`` is given.
    cross:
        Covariance between the axes, shape (k, k), times which the kernel is taken.

    Raises
    ------
    ProblemError
        On times that are not increasing, and covariances that are not positive definite.

    Examples
    --------
    >>> trace = om.traces.GaussianPrior([0, 1, 2], om.traces.rbf(1.0), dimensions=2)
    >>> trace.dimensions, trace.independent_axes
    (2, True)
    >>> trace.sample(seed=1).shape
    (3, 2)
    >>> same = om.traces.GaussianPrior.from_covariance([[1.0, 0.5], [0.5, 1.0]])
    >>> print(len(same), same.balls()[0, 1])
    2 0.500000000000000
    """

    times: Floats
    kernel: Kernel
    cross: Floats
    covariance: Floats
    """The covariance of all coordinates, shape (d·k, d·k), rounded to float64."""

    def __init__(
        self,
        times: ArrayLike,
        kernel: object,
        dimensions: int = 1,
        *,
        cross: ArrayLike | None = None,
    ) -> None:
        moments = increasing(times)
        own = as_kernel(kernel)
        axes = locked(np.eye(whole(dimensions, "dimensions", least=1)))
        if cross is not None:
            axes = finite_array(cross, where="cross", ndim=2)
            if axes.shape[0] != axes.shape[1] or dimensions not in (1, len(axes)):
                raise ProblemError(
                    f"shape {axes.shape} does not fit {dimensions} axes",
                    where="cross",
                    remedy="Give a covariance between the axes, shape (k, k)",
                )
            axes = symmetric(axes, where="cross")
            _require_definite(axes, "cross")
        values = own.covariance(moments)
        if not np.isfinite(values).all():
            raise ProblemError("overflows", where="kernel", remedy="Use a smaller variance")
        if not own.exact:
            _require_definite(values, "kernel")
        covariance = np.kron(values, axes)
        vars(self).update(times=moments, kernel=own, cross=axes, covariance=locked(covariance))

    @classmethod
    def from_covariance(
        cls, covariance: ArrayLike, times: ArrayLike | None = None, dimensions: int = 1
    ) -> GaussianPrior:
        """The prior with this covariance of the positions on an axis, shape (d, d), taken exactly.

        ``times`` are 0, 1, …, d − 1 unless given.
        """
        values = finite_array(covariance, where="covariance", ndim=2)
        values = symmetric(square_array(values, "covariance"), where="covariance")
        moments = np.arange(len(values), dtype=float) if times is None else times
        return cls(moments, lambda s, t: values, dimensions)

    def __len__(self) -> int:
        """The number of times."""
        return len(self.times)

    @property
    def dimensions(self) -> int:
        """The number of spatial axes, k."""
        return len(self.cross)

    @property
    def independent_axes(self) -> bool:
        """Whether no axis says anything of another."""
        return not np.any(self.cross - np.diag(np.diag(self.cross)))

    def balls(self) -> BallMatrix:
        """Enclosures of the covariance over time, shape (d, d), at the current precision."""
        return enclosed_covariance(self.kernel, self.times)

    def sample(self, seed: int | None = None) -> Floats:
        """A path with mean zero, shape (d,), or (d, k) for several axes."""
        rng, mean = np.random.default_rng(seed), np.zeros(len(self.covariance))
        # smooth kernels are indefinite by rounding
        path = rng.multivariate_normal(mean, self.covariance, method="eigh", check_valid="ignore")
        return path if self.dimensions == 1 else path.reshape(len(self), -1)


def increasing(times: ArrayLike) -> Floats:
    """Times as floats; refuses empty, repeated and unsorted ones."""
    moments = finite_array(times, where="times", ndim=1, observations=True)
    if not len(moments):
        raise ProblemError("there are none", where="times", remedy="Give at least one")
    steps = np.diff(moments)
    if len(steps) and steps.min() <= 0:
        k = int(np.flatnonzero(steps <= 0)[0]) + 1
        what = "repeats" if moments[k] == moments[k - 1] else "is before"
        raise ProblemError(
            f"{what} the time that precedes it",
            where=f"times[{k}]",
            remedy="Sort the times, and keep one position for each",
        )
    return moments


def secret_steps(trace: GaussianPrior, secrets: Iterable[int], *, where: str = "secrets") -> Ints:
    """Indices of the secret times, in the order given; refuses what is not among the times."""
    try:
        listed = list(secrets)
    except TypeError:
        raise ProblemError(
            f"{secrets!r} is not a list of indices", where=where, remedy="Give [0, 2, ...]"
        ) from None
    if not listed:
        raise ProblemError("is empty", where=where, remedy="Name at least one position")
    for k, index in enumerate(listed):
        if not 0 <= whole(index, f"{where}[{k}]", least=None) < len(trace):
            raise ProblemError(
                f"{index} is not the index of one of the {len(trace)} times",
                where=f"{where}[{k}]",
                remedy=f"Use 0 to {len(trace) - 1}",
            )
        if index in listed[:k]:
            raise ProblemError(f"{index} occurs twice", where=f"{where}[{k}]")
    return np.array(listed, dtype=np.int64)


def _require_definite(values: Floats, where: str) -> None:
    if not is_definite(values):
        least = float(np.linalg.eigvalsh(values)[0])
        raise ProblemError(
            "as a float64 matrix the covariance is singular or not positive definite "
            f"(least eigenvalue about {least:.3g})",
            where=where,
            remedy="Use a kernel of om.traces, which is not rounded, add white(variance), or "
            "thin out the times",
        )


def read_sets(trace: GaussianPrior, secret_sets: Sequence[Iterable[int]]) -> list[Ints]:
    """The indices of every set, from one or several."""
    try:
        listed = list(secret_sets)
    except TypeError:
        raise ProblemError(f"{secret_sets!r} is not a list of sets", where="secret_sets") from None
    if not listed:
        raise ProblemError("is empty", where="secret_sets", remedy="Give at least one set")
    if all(isinstance(s, int | np.integer) for s in listed):
        return [secret_steps(trace, listed, where="secret_sets")]  # type: ignore[arg-type]
    return [secret_steps(trace, s, where=f"secret_sets[{k}]") for k, s in enumerate(listed)]


def read_priors(trace: GaussianPrior, also: Sequence[GaussianPrior]) -> list[GaussianPrior]:
    """All priors that the promise is for."""
    for k, prior in enumerate(also):
        if prior.dimensions != trace.dimensions or not np.array_equal(prior.times, trace.times):
            raise ProblemError(
                "has other times or axes",
                where=f"also[{k}]",
                remedy="Give priors at the same times",
            )
    return [trace, *also]


def read_query(trace: GaussianPrior, query: ArrayLike | None) -> Floats:
    """L, shape (q, d·k): the identity, the roots of weights, or as given."""
    size = len(trace.covariance)
    if query is None:
        return np.eye(size)
    values = finite_array(query, where="query")
    if values.shape == (size,):
        if values.min() < 0:
            raise ProblemError("weights must be >= 0", where="query", remedy="Correct them")
        values = np.diag(np.sqrt(values))
    if values.ndim != 2 or values.shape[1] != size or not values.any():
        raise ProblemError(
            f"shape {values.shape} does not fit {size} coordinates",
            where="query",
            remedy=f"Give weights ({size},) or a matrix (q, {size}), not all zero",
        )
    return values


@record
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
        k, size = len(self.axes), len(self.trace) * len(self.axes)
        cross = of_floats(self.trace.cross[np.ix_(self.axes, self.axes)])
        entries = [
            over_time[i // k, j // k] * cross[i % k, j % k]
            for i in range(size)
            for j in range(size)
        ]
        return flint.arb_mat(size, size, entries)


def noise_matrix(trace: GaussianPrior, noise_covariance: ArrayLike) -> Floats:
    """The covariance of the noise on all coordinates, shape (d·k, d·k).

    A number is the variance of every coordinate; shape (d,) are variances by time; shape (d, d) is
    a covariance over time, the same and independent on every axis. Raises ProblemError on another
    shape, and on what is not symmetric and positive definite. Coordinates without any noise are
    allowed: their row is zero.
    """
    values = finite_array(noise_covariance, where="noise_covariance")
    d, k = len(trace), trace.dimensions
    if values.shape in ((), (d,)):
        values = np.diag(np.repeat(np.broadcast_to(values, d), k))
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
