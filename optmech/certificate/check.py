"""Checks a matrix against a statement, inequality by inequality.

Ratio inequalities are proved in floating point: they pass only if they hold after the rounding of
their evaluation is charged against them. Sums (row sums, δ, distortion, losses) pass if they
hold up to the rounding of their own evaluation, an a-priori bound of about 1e-14 relative.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.known import require_known
from optmech.ratios.generators import generator
from optmech.statement.statement import Divergence, Statement

_UNIT = 2.0**-53
_NORMAL = 1e-280
"""From here on quotients of probabilities neither overflow nor lose digits."""
_CACHED = 2**15
"""Entries that stay in the cache between two passes."""


@dataclass(frozen=True)
class Check:
    """The verdict on one family of inequalities."""

    name: str
    constraint: int | None
    """Index of the constraint it comes from; None for all ratio constraints together."""
    inequalities: int
    passed: bool
    worst: float
    """Tightest value found, in the family's own measure; see ``detail``."""
    detail: str


def check_matrix(statement: Statement, matrix: Floats) -> tuple[Check, ...]:
    """Check every inequality that the statement claims; never raises on a bad matrix.
    VerificationError where the statement has parts that are not known here."""
    require_known(statement)
    shape = (statement.secrets, statement.observables)
    if matrix.shape != shape or not np.isfinite(matrix).all():
        detail = f"shape {matrix.shape} instead of {shape}, or not finite"
        return (Check("matrix", None, 1, False, np.inf, detail),)
    return tuple(_checks(statement, matrix))


def _checks(statement: Statement, matrix: Floats) -> Iterator[Check]:
    yield _non_negative(matrix)
    yield _row_sums(matrix)
    if not statement.allowed.all():
        yield _support(statement, matrix)
    if np.isfinite(statement.log_ratio).any():
        yield _ratios("ratio", None, statement.log_ratio, matrix, None)
    for window in statement.windowed:
        yield _ratios("windowed ratio", window.index, window.log_ratio, matrix, window.window)
    for lifted in statement.lifted:
        guard = _sum_guard(matrix.shape[0])
        left, right = lifted.left @ matrix, lifted.right @ matrix
        excess = _excess(left, right, lifted.log_ratio[:, None])
        yield _verdict("distribution privacy", lifted.index, excess, guard, "(aP)/(e^r bP)")
    for approximate in statement.approximate:
        left, right = approximate.left @ matrix, approximate.right @ matrix
        ratio = np.exp(np.minimum(approximate.log_ratio, 700.0))[:, None]
        spent = np.maximum(left - ratio * right, 0.0).sum(axis=1)
        guard = _sum_guard(matrix.size) * (left.sum(axis=1) + approximate.delta)
        yield _limit(
            "approximate", approximate.index, spent, approximate.delta, guard, matrix.shape[1]
        )
    for divergence in statement.divergences:
        yield _divergence(divergence, matrix)
    for distortion in statement.distortion:
        value = distortion.error(matrix)
        guard = _sum_guard(matrix.size) * max(value, distortion.minimum)
        yield Check(
            "distortion",
            distortion.index,
            1,
            value >= distortion.minimum - guard,
            value,
            f"distortion {value:.9g}, required {distortion.minimum:.9g}",
        )
    for limit in statement.loss_limits:
        per_row = (limit.weighted * matrix).sum(axis=1)
        spent = per_row if limit.per_secret else per_row.sum(keepdims=True)
        guard = _sum_guard(matrix.size) * (spent + limit.maximum)
        yield _limit("loss bound", limit.index, spent, limit.maximum, guard, 1)


def _divergence(part: Divergence, matrix: Floats) -> Check:
    """D <= limit up to the rounding of p and q, which moves the root of a divergence by about as
    much as it moves them relatively."""
    spent = generator(part.kind).terms(part.left @ matrix, part.right @ matrix).sum(axis=1)
    share = spent / part.limit
    worst = int(share.argmax())
    guard = 4 * _sum_guard(matrix.size)
    passed = bool((np.sqrt(spent) <= np.sqrt(part.limit) * (1 + guard) + guard).all())
    detail = f"largest {spent[worst]:.9g}, allowed {part.limit[worst]:.9g}"
    return Check("divergence", part.index, len(spent), passed, float(spent[worst]), detail)


def _non_negative(matrix: Floats) -> Check:
    least = float(matrix.min())
    return Check("non-negative", None, matrix.size, least >= 0, least, f"least entry {least:.3g}")


def _row_sums(matrix: Floats) -> Check:
    error = float(np.abs(matrix.sum(axis=1) - 1.0).max())
    passed = bool(error <= _sum_guard(matrix.shape[1]))
    return Check("row sums", None, len(matrix), passed, error, f"largest error {error:.3g}")


