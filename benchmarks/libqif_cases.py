"""Random mechanisms, priors and gains for ``libqif.py``, as optmech and as libqif take them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

import optmech as om
from optmech.spaces.rationals import RationalRows, Shares


@dataclass
class Case:
    """One random mechanism, another one, a prior, a gain, and what they are for libqif."""

    seed: int
    rows: list[list[int]]
    others: list[list[int]]
    weights: list[int]
    gain: list[list[int]]
    mask: list[int]
    composed: bool

    @classmethod
    def made(cls, seed: int) -> Case:
        """The same seed, the same case."""
        rng = np.random.default_rng(seed)
        n, k, z, w = rng.integers([2, 1, 1, 1], [8, 8, 8, 6])
        rows = _rows(rng, n, k)
        composed = seed % 2 == 0
        others = _rows(rng, k if composed else n, z)
        weights = rng.integers(0, 6, n)
        weights[rng.integers(n)] += 1
        mask = rng.permutation(np.arange(n) % 2)
        gain = rng.integers(0, 6, (w, n))
        gain[:, weights.argmax()] += 1
        return cls(
            seed, rows, others, weights.tolist(), gain.tolist(), mask.tolist(), bool(composed)
        )

    @cached_property
    def m(self) -> om.Mechanism:
        return _mechanism(self.rows)

    @cached_property
    def second(self) -> om.Mechanism:
        if self.composed:
            after = _mechanism(self.others)
            return self.m.then(om.Mechanism.of(self.m.observables, after.observables, after.exact))
        return _mechanism(self.others)

    @property
    def n(self) -> int:
        return len(self.rows)

    @property
    def shares(self) -> np.ndarray:
        """π in fractions."""
        return np.array(Shares.of(self.prior, "prior").fractions, dtype=object)

    @property
    def likeliest(self) -> Fraction:
        """max π."""
        return max(self.shares)

    @property
    def bound(self) -> Fraction:
        """See ``bound``."""
        return bound(self.shares)

    @property
    def middle(self) -> Fraction:
        """See ``middle``."""
        return middle(np.array(self.gain, dtype=object), self.shares)

    @property
    def predicate(self) -> np.ndarray:
        """The gain of a guess of whether the mask holds."""
        return np.stack([np.array(self.mask, dtype=float), 1 - np.array(self.mask, dtype=float)])

    def risk(self, loss: Any, *, blind: bool = False) -> Fraction:
        """The least expected loss of a guess, before or after a report."""
        gain = -np.asarray(loss, dtype=float)
        if blind:
            return -om.leakage.prior_vulnerability(self.prior, gain).factor
        return -om.leakage.posterior_vulnerability(self.m, self.prior, gain).factor

    @cached_property
    def prior(self) -> om.Prior:
        return om.Prior(self.m.secrets, self.weights)

    def given(self, exact: bool) -> dict[str, Any]:
        """Arguments for libqif, as doubles or as fractions."""
        pi = Shares.of(self.prior, "prior").fractions
        first, second = _fractions(self.m), _fractions(self.second)
        values = {"C": first, "D": second, "G": [[Fraction(v) for v in row] for row in self.gain]}
        made = {name: np.array(rows, dtype=object) for name, rows in values.items()}
        made["pi"] = np.array(pi, dtype=object)
        if not exact:
            made = {name: array.astype(float) for name, array in made.items()}
        made["P"] = np.array(self.mask, dtype=np.uint64)
        number = Fraction if exact else float
        made["d"] = lambda i, j: number(abs(int(i) - int(j)))
        made["g"] = lambda w, s: number(self.gain[int(w)][int(s)])
        return made


def _rows(rng: np.random.Generator, n: int, k: int) -> list[list[int]]:
    rows = rng.integers(0, 6, (n, k)) * (rng.random((n, k)) < 0.8)
    rows[np.arange(n), rng.integers(k, size=n)] += 1
    if k > 2 and rng.random() < 0.3:
        rows[:, 0] = 2 * rows[:, 1]
        rows[rows.sum(axis=1) == 0, -1] = 1
    if n > 2 and rng.random() < 0.2:
        rows[0] = rows[1]
    return rows.tolist()


def _mechanism(rows: list[list[int]]) -> om.Mechanism:
    secrets, seen = om.Domain(range(len(rows))), om.Domain(range(len(rows[0])))
    return om.Mechanism.of(secrets, seen, RationalRows(tuple(map(tuple, rows))))


def _fractions(m: om.Mechanism) -> list[list[Fraction]]:
    assert m.exact is not None
    return [[Fraction(v, sum(row)) for v in row] for row in m.exact.rows]


def steps(n: int, k: int | None = None) -> np.ndarray:
    """|i - j|, shape (n, k)."""
    return np.abs(np.subtract.outer(np.arange(n, dtype=float), np.arange(k or n)))


def line(i: int, j: int) -> float:
    """The same as a function of two indices."""
    return float(abs(i - j))


def over(top: Any, bottom: Any) -> Any:
    """A quotient: infinite over 0, and 1 for 0 / 0."""
    a, b = (getattr(value, "factor", value) for value in (top, bottom))
    if b == 0:
        return Fraction(1) if a == 0 else math.inf
    return a / b


def positive(values: Any) -> np.ndarray:
    """Sorted, without zeros."""
    array = np.asarray(values)
    return np.sort(array[array != 0])


def earned_by(guesses: Any, gain: Any, pi: Any, C: Any) -> Any:
    """What guesses, one for each observable, earn."""
    joint = np.asarray(pi)[:, None] * np.asarray(C)
    played = np.asarray(gain)[np.ravel(guesses).astype(int)]
    return (played.T * joint).sum()


def witnessed(q: Any, C: Any, D: Any) -> bool:
    """libqif's verdict, after multiplying its witness out: an error where that does not show it."""
    holds, gain, remap = q.refinement.refined_by_witness(C, D)
    if holds:
        off = np.abs(np.asarray(C @ remap - D, dtype=float)).max()
        if off > 1e-6:
            raise ValueError(f"the remap is off by {off:g}")
        return True
    even = np.array([Fraction(1, len(C))] * len(C), dtype=object)
    even = even if C.dtype == object else even.astype(float)
    earned = q.measure.g_vuln.posterior
    if not earned(gain, even, D) > earned(gain, even, C):
        raise ValueError("the gain does not show it")
    return False


