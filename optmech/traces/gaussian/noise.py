"""The noise of least variance that keeps a promised loss (beyond Meehan and Chaudhuri 2021)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.read_only import locked, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, VerificationError
from optmech.exact.arguments import one_of, positive
from optmech.exact.exponentials import bracket
from optmech.exact.number import Number, float_of, parse_exact, rounded_up
from optmech.spaces.arguments import checked_arguments
from optmech.traces.gaussian import sdp
from optmech.traces.gaussian.balls import over_ball
from optmech.traces.gaussian.loss import TraceLoss, calibrate, privacy_loss, promise, renyi_order
from optmech.traces.gaussian.prior import Axes, GaussianPrior, read_priors, read_query, read_sets

Structure = Literal["full", "diagonal", "isotropic"]
Region = Literal["ball", "box"]
_FLOOR = 1e-6
_LEAST = 2.0**-1022
_TOLERANCE = 1e-9
_ROUNDS = 60
_LARGEST_CONE = 24
"""Coordinates beyond which a conic solver takes minutes for a few sets."""


@record
class NoiseDesign(Shown):
    """A noise covariance whose loss was proved afterwards, in ball arithmetic.

    Examples
    --------
    >>> trace = om.traces.GaussianPrior([0, 1], om.traces.rbf(1.0))
    >>> design = om.traces.optimal_noise(trace, 1, [[0]], radius=1, order=2)
    >>> print(design.loss <= 1, design.trace <= design.isotropic)
    True True
    >>> design.sample([0.0, 0.5], seed=1).shape
    (2,)
    """

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
        return values + (root @ rng.standard_normal(len(root))).reshape(values.shape)


@checked_arguments
def optimal_noise(
    trace: GaussianPrior,
    epsilon: Number,
    secret_sets: Sequence[Iterable[int]],
    radius: float,
    order: float,
    *,
    also: Sequence[GaussianPrior] = (),
    region: Region = "ball",
    structure: Structure = "full",
    query: ArrayLike | None = None,
    floor: float | None = None,
    solver: str = "CLARABEL",
) -> NoiseDesign:
    """The Gaussian noise of least total variance with loss ≤ ε for every secret set.

    By default the loss is the ball bound of Meehan and Chaudhuri 2021, (4). M ≼ κI with κ = 2ε/(λ
    r² m) holds exactly when [[κI, Bᵀ], [B, N + C]] ≽ 0, and that when N ≽ BBᵀ/κ − C: for one set a
    closed form, for several a semidefinite program (docs/theory.md).

    Parameters
    ----------
    secret_sets:
        One set of indices, or several; the promise holds for each of them.
    also:
        Further priors at the same times under which the promise has to hold too, such as other
        length scales.
    region:
        ``"box"``: the loss of Meehan and Chaudhuri 2021, Definition 2.2 itself, over |Δ_i| ≤ r. It
        is smaller than the ball's, and needs less noise: found by cuts at the vertices of the box,
        for up to 24 coordinates (of one axis, where axes are independent and alike).
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

    Examples
    --------
    >>> trace = om.traces.GaussianPrior([0, 1], om.traces.rbf(1.0))
    >>> design = om.traces.optimal_noise(trace, 1, [[0], [1]], radius=1, order=2)
    >>> print(design.loss <= 1, design.covariance.shape)
    True (2, 2)
    """
    sets, priors = read_sets(trace, secret_sets), read_priors(trace, also)
    promised = promise(epsilon)
    r, power = positive(radius, "radius"), renyi_order(order)
    one_of(structure, get_args(Structure), "structure")
    one_of(region, get_args(Region), "region")
    asked = _Asked(
        priors, sets, epsilon, promised, r, power,
        read_query(trace, query), query is None, floor, structure, solver,
    )  # fmt: skip
    ball = region == "ball"
    covariance, bound, base = _in_ball(asked) if ball else _in_box(asked)
    covariance, losses = _verified(asked, covariance, None if ball else base)
    return NoiseDesign(
        covariance,
        _variance(covariance, asked.query),
        max(loss.upper for loss in losses),
        tuple(losses),
        bound,
        base * asked.square,
        structure,
    )


@record
class _Asked:
    """What ``optimal_noise`` is asked, read and checked."""

    priors: list[GaussianPrior]
    sets: list[Ints]
    epsilon: Number
    promised: float
    radius: float
    order: float
    query: Floats
    plain: bool
    """Whether the query is the trace."""
    floor: float | None
    structure: Structure
    solver: str

    @property
    def square(self) -> float:
        """The variance that the query sees of noise of variance 1 everywhere."""
        return float((self.query**2).sum())

    def least(self, base: float) -> float:
        """The floor beside the least isotropic variance."""
        return (
            _FLOOR * base
            if self.floor is None
            else max(float_of(self.floor, "floor"), 1e-12 * base)
        )

    def kappa(self, size: int) -> float:
        """2ε/(λ r² m), rounded up: what holds for every noise with M ≼ κI holds for those that keep
        the promise."""
        _, most = bracket(parse_exact(self.epsilon, where="epsilon"))
        kappa = rounded_up(2 * most / (Fraction(self.order) * Fraction(self.radius) ** 2 * size))
        if not _LEAST <= kappa < np.inf:
            raise ProblemError(
                f"2ε/(λ r² m) is about {kappa:g}, beyond the range of floats",
                where="radius",
                remedy="Choose a unit of length in which the radius is closer to 1",
            )
        return kappa

    def losses(self, noise: ArrayLike, *, ball: bool = False) -> list[TraceLoss]:
        """By prior, and by secret set within a prior."""
        return [
            privacy_loss(prior, noise, s.tolist(), self.radius, self.order, ball=ball)
            for prior in self.priors
            for s in self.sets
        ]


def _in_ball(asked: _Asked) -> tuple[Floats, float, float]:
    """A covariance for the ball, a lower bound of the variance, and the least equal one."""
    dimensions = asked.priors[0].dimensions
    apart = asked.plain and all(prior.independent_axes for prior in asked.priors)
    every = tuple(range(dimensions))
    kappas = [asked.kappa(len(s) * dimensions) for s in asked.sets]
    searches = [
        _Search([Axes(prior, own) for prior in asked.priors], asked, kappas)
        for own in ([(a,) for a in every] if apart else [every])
    ]
    base = max(search.isotropic for search in searches)
    covariance = base * np.eye(len(asked.priors[0].covariance))
    if asked.structure == "isotropic":
        # the sum of squares was rounded
        lowest = max(search.isotropic_bound for search in searches)
        return covariance, asked.square * lowest * (1 - 1e-12), base
    bound = 0.0
    for search in searches:
        own = search.coordinates
        part = np.eye(len(own)) if asked.plain else asked.query
        covariance[np.ix_(own, own)], found = search.solve(part, asked.least(base))
        bound += found
    return covariance, bound, base


class _Search:
    """The matrices A_j = B_j B_jᵀ/κ_j − C_j on a group of axes, and the search for N above them."""

    def __init__(self, groups: Sequence[Axes], asked: _Asked, kappas: Sequence[float]) -> None:
        self.coordinates = groups[0].coordinates
        self.diagonal = asked.structure != "full"
        self.solver = asked.solver
        self.bounds = [
            sdp.Hypotheses(group, s, kappa).cut()
            for group in groups
            for s, kappa in zip(asked.sets, kappas, strict=True)
        ]
        self.matrices = [bound.mid for bound in self.bounds]
        tops = [over_ball(bound) for bound in self.bounds]
        self.worst = int(np.argmax([top.upper for top in tops]))
        self.isotropic = tops[self.worst].upper
        self.isotropic_bound = max(top.lower for top in tops)

    def solve(self, query: Floats, floor: float) -> tuple[Floats, float]:
        """The best candidate and the best lower bound."""
        size = len(self.matrices[0])
        candidates, bounds = [np.eye(size) * max(self.isotropic, floor)], [0.0]
        closed = not self.diagonal and np.linalg.matrix_rank(query) == size
        for j, matrix in enumerate(self.matrices if closed else []):
            found = sdp.single(matrix, query, floor)
            bounds.append(self._bound(query, {j: found.multipliers[0]}))
            if len(self.matrices) == 1:
                candidates.append(found.matrix)
        if not closed or len(self.matrices) > 1:
            large = closed and size > _LARGEST_CONE
            solved, multipliers = (None, {}) if large else self._lazily(query, floor)
            if solved is None and closed:
                # all sets at once, by eigenvalues of the matrices only
                found = sdp.consensus(self.matrices, query, floor)
                solved, multipliers = self._lifted(found.matrix, floor), found.multipliers
            candidates += [] if solved is None else [solved]
            bounds.append(self._bound(query, multipliers))
        return min(candidates, key=lambda n: _variance(n, query)), max(bounds)

    def _lazily(self, query: Floats, floor: float) -> tuple[Floats | None, dict[int, Floats]]:
        """Solve for the sets that matter only: add the most violated one until none is; None where
        the solver fails."""
        active = [self.worst]
        multipliers: dict[int, Floats] = {}
        for _ in range(_ROUNDS):
            chosen = [self.matrices[j] for j in active]
            found = sdp.several(chosen, query, floor, self.diagonal, self.solver)
            if found is None:
                break
            multipliers = {active[j]: z for j, z in found.multipliers.items()}
            worst, excess = self._excess(found.matrix)
            if worst in active or excess <= _TOLERANCE * np.abs(found.matrix).max():
                return self._lifted(found.matrix, floor), multipliers
            active.append(worst)
        return None, multipliers

    def _excess(self, noise: Floats) -> tuple[int, float]:
        """The constraint N ≽ A_j that is violated most, and by how much."""
        excess = [float(np.linalg.eigvalsh(a - noise)[-1]) for a in self.matrices]
        worst = int(np.argmax(excess))
        return worst, excess[worst]

    def _lifted(self, noise: Floats, floor: float) -> Floats:
        """The solver's matrix, moved inside its constraints."""
        out = noise + max(self._excess(noise)[1], 0.0) * np.eye(len(noise))
        return np.diag(np.maximum(np.diag(out), floor)) if self.diagonal else sdp.raised(out, floor)

    def _bound(self, query: Floats, multipliers: dict[int, Floats]) -> float:
        return sdp.lower_bound(self.bounds, query, multipliers, self.diagonal)


