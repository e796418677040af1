"""Every inequality of a statement, decided exactly on an integer matrix (theory: "The check").

Ratios and (ε, δ) sums are first evaluated in floating point with a proved bound of its error;
what that cannot decide is decided in whole numbers against enclosures of e^{εd}.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.certificate import values
from optmech.certificate.check import Check, reported
from optmech.certificate.factors import Factors
from optmech.certificate.known import require_known
from optmech.exact.exponentials import at_most, bracket, exp_lower, exp_range
from optmech.exact.numerators import Numerators, integers
from optmech.ratios.enclosures import divergence_at_most
from optmech.ratios.generators import generator
from optmech.statement.statement import (
    Approximate,
    Distortion,
    Divergence,
    LiftedRatio,
    LossLimit,
    Ratio,
    Statement,
)

_UNIT = 2.0**-53
_SAFE = 1 - 8 * _UNIT
"""Covers the roundings of two probabilities, of the factor, and of up to three operations."""
_LOST = 1e-280
"""More than underflow costs a sum."""
_NORMAL = 2.0**-960
"""Below this, products could lose digits to underflow: decided in whole numbers."""

Place = tuple[int, int, int]


def check_exact(statement: Statement, released: Numerators) -> tuple[Check, ...]:
    """Check every inequality that the statement claims; never raises on a bad matrix.
    VerificationError where the statement has parts that are not known here."""
    require_known(statement)
    shape = released.shape
    if shape != (statement.secrets, statement.observables):
        detail = f"shape {shape} instead of {(statement.secrets, statement.observables)}"
        return (Check("matrix", None, 1, False, np.inf, detail),)
    return tuple(_checks(statement, released))


def _checks(statement: Statement, released: Numerators) -> Iterator[Check]:
    yield Check(
        "distributions",
        None,
        statement.secrets * (statement.observables + 1),
        True,
        0.0,
        f"whole numbers over 2^{released.bits}, every row with sum 2^{released.bits}",
    )
    if not statement.allowed.all():
        yield _support(statement, released)
    for ratio in statement.ratios:
        yield _ratio(ratio, released)
    for lifted in statement.lifted:
        yield _lifted(lifted, released)
    for approximate in statement.approximate:
        yield _approximate(approximate, released)
    factors = Factors.of(statement)
    for divergence, limits in zip(statement.divergences, factors.divergences, strict=True):
        yield _divergence(divergence, limits, released)
    for distortion, (_, least) in zip(statement.distortion, factors.minima, strict=True):
        yield _distortion(distortion, least, released)
    for limit, (most, _) in zip(statement.loss_limits, factors.maxima, strict=True):
        yield _loss(statement, limit, most, released)


def _support(statement: Statement, released: Numerators) -> Check:
    outside = [released.rows[s][o] for s, o in np.argwhere(~statement.allowed).tolist()]
    worst = max(outside) / (1 << released.bits)
    return Check(
        "support", None, len(outside), max(outside) == 0, worst, f"largest entry {worst:.3g}"
    )


def _ratio(ratio: Ratio, released: Numerators) -> Check:
    rows, epsilon = released.rows, ratio.epsilon
    factor = exp_range(epsilon, ratio.distance)[0] * _SAFE
    classes: dict[tuple[int, ...], int] = {}
    same = np.array([classes.setdefault(row, len(classes)) for row in rows])
    matrix = released.matrix
    used = reported(matrix) if ratio.window is None else np.arange(matrix.shape[1])
    scan = _Scan(matrix[:, used], columns=used)
    for i in range(len(rows)):
        others = np.flatnonzero(np.isfinite(ratio.distance[i]) & (same != same[i]))
        equal = int((np.isfinite(ratio.distance[i]) & (same == same[i])).sum())
        window = None if ratio.window is None else np.flatnonzero(ratio.window[i])
        scan.count += equal * (matrix.shape[1] if window is None else len(window))
        scan.count += len(others) * (matrix.shape[1] - len(used))
        scan.row(i, others, factor[i, others], window)
    failed = _deciding(
        (at_most(rows[i][o], rows[j][o], epsilon, float(ratio.distance[i, j])), (i, j, o))
        for i, j, o in scan.open
    )
    name = "ratio" if ratio.window is None else "windowed ratio"
    words = "largest p(o|s) / (e^r p(o|s')) = {:.15g} at s={}, s'={}, o={}"
    return scan.verdict(name, ratio.index, failed, words)


class _Scan:
    """Inequalities left <= factor · right in floating point: the tightest, and the undecided.
    ``columns`` are the observables that the columns stand for."""

    def __init__(
        self, left: Floats, right: Floats | None = None, columns: NDArray[np.int64] | None = None
    ) -> None:
        self.left, self.right = left, left if right is None else right
        self.columns = np.arange(left.shape[1]) if columns is None else columns
        self.tiny_left, self.tiny_right = ((p > 0) & (p < _NORMAL) for p in (left, self.right))
        normal = self.right.min(initial=1.0) >= _NORMAL and not self.tiny_left.any()
        self.inverse = 1 / self.right if normal else None
        self._product = np.empty_like(self.right)
        self.count = 0
        self.worst, self.where = 0.0, (0, 0, 0)
        self.open: list[Place] = []

    def row(
        self, i: int, others: NDArray[np.int64], factor: Floats, window: NDArray[np.int64] | None
    ) -> None:
        """left[i, o] <= factor[j] right[j, o] for j in ``others``, o in ``window``."""
        if window is None and self.inverse is not None:
            self._whole_row(self.inverse, i, others, factor)
            return
        columns = slice(None) if window is None else window
        left, right = self.left[i, columns], self.right[others][:, columns]
        self.count += right.size
        if not right.size:
            return
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            tightness = np.where(left > 0, left / (right * factor[:, None]), 0.0)
        place = self.columns if window is None else self.columns[window]
        k, o = divmod(int(tightness.argmax()), len(place))
        if tightness[k, o] > self.worst:
            self.worst, self.where = float(tightness[k, o]), (i, int(others[k]), int(place[o]))
        undecided = (tightness > 1) | self.tiny_left[i, columns]
        if self.tiny_right.any():
            undecided |= self.tiny_right[others][:, columns]
        if undecided.any():
            self.open += [(i, int(others[k]), int(place[o])) for k, o in np.argwhere(undecided)]

    def _whole_row(
        self, inverse: Floats, i: int, others: NDArray[np.int64], factor: Floats
    ) -> None:
        """``row`` in all columns where no product or quotient loses digits."""
        self.count += len(others) * inverse.shape[1]
        if not len(others):
            return
        np.multiply(inverse, self.left[i], out=self._product)
        tightness = self._product.max(axis=1)[others] / factor
        k = int(tightness.argmax())
        if tightness[k] > self.worst:
            place = int(self.columns[self._product[others[k]].argmax()])
            self.worst, self.where = float(tightness[k]), (i, int(others[k]), place)
        for k in np.flatnonzero(tightness > 1).tolist():
            undecided = self.columns[self._product[others[k]] / factor[k] > 1]
            self.open += [(i, int(others[k]), o) for o in undecided.tolist()]

    def verdict(self, name: str, index: int, failed: Place | None, words: str) -> Check:
        """The check; ``failed`` is an inequality that does not hold, ``words`` has the places."""
        worst = self.worst * _SAFE
        detail = words.format(worst, *(self.where if failed is None else failed))
        if not self.count:
            detail = "constrains nothing"
        elif failed is not None:
            detail += ": too large"
        elif self.open:
            detail += f"; {len(self.open)} decided in whole numbers"
        return Check(name, index, self.count, failed is None, worst, detail)


def _deciding(
    verdicts: Iterator[tuple[bool, Place]],
) -> Place | None:
    return next((where for holds, where in verdicts if not holds), None)


def _lifted(part: LiftedRatio, released: Numerators) -> Check:
    """Whole numbers A Σb <= e^r B Σa, with A = aN and B = bN on one scale."""
    both, scale = values.product(np.vstack([part.left, part.right]), released)
    sums = [sum(row) for row in integers(np.vstack([part.left, part.right]))[0]]
    count = len(part.left)
    unit = 1 << (2 * scale - released.bits)
    left, right = (
        [[int(v) * total for v in row] for row, total in zip(rows, totals, strict=True)]
        for rows, totals in ((both[:count], sums[count:]), (both[count:], sums[:count]))
    )
    scan = _Scan(*(np.array([[v / unit for v in row] for row in rows]) for rows in (left, right)))
    factor = exp_range(part.epsilon, part.scale)[0] * _SAFE
    for k in range(count):
        scan.row(k, np.array([k]), factor[[k]], None)
    failed = _deciding(
        (at_most(left[k][o], right[k][o], part.epsilon, float(part.scale[k])), (k, k, o))
        for k, _, o in scan.open
    )
    words = "largest (λP)(o) / (e^r (λ'P)(o)) = {0:.15g}, inequality {1}, o={3}"
    return scan.verdict("distribution privacy", part.index, failed, words)


def _approximate(part: Approximate, released: Numerators) -> Check:
    matrix = released.matrix
    allowed = bracket(part.delta)[0]
    # cut, so that no digit lost to underflow is blown up; a lower factor is safe
    low = np.minimum(exp_range(part.epsilon, part.scale)[0], 2.0**100)
    widest = int(max(np.diff(part.left.indptr).max(), np.diff(part.right.indptr).max()))
    slack = (2 * widest + 16) * _UNIT
    worst, undecided = 0.0, []
    step = max(1, 2**22 // matrix.size)
    for begin in range(0, len(low), step):
        chunk = slice(begin, begin + step)
        left, right = (
            (side[chunk] @ matrix) / np.asarray(side[chunk].sum(axis=1))[:, None]
            for side in (part.left, part.right)
        )
        over = left * (1 + slack) - right * (low[chunk, None] * (1 - slack))
        spent = np.maximum(over, 0.0).sum(axis=1) * (1 + (matrix.shape[1] + 16) * _UNIT) + _LOST
        worst = max(worst, float(spent.max()))
        undecided += (begin + np.flatnonzero(spent > values.rounded_down(allowed))).tolist()
    failed = next((k for k in undecided if not _spends(part, k, released, allowed)), None)
    detail = f"largest {worst:.9g}, allowed {float(part.delta):.9g}"
    if failed is not None:
        detail += f"; exceeded by pair {failed}"
    elif undecided:
        detail += f"; {len(undecided)} decided in whole numbers"
    return Check("approximate", part.index, len(low), failed is None, worst, detail)


def _spends(part: Approximate, k: int, released: Numerators, allowed: Fraction) -> bool:
    """Σ_o max(0, A_o Σb - e^r B_o Σa) <= δ Σa Σb 2^bits in whole numbers, with e^r from below."""
    (left, first), (right, second) = (
        _combined(side, k, released) for side in (part.left, part.right)
    )
    factor = exp_lower(part.epsilon, float(part.scale[k]), released.bits + 256)
    a, b = factor.denominator * second, factor.numerator * first
    spent = sum(max(0, a * p - b * q) for p, q in zip(left, right, strict=True))
    return bool(spent <= allowed * (factor.denominator * first * second << released.bits))


def _combined(side: sp.csr_array, k: int, released: Numerators) -> tuple[Sequence[int], int]:
    """Row k of a sparse matrix of distributions times N, and its sum, on one scale."""
    chosen = slice(int(side.indptr[k]), int(side.indptr[k + 1]))
    weights, secrets = side.data[chosen], side.indices[chosen].tolist()
    if len(secrets) == 1:
        return released.rows[secrets[0]], 1
    (whole,), _ = integers(weights[None, :])
    rows = zip(*(released.rows[s] for s in secrets), strict=True)
    return [sum(map(operator.mul, whole, column)) for column in rows], sum(whole)


def _divergence(
    part: Divergence, limits: tuple[tuple[Fraction, Fraction], ...], released: Numerators
) -> Check:
    """D_f(λP ‖ λ'P) <= ε · scale by enclosures of the divergence of growing precision."""
    chosen = generator(part.kind)
    both, _ = values.product(np.vstack([part.left, part.right]), released)
    rows = [[int(v) for v in row] for row in both]
    verdicts = [
        divergence_at_most(chosen, p, q, limit)
        for p, q, (limit, _) in zip(rows[: len(limits)], rows[len(limits) :], limits, strict=True)
    ]
    spent = [top for _, top in verdicts]
    k = max(range(len(spent)), key=lambda k: spent[k] / part.limit[k])
    passed = all(holds for holds, _ in verdicts)
    detail = (
        f"largest {part.kind} {spent[k]:.12g}, allowed {part.limit[k]:.12g}, inequality {k}"
        f"{'' if passed else ': too large'}"
    )
    return Check("divergence", part.index, len(limits), passed, spent[k], detail)


def _distortion(part: Distortion, least: Fraction, released: Numerators) -> Check:
    value = values.distortion(part.distance, part.prior, released)
    passed = value >= least
    required = float(part.minimum)
    detail = f"distortion {float(value):.12g}, required {required:.12g}"
    return Check("distortion", part.index, 1, passed, float(value), detail)


def _loss(statement: Statement, part: LossLimit, most: Fraction, released: Numerators) -> Check:
    found = values.losses(part.loss, released)
    spent = found if part.per_secret else [values.expected(statement.prior, found)]
    top = float(max(spent))
    detail = f"largest {top:.12g}, allowed {float(part.maximum):.12g}"
    return Check("loss bound", part.index, len(spent), max(spent) <= most, top, detail)


def tightest(checks: tuple[Check, ...]) -> Check | None:
    """The check whose likelihood ratios come closest to their limit, if there is one."""
    names = ("ratio", "windowed ratio", "distribution privacy")
    return max((c for c in checks if c.name in names), key=lambda c: c.worst, default=None)
