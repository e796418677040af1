"""The noise of least variance that keeps a promised loss (beyond TP19)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import flint
import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.shown import Shown
from optmech.errors import ProblemError, VerificationError
from optmech.exact.checked import amount
from optmech.exact.exponentials import bracket
from optmech.exact.number import Number, parse_exact, rounded_up
from optmech.traces.gaussian import sdp
from optmech.traces.gaussian.balls import Enclosure, at_first_precision, enclose
from optmech.traces.gaussian.calibration import promise
from optmech.traces.gaussian.extremes import over_ball
from optmech.traces.gaussian.information import Axes, conditional
from optmech.traces.gaussian.loss import TraceLoss, privacy_loss, renyi_order, scale
from optmech.traces.gaussian.prior import GaussianPrior, secret_steps

Structure = Literal["full", "diagonal", "isotropic"]
_FLOOR = 1e-6
_LEAST = 2.0**-1022
_TOLERANCE = 1e-9
_ROUNDS = 60
_LARGEST_CONE = 24
"""Coordinates beyond which a conic solver takes minutes for a few sets."""


@dataclass(frozen=True, eq=False, repr=False)
class NoiseDesign(Shown):
    """A noise covariance whose loss was proved afterwards, in ball arithmetic."""

    covariance: Floats
    """Shape (d·k, d·k)."""
    trace: float
    """Sum of the variances; with a query or weights, the variance that they see."""
    loss: float
    """The largest proved bound of the loss over the secret sets and priors; at most ε."""
    losses: tuple[TraceLoss, ...]
    """By prior, and by secret set within a prior."""
    lower_bound: float
    """No noise of this structure that keeps the promise has a smaller trace; proved."""
    isotropic: float
    """The trace of the least isotropic noise with the same promise."""
    structure: Structure

    @property
    def gap(self) -> float:
        """How far the trace may be from the least one, relatively."""
        return (self.trace - self.lower_bound) / self.trace

    def sample(self, path: ArrayLike, seed: int | None = None) -> Floats:
        """A release of a path of shape (d,) or (d, k), in the shape of the path.

        Noise is drawn in floating point: the guarantee is that of real Gaussians.
        """
        values = finite_array(path, where="path", observations=True)
        if values.size != len(self.covariance):
            raise ProblemError(
                f"shape {values.shape} does not fit a covariance of {len(self.covariance)}",
                where="path",
            )
        rng = np.random.default_rng(seed)
        root = np.linalg.cholesky(self.covariance)
        return np.asarray(values + (root @ rng.standard_normal(len(root))).reshape(values.shape))


def optimal_noise(
    trace: GaussianPrior,
    epsilon: Number,
    secret_sets: Sequence[Iterable[int]],
    radius: float,
    order: float,
    *,
    also: Sequence[GaussianPrior] = (),
    structure: Structure = "full",
    query: ArrayLike | None = None,
    floor: float | None = None,
    solver: str = "CLARABEL",
) -> NoiseDesign:
    """The Gaussian noise of least total variance with loss ≤ ε for every secret set.

    The loss is the ball bound of TP19 (4). M ≼ κI with κ = 2ε/(λ r² m) holds exactly when
    [[κI, Bᵀ], [B, N + C]] ≽ 0, and that when N ≽ BBᵀ/κ − C: for one set a closed form, for
    several a semidefinite program (docs/theory.md).

    Parameters
    ----------
    secret_sets:
        One set of indices, or several; the promise holds for each of them.
    also:
        Further priors at the same times under which the promise has to hold too, such as other
        length scales.
    structure:
        ``"diagonal"`` is the best independent noise, ``"isotropic"`` the same variance everywhere.
    query:
        What is computed from the release, shape (q, d·k): the variance of its result is minimised;
        or weights of the variances, shape (d·k,). Default: the trace.
    floor:
        Least variance in every direction; default: 10⁻⁶ of the isotropic variance.
    solver:
        A conic solver of cvxpy, for several sets of up to 24 coordinates and for diagonal noise.

    Raises
    ------
    ProblemError
        On bad arguments, and where the secrets of a set determine each other.
    VerificationError
        Where no covariance found could be proved to keep the promise.
    """
    sets, priors = _sets(trace, secret_sets), _priors(trace, also)
    promised = promise(epsilon)
    r, power = scale(radius, "radius"), renyi_order(order)
    if structure not in ("full", "diagonal", "isotropic"):
        raise ProblemError(
            f"{structure!r} is unknown",
            where="structure",
            remedy='Use "full", "diagonal" or "isotropic"',
        )
    wanted = _query(trace, query)
    apart = query is None and all(prior.independent_axes for prior in priors)
    axes = [(a,) for a in range(trace.dimensions)] if apart else [tuple(range(trace.dimensions))]
    kappas = [_kappa(epsilon, r, power, len(s) * trace.dimensions) for s in sets]
    covariance = np.zeros_like(trace.covariance)
    searches = [
        _Search([Axes(prior, own) for prior in priors], sets, kappas, structure, solver)
        for own in axes
    ]
    base, size = max(search.isotropic for search in searches), float((wanted**2).sum())
    least = _floor(floor, base)
    if structure == "isotropic":
        covariance += base * np.eye(len(covariance))
        # the sum of squares was rounded
        bound = size * max(search.isotropic_bound for search in searches) * (1 - 1e-12)
    else:
        bound = 0.0
        for search in searches:
            own = search.coordinates
            part = np.eye(len(own)) if query is None else wanted
            covariance[np.ix_(own, own)], found = search.solve(part, least, base)
            bound += found
    return _verified(
        priors, covariance, sets, (promised, r, power), wanted, bound, base * size, structure
    )


class _Search:
    """The matrices A_j = B_j B_jᵀ/κ_j − C_j on a group of axes, and the search for N above them."""

    def __init__(
        self,
        groups: Sequence[Axes],
        sets: Sequence[Ints],
        kappas: Sequence[float],
        structure: Structure,
        solver: str,
    ) -> None:
        self.coordinates = groups[0].coordinates
        self.structure = structure
        self.solver = solver
        self.bounds = [
            _least(group, s, kappa)
            for group in groups
            for s, kappa in zip(sets, kappas, strict=True)
        ]
        self.matrices = [bound.mid for bound in self.bounds]
        tops = [over_ball(bound) for bound in self.bounds]
        self.isotropic = max(top.upper for top in tops)
        self.isotropic_bound = max(top.lower for top in tops)
        self.worst = int(np.argmax([top.upper for top in tops]))

    def solve(self, query: Floats, floor: float, base: float) -> tuple[Floats, float]:
        """The best candidate and the best lower bound."""
        size = len(self.matrices[0])
        diagonal = self.structure != "full"
        identical = np.eye(size) * max(base, floor)
        candidates, bounds = [identical], [0.0]
        closed = not diagonal and np.linalg.matrix_rank(query) == size
        for j, matrix in enumerate(self.matrices if closed else []):
            found = sdp.single(matrix, query, floor)
            bounds.append(self._bound(query, {j: found.multipliers[0]}, diagonal))
            if len(self.matrices) == 1:
                candidates.append(found.matrix)
        if not closed or len(self.matrices) > 1:
            large = closed and size > _LARGEST_CONE
            search = self._without_cones if large else self._lazily
            solved, multipliers = search(query, floor, diagonal)
            candidates += solved
            bounds.append(self._bound(query, multipliers, diagonal))
        cost = [float(np.einsum("ij,jk,ik->", query, n, query)) for n in candidates]
        return candidates[int(np.argmin(cost))], max(bounds)

    def _lazily(
        self, query: Floats, floor: float, diagonal: bool
    ) -> tuple[list[Floats], dict[int, Floats]]:
        """Solve for the sets that matter only: add the most violated one until none is."""
        active = [self.worst]
        multipliers: dict[int, Floats] = {}
        for _ in range(_ROUNDS):
            chosen = [self.matrices[j] for j in active]
            found = sdp.several(chosen, query, floor, diagonal, self.solver)
            if found is None:
                break
            multipliers = {active[j]: z for j, z in found.multipliers.items()}
            excess = [float(np.linalg.eigvalsh(a - found.matrix)[-1]) for a in self.matrices]
            worst = int(np.argmax(excess))
            if worst in active or excess[worst] <= _TOLERANCE * np.abs(found.matrix).max():
                return [_lifted(found.matrix, excess[worst], floor, diagonal)], multipliers
            active.append(worst)
        return ([] if diagonal else [sdp.stacked(self.matrices, floor)]), multipliers

    def _without_cones(
        self, query: Floats, floor: float, diagonal: bool
    ) -> tuple[list[Floats], dict[int, Floats]]:
        """All sets at once, by eigenvalues of the matrices only."""
        found = sdp.consensus(self.matrices, query, floor)
        excess = max(float(np.linalg.eigvalsh(a - found.matrix)[-1]) for a in self.matrices)
        return [_lifted(found.matrix, excess, floor, diagonal)], found.multipliers

    def _bound(self, query: Floats, multipliers: dict[int, Floats], diagonal: bool) -> float:
        return sdp.lower_bound(self.bounds, query, multipliers, diagonal)


def _lifted(matrix: Floats, excess: float, floor: float, diagonal: bool) -> Floats:
    """The solver's matrix, moved inside its constraints."""
    out = matrix + max(excess, 0.0) * np.eye(len(matrix))
    return np.diag(np.maximum(np.diag(out), floor)) if diagonal else sdp.raised(out, floor)


