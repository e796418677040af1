"""How much more one mechanism can leak than another for a known prior: the additive refinement
metric for gains of at most 1 (``refinement.add_metric`` of libqif); and two versions of a design:
which rows are the same, and what the two reveal together.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from optmech.analysis.measures import prior_weights
from optmech.analysis.probabilities import joint
from optmech.base.arrays import Floats
from optmech.base.labels import label_text
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, TooLargeError
from optmech.exact.number import Exact, rounded_down, rounded_up
from optmech.exact.numerators import dot
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain, part_of
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech_leakage.composition import Parallel, parallel
from optmech_leakage.vulnerability import (
    drawn,
    fractions,
    posterior_vulnerability,
    rational_rows,
    reduced,
    require_same_secrets,
)

_GRID = 2.0**-40
_PROGRAM = 300_000
"""Secrets times observables of both, beyond which the linear program takes minutes."""


@record
class RefinementDistance(Shown):
    """Bounds of how much more the second mechanism can leak than the first.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> a = om.mechanisms.randomized_response(sides, "ln 2")
    >>> b = om.mechanisms.randomized_response(sides, "ln 3")
    >>> found = om.leakage.refinement_distance(a, b, om.Prior.uniform(sides))
    >>> print(round(found.lower, 4), round(found.upper, 4))
    0.25 0.25
    """

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
    to at most 1, that stays below b everywhere (docs/theory/adversaries.md, "The additive
    refinement metric"). A linear program proposes R and a gain; both are evaluated in rational
    numbers. ``refines(a, b).deficiency`` is the same for gains from 0 to 1 and the uniform prior.

    Raises
    ------
    ProblemError
        Where the mechanisms have different secrets, and where the prior is over others.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> a = om.mechanisms.randomized_response(sides, "ln 3")
    >>> b = om.mechanisms.randomized_response(sides, "ln 2")
    >>> found = om.leakage.refinement_distance(a, b, om.Prior.uniform(sides))
    >>> print(round(found.upper, 6))  # b is a, blurred
    0.0
    """
    require_same_secrets(a, b)
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
    from optmech.base.highs import TIGHT, highs_run

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
    solution = highs_run(
        cost, rows, np.full(len(top), -np.inf), top, used, small_matrix_value=1e-12, **TIGHT
    ).getSolution()
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
    columns = second.columns
    for row, own in zip(made, first.columns, strict=True):
        for z, limit in enumerate(columns):
            if any(p and not q for p, q in zip(own, limit, strict=True)):
                row[z] = Fraction(0)
        sent = max(sum(row), Fraction(1))
        row[:] = [value / sent for value in row]
    total = Fraction(0)
    for z, limit in enumerate(columns):
        sums = [dot(line, (row[z] for row in made)) for line in first.rows]
        limits = zip(limit, sums, strict=True)
        shares = [Fraction(q * first.total) / (second.total * got) for q, got in limits if got]
        total += min([Fraction(1), *shares]) * sum(sums)
    return total / first.total


class Change(NamedTuple):
    """How well a report of one secret tells which of two versions made it.

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> old = om.mechanisms.randomized_response(sides, "ln 3")
    >>> new = om.mechanisms.randomized_response(sides, "ln 2")
    >>> change = om.leakage.versions(old, new).change("left")
    >>> print(round(float(change.variation), 4))  # 3/4 - 2/3
    0.0833
    """

    epsilon: float
    """max_o |ln p'(o|s) / p(o|s)|: an ``Exact`` unless infinite; 0 for a row that is kept."""
    variation: Exact
    """Their total variation: the share of reports that a change of the row must move."""


