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


def lost(found: Any, pi: Any) -> float:
    """The expected loss |s - o| of a matrix."""
    if not np.asarray(found).size:
        raise ValueError("no mechanism")
    return float((np.asarray(pi)[:, None] * np.asarray(found) * steps(len(pi))).sum())


def bound(pi: Any) -> float:
    """Half of the least loss of constant reports: between 0 and the largest distortion."""
    return 0.5 * float((steps(len(pi)) @ np.asarray(pi, dtype=float)).min())


def least(c: Case, *constraints: Any) -> float:
    """The least expected loss |s - o| under constraints."""
    return om.solve(om.Problem(c.prior, steps(c.n), constraints=constraints)).loss


def largest(c: Case, distance: Any) -> float:
    """The largest distortion with half the least loss of constant reports."""
    problem = om.Problem(
        c.prior,
        steps(c.n),
        objective=om.MaximizeDistortion(distance),
        constraints=[om.LossBound(bound(c.prior.weights))],
    )
    return float(om.measures.distortion(om.solve(problem).mechanism, c.prior, distance))
