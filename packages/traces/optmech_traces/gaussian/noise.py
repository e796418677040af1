"""The noise of least variance that keeps a promised loss (beyond Meehan and Chaudhuri 2019)."""

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
from optmech.exact.exponentials import bracket, stated_down
from optmech.exact.number import Exact, Number, float_of, parse_exact, rounded_up
from optmech.spaces.arguments import checked_arguments
from optmech_traces.gaussian import sdp
from optmech_traces.gaussian.balls import Enclosure, over_ball
from optmech_traces.gaussian.loss import TraceLoss, calibrate, privacy_loss, renyi_order
from optmech_traces.gaussian.prior import Axes, GaussianPrior, read_priors, read_query, read_sets

Structure = Literal["full", "diagonal", "isotropic"]
Region = Literal["ball", "box"]
_FLOOR = 1e-6
_LEAST = 2.0**-1022
_TOLERANCE = 1e-9
_BROKEN = 1e-8
_LARGEST_CONE = 24
"""Coordinates beyond which a conic solver takes minutes for a few sets."""


@record
class GaussianNoise(Shown):
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
        mean = values.ravel()
        drawn = rng.multivariate_normal(mean, self.covariance, method="cholesky")
        return drawn.reshape(values.shape)


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
) -> GaussianNoise:
    """The Gaussian noise of least total variance with loss ≤ ε for every secret set.

    By default the loss is the ball bound of Meehan and Chaudhuri 2019, (4). M ≼ κI with κ = 2ε/(λ
    r² m) holds exactly when [[κI, Bᵀ], [B, N + C]] ≽ 0, and that when N ≽ BBᵀ/κ − C: for one set a
    closed form, for several a semidefinite program (docs/theory/trace-privacy.md).

    Parameters
    ----------
    secret_sets:
        One set of indices, or several; the promise holds for each of them.
    also:
        Further priors at the same times under which the promise has to hold too, such as other
        length scales.
    region:
        ``"box"``: the loss of Meehan and Chaudhuri 2019, Definition 2.2 itself, over |Δ_i| ≤ r. It
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
        Clarabel, or another conic solver of cvxpy (extra ``cvxpy``), for several sets of up to 24
        coordinates and for diagonal noise.

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
    rate = parse_exact(epsilon, where="epsilon", positive=True)
    r, power = positive(radius, "radius"), renyi_order(order)
    one_of(structure, get_args(Structure), "structure")
    one_of(region, get_args(Region), "region")
    asked = _Asked(
        priors, sets, rate, r, power,
        read_query(trace, query), query is None, floor, structure, solver,
    )  # fmt: skip
    ball = region == "ball"
    covariance, bound, base = _in_ball(asked) if ball else _in_box(asked)
    covariance, losses = _verified(asked, covariance, None if ball else base)
    return GaussianNoise(
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
    epsilon: Exact
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
        most = bracket(self.epsilon)[1]
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
    groups = [(a,) for a in every] if apart else [every]
    cuts = [
        [
            sdp.Hypotheses(Axes(prior, axes), s, kappa).cut()
            for prior in asked.priors
            for s, kappa in zip(asked.sets, kappas, strict=True)
        ]
        for axes in groups
    ]
    tops = [[over_ball(cut) for cut in own] for own in cuts]
    base = max(top.upper for own in tops for top in own)
    covariance = base * np.eye(len(asked.priors[0].covariance))
    if asked.structure == "isotropic":
        # the sum of squares was rounded
        lowest = max(top.lower for own in tops for top in own)
        return covariance, asked.square * lowest * (1 - 1e-12), base
    bound = 0.0
    for axes, own, most in zip(groups, cuts, tops, strict=True):
        places = Axes(asked.priors[0], axes).coordinates
        query = np.eye(len(places)) if asked.plain else asked.query
        found, proved = _above(asked, own, [top.upper for top in most], query, asked.least(base))
        covariance[np.ix_(places, places)] = found
        bound += proved
    return covariance, bound, base


def _above(
    asked: _Asked, cuts: list[Enclosure], tops: list[float], query: Floats, floor: float
) -> tuple[Floats, float]:
    """The best N found above all matrices A_j = B_j B_jᵀ/κ_j − C_j, whose eigenvalues are at most
    ``tops``, and the best lower bound."""
    diagonal, solver = asked.structure != "full", asked.solver
    matrices, size = [cut.mid for cut in cuts], len(cuts[0].mid)
    candidates, bounds = [np.eye(size) * max(*tops, floor)], [0.0]
    closed = not diagonal and np.linalg.matrix_rank(query) == size
    for j, matrix in enumerate(matrices if closed else []):
        single = sdp.single(matrix, query, floor)
        bounds.append(sdp.lower_bound(cuts, query, {j: single.multipliers[0]}, diagonal))
        if len(matrices) == 1:
            candidates.append(single.matrix)
    if closed and len(matrices) == 1:
        return min(candidates, key=lambda n: _variance(n, query)), max(bounds)
    solved, active = None, {int(np.argmax(tops))}

    def excess(noise: Floats) -> list[float]:
        """By how much each N ≽ A_j is violated."""
        return [float(np.linalg.eigvalsh(a - noise)[-1]) for a in matrices]

    def violated(noise: Floats) -> list[Enclosure]:
        """The most violated one, as only those are added that matter."""
        over = excess(noise)
        worst = int(np.argmax(over))
        if worst in active or over[worst] <= _TOLERANCE * np.abs(noise).max():
            return []
        active.add(worst)
        return [cuts[worst]]

    if not closed or size <= _LARGEST_CONE:
        first = [cuts[k] for k in active]
        solved, bound = sdp.search(first, violated, query, floor, diagonal=diagonal, solver=solver)
        bounds.append(bound)
    if solved is None and closed:
        # all sets at once, by eigenvalues of the matrices only
        found = sdp.consensus(matrices, query, floor)
        solved = found.matrix
        bounds.append(sdp.lower_bound(cuts, query, found.multipliers, diagonal))
    if solved is not None:
        # moved inside its constraints
        out = solved + max(*excess(solved), 0.0) * np.eye(size)
        raised = np.diag(np.maximum(np.diag(out), floor)) if diagonal else sdp.raised(out, floor)
        candidates.append(raised)
    return min(candidates, key=lambda n: _variance(n, query)), max(bounds)


def _in_box(asked: _Asked) -> tuple[Floats, float, float]:
    """Noise for the box: what ``_in_ball`` is for the ball."""
    priors, sets = asked.priors, asked.sets
    axes = priors[0].dimensions
    # axes that are independent and alike share the loss, and the best noise, equally
    alike = (p.independent_axes and np.ptp(np.diag(p.cross)) == 0 for p in priors)
    copies = axes if asked.plain and all(alike) else 1
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
        # a variance just below, at which equal noise is proved to break the promise
        tried = base * (1 - 1e-8)
        broken = any(loss.lower > bracket(asked.epsilon)[1] for loss in asked.losses(tried))
        bound = asked.square * tried * (1 - 1e-12) if broken else 0.0
        return base * np.eye(len(priors[0].covariance)), bound, base
    kappa, equal = asked.kappa(copies), base * np.eye(size)
    hypotheses = [sdp.Hypotheses(group, s, kappa) for group in groups for s in sets]
    known: set[tuple[int, bytes]] = set()

    def violated(noise: Floats) -> list[Enclosure]:
        """New cuts, at the worst vertices where the noise breaks the limit."""
        out = []
        for k, one in enumerate(hypotheses):
            vertex, excess = one.worst(noise)
            key = (k, (vertex * vertex[0]).astype(np.int8).tobytes())
            if key not in known and excess > 1 + _BROKEN:
                known.add(key)
                out.append(one.cut(vertex))
        return out

    found, bound = sdp.search(
        [hypotheses[0].cut(hypotheses[0].worst(equal)[0])], violated,
        np.eye(size) if asked.plain else asked.query, asked.least(base),
        diagonal=asked.structure == "diagonal", solver=asked.solver,
    )  # fmt: skip
    covariance = np.kron(equal if found is None else found, np.eye(copies)).astype(np.float64)
    return covariance, copies * bound * (1 - 2.0**-50), base


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
    # in the box cuts are met to 10⁻⁸, and a noise with tiny eigenvalues may be worth far more of it
    margins = [0.0, *(10.0**k for k in range(-15, -6 if otherwise is None else 0))]
    grown = [covariance + margin * unit * np.eye(len(covariance)) for margin in margins]
    if otherwise is not None:
        grown = [n for n in grown if np.trace(n) <= otherwise * len(n)]
        grown.append(otherwise * np.eye(len(covariance)))
    promised = stated_down(asked.epsilon)
    for tried in grown:
        try:
            losses = asked.losses(tried, ball=otherwise is None)
        except ProblemError:
            continue
        if all(loss.upper <= promised for loss in losses):
            return locked(tried), losses
    raise VerificationError(
        "no covariance found could be proved to keep the promise",
        where="optimal_noise",
        remedy="Use a larger floor, fewer secret sets, or calibrate isotropic noise",
    )
