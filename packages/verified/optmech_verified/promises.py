"""Promises of designs, and their multipliers, in the text that the proved checker reads."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from optmech.base.arrays import Floats
from optmech.certificate import Multipliers
from optmech.certificate.bound import lagrangian_of, pairs_of
from optmech.certificate.families import (
    Approximate,
    Bias,
    Distortion,
    Fixed,
    Leakage,
    LiftedRatio,
    Linear,
    LossLimit,
    Ratio,
    Support,
)
from optmech.certificate.families.ratio import shared_out
from optmech.certificate.statement import Statement
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket, exact_exp
from optmech.exact.number import Exact
from optmech.exact.numerators import integers

_FACTOR = 192
"""Those of a power of e in it."""
_LARGEST_LOG = 709.0
"""A multiplier of a ratio beyond e to this counts for nothing."""
_LARGEST = Fraction(2**100)
_HINT = 240
"""Bits behind the point of the bounds of a logarithm."""
_FREE = 400
"""Bits by which what a support excludes costs more than anything else."""

Rows = Sequence[Sequence[object]]
Item = tuple[int, int, int, Rows]


class Stated(NamedTuple):
    """A promise in the file, and its multipliers."""

    lines: list[str]
    items: list[Item]


def uncovered(where: str, what: str) -> ProblemError:
    return ProblemError(
        f"the proved checker does not cover {what}",
        where=where,
        remedy="Use optmech check and optmech-audit, which cover everything",
    )


def _singles(found: Iterable[tuple[int, int, int, int]]) -> list[Item]:
    """Items of one number each, of those that are not 0."""
    return [(i, j, o, [[v]]) for i, j, o, v in found if v]


def table_lines(rows: Iterable[Iterable[object]]) -> list[str]:
    return [" ".join(map(str, row)) for row in rows]


def item_line(item: Item) -> str:
    i, j, o, rows = item
    parts = [f"{len(row)} {' '.join(map(str, row))}" for row in rows]
    return f"{i} {j} {o} {len(rows)} {' '.join(parts)}".rstrip()


def dyadic(values: Floats) -> tuple[list[list[int]], int]:
    return integers(np.atleast_2d(np.asarray(values, dtype=np.float64)))


def product(table: Floats, weights: Floats) -> tuple[list[list[int]], int]:
    """table[t, s] weights[s] exactly: whole numbers, and the power of two that they are over."""
    rows, bits = dyadic(table)
    (factors,), more = dyadic(weights)
    return [[v * w for v, w in zip(row, factors, strict=True)] for row in rows], bits + more


def share(value: float, over: int, under: int) -> int:
    """The whole part of value · over / under, of a multiplier cut to what any may be."""
    cut = min(max(Fraction(value), Fraction(0)), _LARGEST) if math.isfinite(value) else Fraction(0)
    return (cut.numerator * over) // (cut.denominator * under)


def _stated(value: float, where: str) -> Fraction:
    """A stated limit, where it is a fraction."""
    if isinstance(value, Exact):
        low, high = bracket(value)
        if low != high:
            raise uncovered(where, f"a limit of {value.words}, which is no fraction")
        return low
    return Fraction(value)


# rates and promises
def rate_line(epsilon: Exact) -> str:
    head = f"rate {epsilon.factor.numerator} {epsilon.factor.denominator}"
    if epsilon.log_of is None:
        return f"{head} plain"
    low, high = (math.floor(end * 2**_HINT) for end in bracket(Exact(Fraction(1), epsilon.log_of)))
    ends = f"{max(low - 1, 0)} {high + 2} {_HINT}"
    return f"{head} log {epsilon.log_of.numerator} {epsilon.log_of.denominator} {ends}"


def promises_of(
    statement: Statement, given: Multipliers, scale: int, *, objective: bool = True
) -> list[Stated]:
    """All promises, with multipliers on a scale of so many bits; pairs of secrets belong to the
    family that limits them most."""
    parts = [own for _, own in given.of(statement)]
    for place, pairs in shared_out(statement, pairs_of(statement, given)).items():
        parts[place] = pairs
    total = None
    if statement.held is not None:
        total = lagrangian_of(statement, given, objective=objective)
    seen: set[int] = set()
    for k, family in enumerate(statement.families):
        if isinstance(family, Fixed):  # of a row that is fixed twice the first takes all
            own = set(family.secrets.tolist()) - seen
            parts[k] = {} if total is None else {s: total.terms[s].tolist() for s in sorted(own)}
            seen |= own
    rows = zip(statement.families, parts, strict=True)
    return [each for family, own in rows for each in _promises(family, statement, own, scale)]


def _promises(family: object, statement: Statement, given: Any, scale: int) -> list[Stated]:
    """What a family of inequalities is in the file, mostly one promise."""
    where = f"constraints[{getattr(family, 'index', '?')}]"
    match family:
        case Ratio():
            return [_ratios(family, given, scale)]
        case LiftedRatio() if family.window is not None:
            raise uncovered(where, "log ratios of distributions for some reports only")
        case LiftedRatio() | Approximate():
            return [_of_pairs(family, given, scale, where)]
        case Distortion():
            least = family.least
            if least[0] != least[1]:
                raise uncovered(where, f"a distortion of {family.minimum!r}, which is no fraction")
            costs = product(family.distance, family.prior)
            return [_adversary(costs, least[0], given, scale)]
        case Leakage():
            costs = product(-family.gain, family.weights)
            return [_adversary(costs, -_leakage(family, where), given, scale)]
        case LossLimit():
            return [_loss_limit(family, statement, given, scale)]
        case Bias():
            return _bias(family, given, scale, where)
        case Linear():
            return _linear(family, given, scale, where)
        case Support():
            return [_support(family, scale)]
        case Fixed():
            return [_fixed(family, statement.secrets, given, scale)]
    raise uncovered(where, f"a promise of the kind {getattr(family, 'kind', type(family))!r}")


def _leakage(family: Leakage, where: str) -> Fraction:
    low, high = family.most
    if high is not None and low == high:
        return low
    known = exact_exp(family.maximum, 1.0) if family.natural else None
    if known is None:
        raise uncovered(where, f"a leakage of {family.maximum.words}, which is no fraction")
    return known


def _mask(mask: Any) -> list[str]:
    return table_lines(mask.astype(int).tolist())


def _ratios(family: Ratio, given: Any, scale: int) -> Stated:
    limited = np.isfinite(family.table)
    np.fill_diagonal(limited, False)
    whole, bits = dyadic(np.where(limited, family.table, 0.0))
    rows = zip(whole, limited.tolist(), strict=True)
    distances = [[v if own else "-" for v, own in zip(*row, strict=True)] for row in rows]
    window = ["window all"] if family.window is None else ["window some", *_mask(family.window)]
    lines = ["ratios", rate_line(family.epsilon), f"distances {bits}", *table_lines(distances)]
    lines += window
    if given is None:
        return Stated(lines, [])
    used = limited[given.i, given.j] & (given.value > 0)
    used &= family.log_ratio[given.i, given.j] <= _LARGEST_LOG
    if family.window is not None:
        used &= family.window[given.i, given.o]
    kept = given.take(used)
    columns = (part.tolist() for part in (kept.i, kept.j, kept.o, kept.value))
    unit = 1 << (scale - _FACTOR)
    found = zip(*columns, strict=True)
    return Stated(lines, _singles((i, j, o, share(v, unit, 1)) for i, j, o, v in found))


def _of_pairs(family: LiftedRatio | Approximate, given: Any, scale: int, where: str) -> Stated:
    """Both distributions of a pair are weights with one sum."""
    left, right = (
        dyadic(side if isinstance(side, np.ndarray) else side.toarray())[0]
        for side in (family.left, family.right)
    )
    distances, bits = dyadic(family.scale)
    pairs, totals = [], []
    for a, b, d in zip(left, right, distances[0], strict=True):
        x, y = sum(a), sum(b)
        common = math.lcm(x, y)
        sides = ([v * (common // x) for v in a], [v * (common // y) for v in b])
        pairs += [str(d), *table_lines(sides)]
        totals.append(common)
    stated = [rate_line(family.epsilon), f"pairs {bits} {len(totals)}", *pairs]
    small, unit = (family.log_ratio <= _LARGEST_LOG).tolist(), 1 << (scale - _FACTOR)
    if isinstance(family, LiftedRatio):
        prices = np.zeros((0, 0)) if given is None else np.asarray(given)
        found = (
            (k, 0, o, share(float(prices[k, o]), unit, totals[k]))
            for k, o in np.argwhere(prices > 0).tolist()
            if small[k]
        )
        return Stated(["lifted", *stated], _singles(found))
    delta, items = _stated(family.delta, where), list[Item]()
    for k, weight in enumerate([] if given is None else given.weight.tolist()):
        y = share(weight, unit, totals[k] * delta.denominator)
        if small[k] and y:
            tests = np.clip(given.test[k], 0.0, 1.0).tolist()
            items.append((k, 0, 0, [[y], [share(t, y, 1) for t in tests]]))
    stated.insert(1, f"delta {delta.numerator} {delta.denominator}")
    return Stated(["approximate", *stated], items)


def guess_lines(w: list[list[int]], bits: int) -> list[str]:
    return [f"guesses {len(w)} {bits}", *table_lines(w)]


def strategy_of(played: Floats, total: int) -> list[list[int]]:
    """For every observable whole numbers with sum ``total``, in proportion."""
    found = []
    for row in np.maximum(np.nan_to_num(played, posinf=0.0), 0.0):
        (whole,), _ = dyadic(row)
        if not any(whole):
            whole = [1] * len(whole)
        shares = [v * total // sum(whole) for v in whole]
        shares[shares.index(max(shares))] += total - sum(shares)
        found.append(shares)
    return found


def _adversary(
    costs: tuple[list[list[int]], int], least: Fraction, given: Any, scale: int
) -> Stated:
    w, bits = costs
    items: list[Item] = []
    if given is not None and given.weight > 0:
        total = share(float(given.weight), 1 << scale, least.denominator << bits)
        items.append((0, 0, 0, [[total], *strategy_of(given.strategy, total)]))
    head = ["adversary", f"least {least.numerator} {least.denominator}"]
    return Stated([*head, *guess_lines(w, bits)], items)


def _loss_limit(family: LossLimit, statement: Statement, given: Any, scale: int) -> Stated:
    low, high = family.most(statement)
    if low != high:
        raise uncovered(
            f"constraints[{family.index}]", f"a limit of {family.maximum!r}, which is no fraction"
        )
    if family.per_secret:
        return _means(*dyadic(family.loss), [low] * statement.secrets, given, scale)
    columns, bits = product(family.loss.T, statement.prior)
    costs = table_lines(zip(*columns, strict=True))
    lines = ["mean", f"most {low.numerator} {low.denominator}", f"costs {bits}", *costs]
    prices = [] if given is None else np.atleast_1d(given)[:1].tolist()
    unit = 1 << scale, low.denominator << bits
    return Stated(lines, [(0, 0, 0, [[share(price, *unit)]]) for price in prices])


def _means(u: list[list[int]], bits: int, most: list[Fraction], prices: Any, scale: int) -> Stated:
    common = math.lcm(*(q.denominator for q in most))
    tops = [int(q * common) for q in most]
    lines = ["means", f"most {common}", *table_lines([tops]), f"costs {bits}", *table_lines(u)]
    own = () if prices is None else np.atleast_1d(prices).tolist()
    unit = 1 << scale, common << bits
    return Stated(lines, _singles((s, 0, 0, share(v, *unit)) for s, v in enumerate(own)))


def _bias(family: Bias, given: Any, scale: int, where: str) -> list[Stated]:
    """Means that are not too large, and means that are not too small."""
    most = _stated(family.maximum, where)
    (values,), bits = dyadic(family.reported)
    found = []
    for sign, prices in zip((1, -1), (None, None) if given is None else given, strict=True):
        tops = [most + sign * Fraction(v) for v in family.meant.tolist()]
        rows = [[sign * v for v in values]] * len(tops)
        found.append(_means(rows, bits, tops, prices, scale))
    return found


def _linear(family: Linear, given: Any, scale: int, where: str) -> list[Stated]:
    """A mean for every limit, times what makes its weights whole."""
    table, known, count = family.weights, dict(family.exact), family.observables
    start, at, data = (part.tolist() for part in (table.indptr, table.indices, table.data))
    prices = np.zeros((2, len(family))) if given is None else np.asarray(given)
    found = []
    for k in range(len(family)):
        weights = {at[e]: _stated(known.get(e, data[e]), where) for e in range(*start[k : k + 2])}
        common = math.lcm(*(w.denominator for w in weights.values()))
        for limits, sign, price in zip((family.upper, family.lower), (1, -1), prices, strict=True):
            limit = limits[k]
            if limit is None:
                continue
            whole = [0] * table.shape[1]
            for place, w in weights.items():
                whole[place] = int(sign * common * w)
            most = common * (sign * _stated(limit, where) + family.slack[k])
            rows = table_lines(whole[s : s + count] for s in range(0, len(whole), count))
            lines = ["mean", f"most {most.numerator} {most.denominator}", "costs 0", *rows]
            v = share(float(price[k]), 1 << scale, common * most.denominator)
            found.append(Stated(lines, [(0, 0, 0, [[v]])] if v else []))
    return found


def _support(family: Support, scale: int) -> Stated:
    """Any multiple of what is 0 may be added: so much that the least of a row is elsewhere."""
    closed, cost = np.argwhere(~family.allowed).tolist(), 1 << (scale + _FREE)
    return Stated(["support", *_mask(family.allowed)], _singles((s, 0, o, cost) for s, o in closed))


def _fixed(family: Fixed, secrets: int, costs: dict[int, list[float]], scale: int) -> Stated:
    """Any multiple of the difference to the given row may be added: so much that all of the row
    cost the same."""
    bits = family.exact.bits
    rows = dict(zip(family.secrets.tolist(), family.exact.rows, strict=True))
    table = [["row", *rows[s]] if s in rows else ["-"] for s in range(secrets)]
    items: list[Item] = []
    for s, row in costs.items():
        for o, cost in enumerate(map(Fraction, row)):
            items.append((s, 0, o, [[-(cost.numerator << scale) // (cost.denominator << bits)]]))
    return Stated([f"fixed {bits}", *table_lines(table)], items)
