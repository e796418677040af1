"""Inference attacks on a given mechanism (PG section 6.1 and Appendix A).

An attack is a matrix q(t|o) of estimates t, which range over the secrets. Distances are d(t, s),
from the estimate to the secret. PG = Shokri, Privacy Games (PETS 2015).
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from optmech.analysis.measures import posterior, prior_weights
from optmech.base import memory
from optmech.base.arrays import Floats, finite_array, normalised_rows
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, SolverError
from optmech.exact.arguments import one_of, probability, whole
from optmech.exact.number import from_below
from optmech.exact.rounding import UNIT
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.distances import DistanceLike, evaluate as distance_matrix
from optmech.spaces.mechanism import ROW_SUM_TOLERANCE, Mechanism
from optmech.spaces.prior import Prior

__all__ = [
    "Attack",
    "bayesian",
    "evaluate",
    "minimax",
    "optimal_attack",
    "prior_free",
    "sharpened",
]
__dir__ = __all__.copy


Over = Literal["secrets", "pairs"]

_Options = dict[str, str | float]
_CLOSE: _Options = {
    "solver": "simplex", "primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10
}  # fmt: skip
"""Where a value is so much below the distances that the usual tolerances show in it."""
_METHODS: dict[Over, tuple[_Options, ...]] = {
    # over pairs the simplex method takes minutes where interior points take a second
    "secrets": ({"solver": "simplex"}, {"solver": "ipm"}, _CLOSE),
    "pairs": ({"solver": "ipm", "run_crossover": "off"}, {"solver": "simplex"}, _CLOSE),
}


@record
class Attack(Shown):
    """An attack with the error that it makes against one mechanism.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.Mechanism(sides, sides, [[0.75, 0.25], [0.25, 0.75]])
    >>> attack = om.attacks.optimal_attack(m, om.Prior.uniform(sides), om.distances.hamming())
    >>> attack.error, attack.worst_error
    (0.25, 0.25)
    >>> print(attack.strategy)  # a row for every report, a column for every guess
    [[1. 0.]
     [0. 1.]]
    """

    name: str
    strategy: Floats
    """q(t|o), shape (observables, secrets), rows sum to one."""
    error: float
    """Σ_s π(s) E_s, in the unit of the distance: with the optimal attack, the user's distortion
    privacy (Shokri, PETS 2015, eq. 7). Where an attack has no prior and none is given, π is
    uniform."""
    error_per_secret: Floats
    """E_s = Σ_o p(o|s) Σ_t q(t|o) d(t,s), shape (secrets,) (Shokri, PETS 2015, eq. 6, 26)."""
    value: float | None = None
    """For ``minimax``: the maximum that the attack minimises, recomputed from ``strategy``."""
    lower_bound: float | None = None
    """For ``minimax``: a number that no strategy can bring ``value`` below."""

    @property
    def worst_error(self) -> float:
        """max_s E_s: what the secret that is hardest to infer is left with."""
        return float(self.error_per_secret.max())


@checked_arguments
def optimal_attack(
    m: Mechanism,
    prior: Prior,
    distance: DistanceLike,
    *,
    evaluated_under: Prior | None = None,
) -> Attack:
    """The attack of least expected error for an adversary who holds ``prior`` (Shokri, PETS 2015,
    eq. 19).

    In closed form: for every o the first estimate t that minimises Σ_s π(s) p(o|s) d(t,s). For an
    observable that ``prior`` makes impossible it is the best blind guess.

    ``evaluated_under`` is the prior that secrets really follow, default the same. With another one,
    ``error`` is that of a misinformed or better-informed adversary (Shokri, PETS 2015, section
    9.2).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.mechanisms.randomized_response(sides, "ln 3")
    >>> prior, d = om.Prior.uniform(sides), om.distances.hamming()
    >>> om.attacks.optimal_attack(m, prior, d).error  # 1 / (3 + 1)
    0.25
    >>> skewed = om.Prior(sides, [0.9, 0.1])
    >>> om.attacks.optimal_attack(m, skewed, d).error  # blind, "left" is as good
    0.1
    """
    return _cheapest("optimal", m, prior, distance, evaluated_under)


optimal = optimal_attack  # an earlier name


@checked_arguments
def bayesian(
    m: Mechanism,
    prior: Prior,
    distance: DistanceLike,
    *,
    evaluated_under: Prior | None = None,
) -> Attack:
    """The attack that draws its estimate from the posterior π(s|o) (Shokri, PETS 2015, eq. 25).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.Mechanism(sides, sides, [[0.75, 0.25], [0.25, 0.75]])
    >>> attack = om.attacks.bayesian(m, om.Prior.uniform(sides), om.distances.hamming())
    >>> attack.error  # 2 * 0.75 * 0.25: a guess drawn at random is worse than the best
    0.375
    """
    charged = prior if evaluated_under is None else evaluated_under
    return _attack("bayesian", m, posterior(m, prior), _distances(m, distance), charged)


@checked_arguments
def prior_free(
    m: Mechanism, distance: DistanceLike, *, evaluated_under: Prior | None = None
) -> Attack:
    """The attack that minimises Σ_s E_s, every secret weighing the same (Shokri, PETS 2015, eq.
    27).

    In closed form: for every o the first t that minimises Σ_s p(o|s) d(t,s). ``error`` is the mean
    over the secrets, or that under ``evaluated_under``.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.Mechanism(sides, sides, [[0.75, 0.25], [0.5, 0.5]])
    >>> om.attacks.prior_free(m, om.distances.hamming()).error_per_secret
    array([0.25, 0.5 ])
    """
    return _cheapest("prior-free", m, Prior.uniform(m.secrets), distance, evaluated_under)


@checked_arguments
def minimax(
    m: Mechanism,
    distance: DistanceLike,
    over: Over = "secrets",
    *,
    evaluated_under: Prior | None = None,
) -> Attack:
    """The attack that minimises the largest error, by linear programming.

    ``over="secrets"`` minimises max_s E_s (Shokri, PETS 2015, eq. 28), ``over="pairs"`` the largest
    Pr{t|s} d(t,s) over secrets and estimates (Shokri, PETS 2015, eq. 29). ``value`` is that
    maximum, recomputed from the returned strategy. ``lower_bound`` follows from the dual solution:
    for weights w(t,s) >= 0 that sum to one (for secrets: w(s), the prior that favours the user
    most) every strategy has value >= Σ_o min_t Σ_s w(t,s) p(o|s) d(t,s).

    Raises
    ------
    ProblemError
        When ``over`` is unknown; ``TooLargeError`` when the program exceeds memory.
    SolverError
        When the gap between the two is not closed to 1e-6 of ``value``.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.Mechanism(sides, sides, [[0.75, 0.25], [0.5, 0.5]])
    >>> attack = om.attacks.minimax(m, om.distances.hamming())
    >>> print(round(attack.value, 6), round(attack.lower_bound, 6))
    0.4 0.4
    """
    one_of(over, _METHODS, "over")
    memory.require(
        100.0 * len(m.secrets) ** 2 * len(m.observables),
        what=f"a min-max attack on {len(m.secrets):,} secrets and {len(m.observables):,} "
        "observables",
        where="minimax",
        remedy="Use a coarser domain, or attacks.optimal_attack or prior_free",
    )
    distances = _distances(m, distance)
    simple = prior_free(m, distance)
    best = _largest_error(m, simple.strategy, distances, over)
    strategy, bound = simple.strategy, 0.0
    for method in _METHODS[over]:
        if _solved(best, bound):
            break
        # in units of a value that can be reached, the solver's tolerances are relative ones
        scaled = np.minimum(distances / best, _DEAR)
        found, weights = _solve_minimax(m, scaled, over, method)
        value = _largest_error(m, found, distances, over)
        if value < best:
            strategy, best = found, value
        bound = max(bound, _proved(m, weights, distances, over))
    if not _solved(best, bound):
        raise SolverError(
            f"the best strategy found has value {best:.9g}, and only "
            f"{from_below(bound, 9)} is proved",
            where=f"minimax over {over}",
            remedy="Use a coarser domain, or attacks.optimal_attack or prior_free, which are exact",
        )
    charged = Prior.uniform(m.secrets) if evaluated_under is None else evaluated_under
    return _attack(f"min-max over {over}", m, strategy, distances, charged, best, bound)


@checked_arguments
def evaluate(
    m: Mechanism,
    strategy: ArrayLike,
    prior: Prior,
    *,
    distance: DistanceLike,
    name: str = "given",
) -> Attack:
    """The error of any strategy q(t|o), shape (observables, secrets) (Shokri, PETS 2015, eq. 6, 7,
    18).

    Raises
    ------
    ProblemError
        On a wrong shape, a negative entry, or a row that does not sum to one (within 1e-9).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.Mechanism(sides, sides, [[0.75, 0.25], [0.25, 0.75]])
    >>> prior, d = om.Prior.uniform(sides), om.distances.hamming()
    >>> opposite = [[0, 1], [1, 0]]  # of what was reported
    >>> om.attacks.evaluate(m, opposite, prior, distance=d).error
    0.75
    """
    values = finite_array(strategy, where="strategy", ndim=2)
    shape = (len(m.observables), len(m.secrets))
    if values.shape != shape:
        raise ProblemError(
            f"shape {values.shape} is not (observables, secrets) = {shape}", where="strategy"
        )
    off = np.abs(values.sum(axis=1) - 1).max()
    if (values < 0).any() or off > ROW_SUM_TOLERANCE:
        raise ProblemError(
            f"is not a strategy: least entry {values.min():g}, row sums off 1 by up to {off:.3g}",
            where="strategy",
            remedy="Give non-negative rows that sum to 1, one for every observable",
        )
    return _attack(name, m, values, _distances(m, distance), prior)


@checked_arguments
def sharpened(prior: Prior, top: int = 2, evidence: float = 0.5) -> Prior:
    """The prior of an adversary who knows more about the most frequent secrets (Shokri, PETS 2015,
    section 9.2).

    (1 - evidence) π + evidence π(·|the ``top`` most likely secrets): at 0 the prior itself, at 1
    the adversary believes in these secrets only (home and work, say). The result majorises π, so
    its entropy is never larger. Of equally likely secrets the first ones count as frequent.

    Raises
    ------
    ProblemError
        Unless ``top`` is a whole number >= 1 and ``evidence`` in [0, 1].

    Examples
    --------
    >>> places = om.Domain(["home", "work", "gym", "park"])
    >>> prior = om.Prior(places, [0.4, 0.3, 0.2, 0.1])
    >>> print(om.attacks.sharpened(prior, top=2, evidence=1).weights.round(4))  # 4/7 and 3/7
    [0.5714 0.4286 0.     0.    ]
    """
    count, share = whole(top, "top", least=1), float(probability(evidence, "evidence"))
    frequent = np.zeros(len(prior))
    leading = np.argsort(-prior.weights, kind="stable")[:count]
    frequent[leading] = prior.weights[leading]
    return Prior(
        prior.domain, (1 - share) * prior.weights + share * frequent / frequent.sum(), prior.binning
    )


def _distances(m: Mechanism, distance: DistanceLike) -> Floats:
    return distance_matrix(distance, m.secrets, m.secrets, where="distance")


def _cheapest(
    name: str, m: Mechanism, prior: Prior, distance: DistanceLike, charged: Prior | None
) -> Attack:
    """The attack that plays the estimate of least cost for every observable."""
    distances = _distances(m, distance)
    cost = posterior(m, prior) @ distances.T
    strategy = np.zeros_like(cost)
    strategy[np.arange(len(cost)), cost.argmin(axis=1)] = 1.0
    return _attack(name, m, strategy, distances, prior if charged is None else charged)


def _attack(
    name: str,
    m: Mechanism,
    strategy: Floats,
    distances: Floats,
    prior: Prior,
    value: float | None = None,
    lower_bound: float | None = None,
) -> Attack:
    per_secret = (m.matrix * (strategy @ distances).T).sum(axis=1)
    error = float(prior_weights(m, prior) @ per_secret)
    return Attack(name, strategy, error, per_secret, value, lower_bound)


_DEAR = 1e7
"""Distances beyond this many times a value in reach are cut to it where a strategy is searched for:
it is not worth while to risk them. What is found is judged by the distances as they are."""


def _solved(value: float, bound: float) -> bool:
    """Beside the value alone: a large distance says nothing about how near to it the bound is."""
    return value - bound <= 1e-6 * value


def _proved(m: Mechanism, weights: Floats, distances: Floats, over: Over) -> float:
    """Σ_o min_t Σ_s w[t,s] p(o|s) d(t,s) over the sum of the weights, rounded down by more than its
    sums, and those of the value that it is compared with, may be off."""
    least = math.fsum(((weights * distances) @ m.matrix).min(axis=0).tolist())
    whole_weight = math.fsum((weights[0] if over == "secrets" else weights).ravel().tolist())
    units = 2 * (len(m.secrets) + len(m.observables)) + 16
    return least / whole_weight * (1 - units * UNIT)


def _largest_error(m: Mechanism, strategy: Floats, distances: Floats, over: Over) -> float:
    errors = (m.matrix @ strategy) * distances.T
    return float(errors.sum(axis=1).max() if over == "secrets" else errors.max())


def _solve_minimax(
    m: Mechanism, distances: Floats, over: Over, method: _Options
) -> tuple[Floats, Floats]:
    """A strategy (n_o, n_t) and dual weights (n_t, n_s): made non-negative, not trusted further.

    Variables are q(t|o) in the order (t, o), then the maximum y. A row says that the error of a
    secret, or of a secret and an estimate, is at most y.
    """
    from optmech.base.highs import highs_run

    count, observables = len(m.secrets), len(m.observables)
    blocks = [sp.csr_array(m.matrix * distances[t][:, None]) for t in range(count)]
    errors = sp.hstack(blocks) if over == "secrets" else sp.block_diag(blocks)
    sums = sp.hstack([sp.eye_array(observables)] * count)
    rows = sp.csr_array(sp.block_array([[errors, -np.ones((errors.shape[0], 1))], [sums, None]]))
    cost = np.append(np.zeros(rows.shape[1] - 1), 1.0)
    lower = np.repeat([-np.inf, 1.0], [errors.shape[0], observables])
    upper = np.repeat([0.0, 1.0], [errors.shape[0], observables])
    most = np.full(rows.shape[1], np.inf)
    solution = highs_run(cost, rows, lower, upper, most, **method).getSolution()
    played = np.array(solution.col_value)[:-1].reshape(count, observables).T
    prices = -np.array(solution.row_dual)[: errors.shape[0]].reshape(-1, count)
    weights = _normalised(prices.reshape(1, -1)).reshape(prices.shape)
    return _normalised(played), np.broadcast_to(weights, (count, count))


def _normalised(rows: Floats) -> Floats:
    """Rows clipped to >= 0 and scaled to sum to one; a row without any positive entry is uniform,
    so that whatever a solver returns is a usable, if bad, answer."""
    clipped = np.where(np.isfinite(rows), np.maximum(rows, 0.0), 0.0)
    clipped[clipped.sum(axis=1) == 0] = 1.0
    return normalised_rows(clipped)