def _kappa(epsilon: Number, radius: float, order: float, size: int) -> float:
    """2ε/(λ r² m), rounded up: what holds for every noise with M ≼ κI holds for those that keep the
    promise."""
    _, most = bracket(parse_exact(epsilon, where="epsilon"))
    kappa = rounded_up(2 * most / (Fraction(order) * Fraction(radius) ** 2 * size))
    if not _LEAST <= kappa < np.inf:
        raise ProblemError(
            f"2ε/(λ r² m) is about {kappa:g}, beyond the range of floats",
            where="radius",
            remedy="Choose a unit of length in which the radius is closer to 1",
        )
    return kappa


def _least(group: Axes, steps: Ints, kappa: float) -> Enclosure:
    """B Bᵀ/κ − C, as narrow as floats allow."""
    secrets = np.searchsorted(group.coordinates, group.of_steps(steps))

    def attempt() -> Enclosure | None:
        mean, rest = conditional(group.covariance(group.trace.balls()), secrets)
        found = enclose(mean * mean.transpose() * (1 / flint.arb(kappa)) - rest)
        return found if found is not None and found.narrow else None

    found = at_first_precision(attempt)
    if found is None:
        raise ProblemError(
            f"the positions {steps.tolist()} determine each other: no finite noise protects them",
            where="secret_sets",
            remedy="Use fewer secrets, or a kernel that is not singular on them",
        )
    return found