def updated(q: Any, pi: Any, C: Any) -> float:
    """The log-likelihood per report that libqif's update reaches for the expected reports."""
    share = np.asarray(pi @ C, dtype=float)
    out = np.asarray(q.channel.iterative_bayesian_update(C, share)[0] @ C)
    return float((share[share > 0] * np.log(out[share > 0])).sum())


def estimated(c: Case) -> float:
    """The same for ours."""
    share = c.prior.weights @ c.m.matrix
    return om.estimate.prior(c.m, share).log_likelihood / share.sum()


def even(C: Any) -> Any:
    """The uniform prior, of the kind of numbers that C has."""
    return np.array([C.dtype.type(1) if C.dtype != object else Fraction(1)] * len(C)) / len(C)


def two_rows(q: Any, P: Any, pi: Any, C: Any) -> Any:
    """The Bayes vulnerability of the channel that starts with whether a predicate holds."""
    prior, rows = q.measure.pred_vuln.binary_channel(P, pi, C)
    return q.measure.bayes_vuln.posterior(np.ravel(prior), rows)


def by_bayes(q: Any, G: Any, pi: Any, C: Any) -> Any:
    """What the best guess earns, by the Bayes vulnerability that libqif reduces it to."""
    prior, before, times, plus = q.measure.g_vuln.g_to_bayes(G, pi)
    return times * q.measure.bayes_vuln.posterior(prior, before @ C) + plus


def lost(found: Any, pi: Any) -> Any:
    """The expected loss |s - o| of a matrix, of the kind of numbers that it has."""
    matrix = np.asarray(found)
    if not matrix.size:
        raise ValueError("no mechanism")
    return sum(p * v * abs(i - j) for (i, p), row in zip(enumerate(pi), matrix, strict=True)
               for j, v in enumerate(row))  # fmt: skip


def bound(pi: Any) -> Any:
    """Half of the least loss of constant reports: between 0 and the largest distortion."""
    return min(sum(p * abs(i - j) for i, p in enumerate(pi)) for j in range(len(pi))) / 2


def middle(G: Any, pi: Any) -> Any:
    """Between what a guess earns blind and what it earns knowing the secret."""
    blind = max(sum(p * g for p, g in zip(pi, row, strict=True)) for row in G)
    return (blind + sum(p * max(column) for p, column in zip(pi, G.T, strict=True))) / 2


def fewer(pi: Any) -> int:
    """A number of observables below that of the secrets."""
    return (len(pi) + 1) // 2


def far(pi: Any) -> Any:
    """How far reports may lie, of the kind of numbers that the prior has."""
    return pi[0] * 0 + (len(pi) + 1) // 2


def with_row(made: Any, pi: Any, C: Any) -> Any:
    """Bayes vulnerability with a new secret of probability 1/4 and the row made for it."""
    quarter = Fraction(1, 4) if C.dtype == object else 0.25
    row = made(3 * quarter * pi, quarter, C)
    old = (3 * quarter * pi[:, None] * C).max(axis=0)
    return sum(max(a, quarter * b) for a, b in zip(old, np.ravel(row), strict=True))


def entropic(q: Any, pi: Any) -> tuple[float, float]:
    """Expected loss and mutual information, in nats, of the mechanism that libqif's form of
    Blahut's algorithm ends with."""
    made = q.mechanism.shannon.max_entropy_given_same_loss(pi, 0 * pi + 1 / len(pi), line)
    return lost(made, pi), q.measure.shannon.add_leakage(pi, made) * math.log(2)


@dataclass(frozen=True)
class Bracket:
    """A design's value, and its certified bounds."""

    value: float
    lower: Fraction
    upper: Fraction


_PRIOR = Fraction(1, 10**12)
"""Priors are rounded to floats in designs, and so is what is asked of them."""


def least(c: Case, *constraints: Any, objective: Any = "expected_loss", seen: int = 0) -> Bracket:
    """The least loss |s - o| under constraints, or the best of another objective."""
    outputs = om.Domain.range(seen) if seen else None
    problem = om.Problem(
        c.prior, steps(c.n, seen), outputs, objective=objective, constraints=constraints
    )
    design = om.solve(problem)
    ends = sorted((Fraction(design.objective), Fraction(design.bound)))
    return Bracket(design.objective, ends[0] - _PRIOR, ends[1] + _PRIOR)


def apart(c: Case) -> Bracket:
    """How much more the second of both can leak."""
    found = om.leakage.refinement_distance(c.m, c.second, c.prior)
    return Bracket(found.upper, Fraction(found.lower) - _PRIOR, Fraction(found.upper) + _PRIOR)