def _support(statement: Statement, matrix: Floats) -> Check:
    outside = matrix[~statement.allowed]
    worst = float(outside.max(initial=0.0))
    return Check("support", None, outside.size, worst == 0, worst, f"largest entry {worst:.3g}")


def reported(matrix: Floats) -> Ints:
    """Observables that a matrix reports at all: elsewhere 0 <= 0 holds. All of them for zeros."""
    used = np.flatnonzero(matrix.any(axis=0))
    return used if len(used) else np.arange(matrix.shape[1])


def _ratios(
    name: str,
    index: int | None,
    log_ratio: Floats,
    matrix: Floats,
    window: np.ndarray | None,
) -> Check:
    """P[i,o] <= e^r P[j,o], charged with the rounding of ε·d, exp, and up to three roundings."""
    constrained = np.isfinite(log_ratio)
    with np.errstate(over="ignore"):
        factor = np.exp(log_ratio) * (1 - _UNIT * (10 + 4 * np.where(constrained, log_ratio, 0)))
    factor = np.maximum(factor, 1.0)
    each = constrained.sum(axis=1)
    count = int((each * (matrix.shape[1] if window is None else window.sum(axis=1))).sum())
    used = reported(matrix) if window is None else np.arange(matrix.shape[1])
    shown = matrix[:, used]
    if window is None and shown.min() >= _NORMAL:
        worst, (i, j, o) = _tightest(np.where(constrained, 1 / factor, 0.0), shown)
    else:
        worst, (i, j, o) = _tightest_with_zeros(constrained, factor, shown, window)
    o = int(used[o])
    detail = f"largest p(o|s) / (e^r p(o|s')) = {worst:.15g} at s={i}, s'={j}, o={o}"
    return Check(name, index, count, worst <= 1.0, worst, detail)


def _tightest(share: Floats, matrix: Floats) -> tuple[float, tuple[int, int, int]]:
    """The largest share_ij P[i,o] / P[j,o] and its place, where no quotient can overflow."""
    inverse = 1 / matrix
    most: Floats = np.empty(share.shape)
    step = max(1, _CACHED // matrix.shape[1])
    for begin in range(0, len(matrix), step):
        part = inverse[begin : begin + step]
        product = np.empty_like(part)
        for i, row in enumerate(matrix):
            np.multiply(part, row, out=product)
            product.max(axis=1, out=most[i, begin : begin + step])
    most *= share
    i, j = divmod(int(most.argmax()), share.shape[1])
    return float(most[i, j]), (i, j, int((matrix[i] * inverse[j]).argmax()))


def _tightest_with_zeros(
    constrained: np.ndarray, factor: Floats, matrix: Floats, window: np.ndarray | None
) -> tuple[float, tuple[int, int, int]]:
    """The same for any entries >= 0, where 0 <= 0 holds."""
    worst, where = 0.0, (0, 0, 0)
    for i in range(len(matrix)):
        others = np.flatnonzero(constrained[i])
        columns = np.arange(matrix.shape[1]) if window is None else np.flatnonzero(window[i])
        if not len(others) or not len(columns):
            continue
        left = matrix[i, columns][None, :]
        right = matrix[np.ix_(others, columns)]
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            allowed = np.where(right > 0, right * factor[i, others][:, None], 0.0)
            tightness = np.where(left > 0, left / allowed, 0.0)
        row, column = divmod(int(tightness.argmax()), len(columns))
        if tightness[row, column] > worst:
            worst = float(tightness[row, column])
            where = (i, int(others[row]), int(columns[column]))
    return worst, where


def _excess(left: Floats, right: Floats, log_ratio: Floats) -> Floats:
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        allowed = np.where(right > 0, right * np.exp(log_ratio), 0.0)
        return np.where(left > 0, left / allowed, 0.0)


def _verdict(name: str, index: int, tightness: Floats, guard: float, what: str) -> Check:
    worst = float(tightness.max(initial=0.0))
    passed = worst <= 1.0 + 2 * guard
    return Check(name, index, tightness.size, passed, worst, f"largest {what} = {worst:.15g}")


def _limit(
    name: str, index: int, spent: Floats, maximum: float, guard: Floats, terms: int
) -> Check:
    over = spent - maximum
    worst = int(over.argmax()) if len(over) else 0
    top = float(spent[worst]) if len(over) else 0.0
    passed = bool((over <= guard).all())
    detail = f"largest {top:.9g}, allowed {maximum:.9g}"
    return Check(name, index, len(spent) * terms, passed, top, detail)


def _sum_guard(terms: int) -> float:
    """Relative rounding of a (pairwise or BLAS) sum of ``terms`` products of positive numbers."""
    return float((16 + 2 * np.log2(max(terms, 2)) + min(terms, 256) / 8) * _UNIT)
