"""Optimal transport between finite distributions: W_p, W_∞, lifted relations (Kawamoto and
Murakami, ESORICS 2019, §2.5, §5).

All of it rests on one transportation simplex with whole-number flows; optimality is settled in
exact arithmetic. Distributions are balanced as ``Masses`` says: counts exactly, weights up to
(n + m) 2⁻⁵² of their total. Points of mass 0 take no part.
``rational`` has plans whose marginals are exact whatever the numbers, ``barycenter`` the best
common target of several distributions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from optmech.base.arrays import Floats
from optmech.base.labels import refuse_unordered
from optmech.base.memory import require
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.arguments import float_or_nan, nonnegative
from optmech.exact.number import Exact, rounded_down, rounded_up
from optmech.spaces.distances import DistanceLike, values_between
from optmech.spaces.domain import Domain
from optmech.spaces.prior import Distribution, domain_of
from optmech.spaces.rationals import Shares
from optmech.transport.couplings import (
    Coupling,
    Masses,
    Tree,
    Violation,
    bottleneck,
    inside,
    optimise,
)
from optmech.transport.joint import Multipliers
from optmech.transport.outputs import Outputs
from optmech.transport.rational import RationalPlan

__all__ = [
    "Barycenter",
    "Coupling",
    "Violation",
    "barycenter",
    "diameter",
    "lifted",
    "wasserstein",
]
__dir__ = __all__.copy


def wasserstein(
    a: Distribution, b: Distribution, distance: DistanceLike, p: float | str = 1
) -> Coupling:
    """W_p(a, b) with an optimal plan: (Σ γ d^p)^{1/p} for p >= 1, and for p = inf the least
    longest move (Kawamoto and Murakami, ESORICS 2019, Def. 6).

    Parameters
    ----------
    a, b:
        Weights >= 0 of any positive sum, shapes (n,) and (m,), or priors.
    distance:
        d >= 0, not assumed to be a metric: an array of shape (n, m), or, between priors, a
        function of two domains or a table with their labels.
    p:
        At least 1, or ``math.inf`` (``"inf"``).

    The plan is optimal for the given distances, exactly, however far they range: for finite p by
    the potentials, for p = inf by a set that violates Hall's condition below the value, which is
    one of the distances. For p other than 1 and inf the d^p are rounded to floats first.

    Raises
    ------
    ProblemError
        On unusable weights, distances or p.

    Examples
    --------
    >>> d = np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> om.transport.wasserstein([1, 0, 0], [0, 0.5, 0.5], d).value
    1.5
    >>> om.transport.wasserstein([1, 0, 0], [0, 0.5, 0.5], d, p=np.inf).value
    2.0
    """
    order = float_or_nan(p)
    if not order >= 1:
        raise ProblemError(f"{p!r} is not a number >= 1", where="p", remedy="Use 1, 2 or math.inf")
    masses = Masses.balance(a, b)
    everywhere = values_between(distance, domain_of(a), domain_of(b))
    values = _matrix(everywhere, masses)
    if math.isinf(order):
        return bottleneck(masses, values)
    top = float(values.max()) or 1.0
    cost = _powers(values, order, top)
    tree = Tree(masses.supply, masses.demand)
    value, u, v = optimise(tree, np.ascontiguousarray(cost))
    mean = float(value / masses.total)
    root = mean if order == 1 else mean ** (1 / order) * top
    # points without mass get the largest potentials that are feasible
    every = _powers(everywhere, order, top)
    first = (every[:, masses.columns] - v).min(axis=1)
    first[masses.rows] = u
    second = (every - first[:, None]).min(axis=0)
    second[masses.columns] = v
    return Coupling(masses.spread(*tree.arcs()), root, (first, second), masses.missing())


def lifted(
    a: Distribution,
    b: Distribution,
    relation: ArrayLike,
    *,
    distance: DistanceLike | None = None,
    p: float | str = math.inf,
) -> Coupling | Violation:
    """Decide (a, b) ∈ Φ# (Kawamoto and Murakami, ESORICS 2019, Def. 7): a coupling inside Φ, or a
    set violating Hall's condition.

    ``relation`` is a boolean array of shape (n, m). By the max-flow min-cut theorem exactly one of
    the two exists. With a ``distance`` it is Φ#_{W_p} that is decided: whether a coupling inside Φ
    is optimal for W_p, and so moves mass at most W_∞ far, or where the potentials are tight.

    Raises
    ------
    ProblemError
        On unusable weights, or a relation that is not boolean or of the wrong shape.

    Examples
    --------
    >>> within = np.array([[True, True], [False, True]])
    >>> om.transport.lifted([0.5, 0.5], [0.25, 0.75], within).plan
    array([[0.25, 0.25],
           [0.  , 0.5 ]])
    >>> type(om.transport.lifted([0.25, 0.75], [0.5, 0.5], within)).__name__
    'Violation'
    """
    masses = Masses.balance(a, b)
    refuse_unordered(relation, where="relation")
    phi = np.asarray(relation)
    if phi.dtype != np.bool_ or phi.shape != masses.shape:
        raise ProblemError(
            f"an array of {phi.dtype} of shape {phi.shape}",
            where="relation",
            remedy=f"Give a boolean array of shape {masses.shape}",
        )
    if distance is not None:
        phi = phi & _tight(a, b, distance, p)
    return inside(masses, phi[np.ix_(masses.rows, masses.columns)])


def _tight(a: Distribution, b: Distribution, distance: DistanceLike, p: float | str) -> Any:
    """Where optimal couplings may move mass: as far as W_∞, or where u_i + v_j is the cost, up to
    the rounding of these."""
    values = values_between(distance, domain_of(a), domain_of(b))
    best = wasserstein(a, b, values, p)
    if best.potentials is None:
        return values <= best.value
    u, v = best.potentials
    masses = Masses.balance(a, b)
    top = float(values[np.ix_(masses.rows, masses.columns)].max()) or 1.0
    cost = _powers(values, float(p), top)
    size = np.abs(u)[:, None] + np.abs(v) + cost
    return cost - (u[:, None] + v) <= 2.0**-48 * size


def diameter(a: Distribution, b: Distribution, distance: DistanceLike) -> float:
    """diam(a, b): the largest distance between points with mass (Kawamoto and Murakami, ESORICS
    2019, §5.2); at least W_∞.

    Examples
    --------
    >>> d = np.array([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]])
    >>> om.transport.diameter([1, 1, 0], [0, 1, 1], d)
    2.0
    """
    masses = Masses.balance(a, b)
    return float(_matrix(values_between(distance, domain_of(a), domain_of(b)), masses).max())


def _matrix(array: Floats, masses: Masses) -> Floats:
    """The distances between the points with mass."""
    nonnegative(array, "distance", masses.shape)
    require(
        6.0 * array.nbytes,
        what=f"transport between {masses.shape[0]:,} x {masses.shape[1]:,} points",
        where="distance",
        remedy="Merge points",
    )
    if (len(masses.rows), len(masses.columns)) == masses.shape:
        return array
    return np.ascontiguousarray(array[np.ix_(masses.rows, masses.columns)])


def _powers(array: Floats, order: float, top: float) -> Floats:
    with np.errstate(over="ignore"):
        return array if order == 1 else np.asarray((array / top) ** order)


_LARGEST = 1e300
"""Distances leave room for sums along paths, and for a price that no detour is worth."""


@record
class Barycenter(Shown):
    """A distribution μ that minimises Σ_t w_t W_1(λ_t, μ), with its proof.

    Examples
    --------
    >>> line = om.distances.euclidean()(om.Domain.range(3), om.Domain.range(3))
    >>> middle = om.transport.barycenter([[1, 0, 0], [0, 0, 1]], line)
    >>> print(middle.value, middle.lower_bound)  # each half of the way: 2 / 2
    1.0 1.0
    """

    exact: Shares
    """μ in whole numbers."""
    couplings: tuple[RationalPlan, ...]
    """Plans of (λ_t, μ), marginals exact, optimal up to rounding at 2^-60."""
    value: float
    """Σ_t w_t W_1(λ_t, μ) of this μ, rounded up."""
    values: tuple[float, ...]
    """W_1(λ_t, μ) for every t."""
    lower_bound: float
    """No distribution does better, rounded down."""
    multipliers: Multipliers | None
    """What proves the bound; see ``joint.joint_bound``. None where it needs none."""
    gap: float
    """(value - lower_bound) / value before both are rounded, rounded up; 0 where the value is 0."""
    _apart: ClassVar = frozenset({"multipliers"})

    @property
    def distribution(self) -> Floats:
        """μ as floats, shape (m,)."""
        return self.exact.weights

    @property
    def plans(self) -> Floats:
        """γ_t as floats, shape (T, n, m)."""
        return np.array([coupling.plan for coupling in self.couplings])


def barycenter(
    lams: Sequence[Distribution], distance: DistanceLike, weights: ArrayLike | None = None
) -> Barycenter:
    """A Wasserstein-1 barycentre of ``lams`` among all distributions on the columns' points.

    Parameters
    ----------
    lams:
        T >= 1 weight vectors of shape (n,), or priors; each is divided by its exact sum.
    distance:
        d >= 0, shape (n, m); usually square. Need not be a metric. Where a ``lam`` is a prior, also
        a function of two domains or a table with its labels.
    weights:
        w_t >= 0, divided by their sum; equal unless given.

    The value is that of exact plans for the returned μ, the bound holds for every μ: their
    difference is what the linear program's tolerance leaves open, about 1e-12 of the value. Where
    distances are too far apart for floating point, the program is refined in whole numbers.

    Raises
    ------
    ProblemError
        On unusable weights or distances.
    SolverError
        Where the program could not be solved.

    Examples
    --------
    >>> d = om.distances.euclidean()(om.Domain.range(3), om.Domain.range(3))
    >>> middle = om.transport.barycenter([[1, 0, 0], [0, 0, 1], [0, 1, 0]], d)
    >>> print(middle.distribution)
    [0. 1. 0.]
    """
    inputs, apart, shares = read_joint(lams, distance, weights)
    zero = Exact(Fraction(0))
    found, _ = Outputs(tuple(inputs), apart, shares, zero, zero).optimum()
    return Barycenter(
        exact=found.plans[0].second,
        couplings=found.plans,
        value=rounded_up(found.cost),
        values=tuple(rounded_up(plan.cost(apart)) for plan in found.plans),
        lower_bound=rounded_down(found.bound) + 0.0,
        multipliers=found.multipliers,
        gap=found.gap,
    )


def read_joint(
    lams: Sequence[Distribution],
    distance: DistanceLike,
    weights: ArrayLike | None,
    *,
    where: str = "lams",
    secrets: Domain | None = None,
    observables: Domain | None = None,
) -> tuple[list[Shares], Floats, Shares]:
    """Inputs, distances and weights as they are used; raises ProblemError on unusable ones.

    Domains that are not given are those of the first prior among ``lams``.
    """
    listed = list(lams) if isinstance(lams, Iterable) else []
    known = next((domain for domain in map(domain_of, listed) if domain is not None), None)
    rows = secrets or known
    values = values_between(distance, rows, observables or rows)
    if not values.size or (values < 0).any():
        raise ProblemError(
            f"shape {values.shape}, least entry {values.min(initial=0.0):g}",
            where="distance",
            remedy="Give numbers >= 0, a row for every input point",
        )
    if values.max() > _LARGEST:
        raise ProblemError(
            f"the largest entry is {values.max():g}, above 1e300",
            where="distance",
            remedy="Use a larger unit",
        )
    inputs = [Shares.of(lam, f"{where}[{t}]") for t, lam in enumerate(listed)]
    if not inputs:
        raise ProblemError(
            "is not a list of distributions", where=where, remedy="Give at least one"
        )
    for t, lam in enumerate(inputs):
        if len(lam) != len(values):
            raise ProblemError(
                f"{len(lam)} weights for {len(values)} rows of distances",
                where=f"{where}[{t}]",
                remedy="Give a weight for every input point",
            )
    shares = Shares.of([1] * len(inputs) if weights is None else weights, "weights")
    if len(shares) != len(inputs):
        raise ProblemError(f"{len(shares)} weights for {len(inputs)} inputs", where="weights")
    return inputs, values, shares
