"""How much more one mechanism can leak than another for a known prior: the additive refinement
metric for gains of at most 1 (``refinement.add_metric`` of libqif)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import scipy.sparse as sp

from optmech.analysis.leakage.vulnerability import drawn, joint, posterior_vulnerability, reduced
from optmech.analysis.measures import prior_weights
from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.number import rounded_down, rounded_up
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior

_TIGHT: dict[str, str | float] = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
_GRID = 2.0**-40
_PROGRAM = 300_000
"""Secrets times observables of both, beyond which the linear program takes minutes."""


@dataclass(frozen=True, eq=False, repr=False)
class RefinementDistance(Shown):
    """Bounds of how much more the second mechanism can leak than the first."""

    lower: float
    """What ``gain`` earns more after the second, exactly but for the last digit."""
    upper: float
    """One less the mass of the second that post-processing of the first makes."""
    gain: Floats
    """g(w, s) <= 1, shape (guesses, secrets); the last guess earns 0."""


@checked_arguments
def refinement_distance(a: Mechanism, b: Mechanism, prior: Prior) -> RefinementDistance:
    """sup V_g[π, b] - V_g[π, a] over all gains g <= 1 with a guess that earns 0, as a refusal to
    guess does: 0 exactly where b is a post-processing of a on the prior's support, at most 1.

    It is one less the largest mass Σ π(s) a(y|s) R(y,z) of a post-processing R of a, whose rows sum
    to at most 1, that stays below b everywhere (docs/theory.md, "The additive refinement metric").
    A linear program proposes R and a gain; both are evaluated in rational numbers.
    ``refines(a, b).deficiency`` is the same for gains from 0 to 1 and the uniform prior.

    Raises
    ------
    ProblemError
        Where the mechanisms have different secrets, and where the prior is over others.
    """
    if a.secrets.labels != b.secrets.labels:
        raise ProblemError(
            "have different secrets", where="a and b", remedy="Compare mechanisms for the same"
        )
    weights = prior_weights(a, prior)[:, None]
    few, fewer = reduced(drawn(a)), reduced(drawn(b))
    if len(a.secrets) * len(few.observables) * len(fewer.observables) > _PROGRAM:
        raise TooLargeError(
            f"a remap from {len(few.observables):,} to {len(fewer.observables):,} observables for "
            f"{len(a.secrets):,} secrets is too large to search for",
            where="refinement_distance",
            remedy="Compare mechanisms with fewer observables",
        )
    remap, gain = _programmed(few.matrix * weights, fewer.matrix * weights)
    whole = np.minimum(np.round(gain / _GRID) * _GRID, 1.0)
    whole = np.vstack([whole, np.zeros(len(a.secrets))])
    told = (posterior_vulnerability(m, prior, whole).factor for m in (fewer, few))
    more = next(told) - next(told)
    matched = _matched(few, fewer, prior, remap)
    return RefinementDistance(max(0.0, rounded_down(more)), rounded_up(1 - matched), whole)


def _programmed(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The R of most mass with (first R) <= second, and the gain of its dual, in floats.

    Every unknown is R(y,z) over its own limit, every row over its right side: no entry is above 1,
    and what the solver is off by is a share of each, however small they are.
    """
    from optmech.lp.highs import highs_solution

    (count, mine), theirs = first.shape, second.shape[1]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratios = second[:, None, :] / np.where(first > 0, first, np.nan)[:, :, None]
        limit = np.fmin(np.nan_to_num(np.fmin.reduce(ratios, axis=0), nan=1.0), 1.0)
        shares = np.nan_to_num(limit / ratios, nan=0.0)
    s, y, z = np.nonzero(shares)
    reached = sp.coo_array(
        (shares[s, y, z], (s * theirs + z, y * theirs + z)), shape=(count * theirs, mine * theirs)
    )
    y, z = np.nonzero(limit)
    sums = sp.coo_array((limit[y, z], (y, y * theirs + z)), shape=(mine, mine * theirs))
    rows = sp.csr_array(sp.vstack([reached, sums]))
    cost = -(first.sum(axis=0)[:, None] * limit).ravel()
    top = np.ones(rows.shape[0])
    used = (limit > 0).ravel().astype(float)
    solution = highs_solution(
        cost, rows, np.full(len(top), -np.inf), top, used, small_matrix_value=1e-12, **_TIGHT
    )
    remap = np.array(solution.col_value).reshape(mine, theirs) * limit
    prices = np.maximum(-np.array(solution.row_dual), 0.0)
    paid, spared = prices[: count * theirs].reshape(count, theirs), prices[count * theirs :]
    return np.maximum(remap, 0.0), (1 - _raised(first, second, paid, spared)).T


def _raised(first: Floats, second: Floats, paid: Floats, spared: Floats) -> Floats:
    """Prices λ(s,z) of what R may not exceed, such that after a report y no guess earns more than
    ``spared`` (y): Σ_s first(s,y) (1 - λ(s,z)) is at most that. Where it is more, the price that
    costs least is raised: one with second(s,z) = 0 costs nothing."""
    out = np.divide(paid, second, out=np.zeros_like(paid), where=second > 0)
    for y, z in np.ndindex(first.shape[1], second.shape[1]):
        over = float(first[:, y] @ (1 - out[:, z])) - spared[y]
        used = np.flatnonzero(first[:, y])
        if over > 0 and len(used):
            s = used[(second[used, z] / first[used, y]).argmin()]
            if second[s, z] < first[s, y]:
                out[s, z] += over / first[s, y]
    return out


def _matched(few: Mechanism, fewer: Mechanism, prior: Prior, remap: Floats) -> Fraction:
    """The mass of a remap that is made to stay below ``fewer``, exactly."""
    first, second = joint(few, prior), joint(fewer, prior)
    made = [[Fraction(value) for value in row] for row in remap.tolist()]
    columns = list(zip(*second.rows, strict=True))
    for y, own in enumerate(first.columns):
        for z, limit in enumerate(columns):
            if any(p and not q for p, q in zip(own, limit, strict=True)):
                made[y][z] = Fraction(0)
        sent = sum(made[y], Fraction(0))
        if sent > 1:
            made[y] = [value / sent for value in made[y]]
    total = Fraction(0)
    for z, limit in enumerate(columns):
        sums = [
            sum((p * row[z] for p, row in zip(line, made, strict=True) if p), Fraction(0))
            for line in first.rows
        ]
        share = min(
            (Fraction(q * first.total) / (second.total * got)
             for got, q in zip(sums, limit, strict=True) if got),
            default=Fraction(1),
        )  # fmt: skip
        total += min(share, Fraction(1)) * sum(sums, Fraction(0))
    return total / first.total