def _in_box(asked: _Asked) -> tuple[Floats, float, float]:
    """Noise for the box: what ``_in_ball`` is for the ball."""
    priors, sets = asked.priors, asked.sets
    axes = priors[0].dimensions
    # axes that are independent and alike share the loss, and the best noise, equally
    copies = axes if asked.plain and all(map(_alike, priors)) else 1
    groups = [Axes(prior, (0,) if copies > 1 else tuple(range(axes))) for prior in priors]
    size = len(groups[0].coordinates)
    if size > sdp.LARGEST:
        raise ProblemError(
            f"{size} coordinates are too many for the box, which is solved for up to {sdp.LARGEST}",
            where="region",
            remedy='Use region="ball", which is on the safe side of the box',
        )
    sigma = max(
        calibrate(p, asked.epsilon, s.tolist(), asked.radius, asked.order)
        for p in priors
        for s in sets
    )
    base = float(np.nextafter(sigma * sigma, np.inf))
    if asked.structure == "isotropic":
        equal = base * np.eye(len(priors[0].covariance))
        return equal, asked.square * _least_equal(asked, base), base
    kappa = asked.kappa(copies)
    found, bound = sdp.search(
        [sdp.Hypotheses(group, s, kappa) for group in groups for s in sets],
        base * np.eye(size),
        np.eye(size) if asked.plain else asked.query,
        asked.least(base),
        diagonal=asked.structure == "diagonal",
        solver=asked.solver,
    )
    covariance = np.asarray(np.kron(found, np.eye(copies)), dtype=np.float64)
    return covariance, copies * bound * (1 - 2.0**-50), base