def _verified(
    priors: Sequence[GaussianPrior],
    covariance: Floats,
    sets: Sequence[Ints],
    promised: tuple[float, float, float],
    query: Floats,
    bound: float,
    isotropic: float,
    structure: Structure,
) -> NoiseDesign:
    """The design, once its loss is proved; the noise grows by rounding errors until it is."""
    epsilon, radius, order = promised
    covariance = (covariance + covariance.T) / 2
    unit = float(np.linalg.eigvalsh(covariance)[-1])
    for margin in (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7):
        tried = covariance + margin * unit * np.eye(len(covariance))
        try:
            losses = [
                privacy_loss(prior, tried, s.tolist(), radius, order, ball=True)
                for prior in priors
                for s in sets
            ]
        except ProblemError:
            continue
        if all(loss.upper <= epsilon for loss in losses):
            tried.setflags(write=False)
            return NoiseDesign(
                tried,
                float(np.einsum("ij,jk,ik->", query, tried, query)),
                max(loss.upper for loss in losses),
                tuple(losses),
                bound,
                isotropic,
                structure,
            )
    raise VerificationError(
        "no covariance found could be proved to keep the promise",
        where="optimal_noise",
        remedy="Use a larger floor, fewer secret sets, or calibrate isotropic noise",
    )


def _sets(trace: GaussianPrior, secret_sets: Sequence[Iterable[int]]) -> list[Ints]:
    try:
        listed = list(secret_sets)
    except TypeError:
        raise ProblemError(f"{secret_sets!r} is not a list of sets", where="secret_sets") from None
    if not listed:
        raise ProblemError("is empty", where="secret_sets", remedy="Give at least one set")
    if all(isinstance(s, int | np.integer) for s in listed):
        return [secret_steps(trace, listed, where="secret_sets")]  # type: ignore[arg-type]
    return [secret_steps(trace, s, where=f"secret_sets[{k}]") for k, s in enumerate(listed)]


def _priors(trace: GaussianPrior, also: Sequence[GaussianPrior]) -> list[GaussianPrior]:
    for k, prior in enumerate(also):
        if not isinstance(prior, GaussianPrior):
            raise ProblemError(f"{type(prior).__name__} is not a prior", where=f"also[{k}]")
        same = np.array_equal(prior.times, trace.times) and prior.dimensions == trace.dimensions
        if not same:
            raise ProblemError(
                "has other times or axes",
                where=f"also[{k}]",
                remedy="Give priors at the same times",
            )
    return [trace, *also]


def _query(trace: GaussianPrior, query: ArrayLike | None) -> Floats:
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


def _floor(value: float | None, base: float) -> float:
    if value is None:
        return _FLOOR * base
    return max(amount(value, "floor"), 1e-12 * base)