@record
class Versions(Shown):
    """Two mechanisms whose secrets and observables are told apart by their labels.

    Examples
    --------
    >>> old = om.mechanisms.randomized_response(om.Domain(["a", "b"]), "ln 3")
    >>> new = om.mechanisms.randomized_response(om.Domain(["a", "b", "c"]), "ln 3")
    >>> both = om.leakage.versions(old, new)
    >>> print(both.kept, both.changed)
    () ('a', 'b')
    >>> print(both.prior(om.Prior.uniform(new.secrets)).domain.labels)
    ('a', 'b')
    >>> print(float(both.change("a").variation) > 0)
    True
    """

    old: Mechanism
    new: Mechanism

    @cached_property
    def common(self) -> tuple[Hashable, ...]:
        """The secrets of both, in the order of the new version."""
        before = set(self.old.secrets.labels)
        return tuple(label for label in self.new.secrets.labels if label in before)

    @cached_property
    def added(self) -> tuple[Hashable, ...]:
        """Secrets of the new version only."""
        return self._alone(self.new)

    @cached_property
    def removed(self) -> tuple[Hashable, ...]:
        """Secrets of the old version only."""
        return self._alone(self.old)

    def _alone(self, m: Mechanism) -> tuple[Hashable, ...]:
        shared = set(self.common)
        return tuple(label for label in m.secrets.labels if label not in shared)

    @cached_property
    def _rows(self) -> tuple[dict[Hashable, dict[Hashable, Fraction]], ...]:
        """p(o|s) where it is positive, by label, of the old and the new version."""
        return tuple(
            {
                label: {o: p for o, p in zip(m.observables.labels, row, strict=True) if p}
                for label, row in zip(m.secrets.labels, fractions(m), strict=True)
            }
            for m in (self.old, self.new)
        )

    @cached_property
    def kept(self) -> tuple[Hashable, ...]:
        """Secrets whose rows are the same in both, exactly."""
        before, after = self._rows
        return tuple(label for label in self.common if before[label] == after[label])

    @cached_property
    def changed(self) -> tuple[Hashable, ...]:
        """Secrets of both whose rows differ."""
        same = set(self.kept)
        return tuple(label for label in self.common if label not in same)

    @cached_property
    def together(self) -> Parallel:
        """A report of each version about one of the common secrets, drawn independently: what is
        revealed to whoever sees both when every device draws anew."""
        secrets = self.new.secrets
        if len(self.common) < len(secrets):
            secrets = part_of(secrets, [secrets.index(label) for label in self.common])
        return parallel(_restricted(self.old, secrets), _restricted(self.new, secrets))

    @checked_arguments
    def prior(self, given: Prior) -> Prior:
        """A prior over the new version's secrets, of the common ones alone. Raises ProblemError
        where these have no mass."""
        weights = given.weights[[given.domain.index(label) for label in self.common]]
        return Prior(self.together.first.secrets, weights)

    def change(self, label: Hashable) -> Change:
        """What a report about one of the common secrets says of its version. Raises ProblemError
        on a label of another."""
        if label not in self._rows[0] or label not in self._rows[1]:
            raise ProblemError(
                f"{label_text(label)} is no secret of both versions",
                where="label",
                remedy="Give one of common",
            )
        before, after = (rows[label] for rows in self._rows)
        apart = sum(
            (abs(before.get(o, Fraction(0)) - after.get(o, Fraction(0))) for o in before | after),
            Fraction(0),
        )
        told = math.inf
        if before.keys() == after.keys():
            ratios = [before[o] / after[o] for o in before]
            told = Exact(Fraction(1), max(max(ratio, 1 / ratio) for ratio in ratios))
        return Change(told, Exact(apart / 2))

    @cached_property
    def most_changed(self) -> Hashable | None:
        """The secret whose row moved most, in total variation; None where none did."""
        found = ((self.change(label).variation.factor, label) for label in self.changed)
        return max(found, key=lambda pair: pair[0], default=(None, None))[1]


@checked_arguments
def versions(old: Mechanism, new: Mechanism) -> Versions:
    """Two versions of a mechanism, matched by the labels of secrets and observables: ``kept`` and
    ``changed`` rows, ``together`` (what a report of each reveals), ``change(label)``.

    Raises
    ------
    ProblemError
        Where they have no secret in common.

    Examples
    --------
    >>> old = om.mechanisms.randomized_response(om.Domain(["a", "b"]), "ln 3")
    >>> new = om.mechanisms.randomized_response(om.Domain(["b", "a"]), "ln 3")
    >>> print(om.leakage.versions(old, new).changed)  # labels count, not their order
    ()
    """
    found = Versions(old, new)
    if not found.common:
        raise ProblemError(
            "has no secret in common with the old version",
            where="new",
            remedy="Compare designs whose secrets have the same labels",
        )
    return found


def _restricted(m: Mechanism, secrets: Domain) -> Mechanism:
    """The rows of some secrets, which are found by their labels."""
    if secrets == m.secrets:
        return m
    rows = fractions(m)
    chosen = [rows[m.secrets.index(label)] for label in secrets.labels]
    return Mechanism.of(secrets, m.observables, rational_rows(chosen))