def _alike(prior: GaussianPrior) -> bool:
    """Whether no axis says anything of another, and all have one covariance over time."""
    return prior.independent_axes and len(set(np.diag(prior.cross).tolist())) == 1


def _least_equal(asked: _Asked, base: float) -> float:
    """A variance, just below ``base``, at which equal noise is proved to break the promise."""
    tried = base * (1 - 1e-8)
    _, most = bracket(parse_exact(asked.epsilon, where="epsilon"))
    broken = any(loss.lower > most for loss in asked.losses(tried))
    return tried * (1 - 1e-12) if broken else 0.0


def _variance(matrix: Floats, query: Floats) -> float:
    """tr(L N Lᵀ)."""
    return float(np.einsum("ij,jk,ik->", query, matrix, query))


def _verified(
    asked: _Asked, covariance: Floats, otherwise: float | None
) -> tuple[Floats, list[TraceLoss]]:
    """The noise with its proved losses; it grows by rounding errors until they are. In the box,
    what would grow beyond equal noise of variance ``otherwise`` is replaced by that."""
    covariance = (covariance + covariance.T) / 2
    unit = float(np.linalg.eigvalsh(covariance)[-1])
    margins = (0.0, 1e-15, 1e-14, 1e-13, 1e-12, 1e-11, 1e-10, 1e-9, 1e-8, 1e-7)
    grown = [covariance + margin * unit * np.eye(len(covariance)) for margin in margins]
    if otherwise is not None:
        # cuts are met to 10⁻⁸, and a noise with tiny eigenvalues may be worth far more of it
        grown += [covariance + 10.0**k * unit * np.eye(len(covariance)) for k in range(-6, 0)]
        grown = [n for n in grown if np.trace(n) <= otherwise * len(n)]
        grown.append(otherwise * np.eye(len(covariance)))
    for tried in grown:
        try:
            losses = asked.losses(tried, ball=otherwise is None)
        except ProblemError:
            continue
        if all(loss.upper <= asked.promised for loss in losses):
            return locked(tried), losses
    raise VerificationError(
        "no covariance found could be proved to keep the promise",
        where="optimal_noise",
        remedy="Use a larger floor, fewer secret sets, or calibrate isotropic noise",
    )
