"""Designs as whole numbers, for the checker in ``proofs/`` that is itself proved.

The text has words with blanks between them, in the order in which ``proofs/main.ml`` reads them:
what the design is, the matrix, the objective, the promises, both claims, and the multipliers, on a
scale on which every inequality has whole numbers. Multipliers are rounded, which costs the bound
less than 2^-500 of them; they claim nothing, and the checker works with what stands there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.storage import write_atomically
from optmech.certificate import Multipliers
from optmech.certificate.bound import lagrangian_of, pairs_of
from optmech.certificate.families import (
    Approximate,
    Bias,
    Distortion,
    Fixed,
    Leakage,
    LiftedRatio,
    LossLimit,
    Ratio,
    Support,
)
from optmech.certificate.families.ratio import shared_out
from optmech.certificate.objective import trivial_bound
from optmech.certificate.statement import Statement
from optmech.designs.design import Design
from optmech.errors import ProblemError
from optmech.exact.exponentials import bracket, exact_exp
from optmech.exact.number import Exact
from optmech.exact.numerators import integers

FORMAT = "optmech-checked 1"
_SCALE = 768
"""Bits behind the point of the sums in the bound, at least."""
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


class _Promise(NamedTuple):
    lines: list[str]
    items: Callable[[Any, int], Iterable[Item]]
    """Of multipliers of the family, or None, and the bits of the scale."""


def write_checked(design: Design, digest: str, path: str | Path) -> dict[str, int]:
    """Write a design as ``checked_text``, atomically; returns secrets, observables and promises."""
    text = checked_text(design, digest)
    write_atomically(path, text.encode())
    secrets, observables = design.problem.statement.loss.shape
    promises = len(design.problem.statement.families)
    return {"secrets": secrets, "observables": observables, "promises": promises}


def checked_text(design: Design, digest: str) -> str:
    """The text that the proved checker reads; ``digest`` is that of the design's file.

    Raises ProblemError, with the name of the constraint, where the checker does not cover what the
    design claims.
    """
    exact, statement = design.exact, design.problem.statement
    if exact is None:
        raise _uncovered("mechanism", "that no mechanism exists")
    if design.certificate.outer is not None and statement.spread is None:
        raise _uncovered("outer", "a bound by cells of the secrets")
    promises = [_promises(family, statement) for family in statement.families]
    goal, goal_bits, least = _objective(design)
    multipliers = design.certificate.multipliers
    if least <= Fraction(trivial_bound(statement)):
        multipliers = Multipliers()  # they may prove less than what every mechanism costs
    free = max(64, _SCALE - goal_bits)
    goal_item = _goal_item(statement, multipliers, 1 << free)
    items = _items(statement, multipliers, promises, goal_bits + free)
    words = _words(design)
    lines = [FORMAT, f"design {digest}", f"words {len(words)}", *words]
    lines += [
        f"size {exact.shape[0]} {exact.shape[1]}",
        f"matrix {exact.bits}",
        *_table(exact.rows),
    ]
    lines += goal
    lines.append(f"promises {sum(map(len, promises))}")
    for promise in chain.from_iterable(promises):
        lines += promise.lines
    sign = -1 if statement.objective == "maximize_distortion" else 1
    cost = sign * Fraction(design.objective)
    lines.append(f"cost {cost.numerator} {cost.denominator}")
    lines.append(f"least {least.numerator} {least.denominator}")
    lines += ["proof", _item(goal_item)]
    for own in items:
        lines += [f"items {len(own)}", *map(_item, own)]
    return "\n".join([*lines, "end", ""])


def _uncovered(where: str, what: str) -> ProblemError:
    return ProblemError(
        f"the proved checker does not cover {what}",
        where=where,
        remedy="Use optmech check and python -m optmech.audit, which cover everything",
    )


def _words(design: Design) -> list[str]:
    """What the design says, in words."""
    problem = design.problem
    said = [problem.title] if problem.title else []
    said += [
        f"constraints[{k}]: {c.promise(problem.space)}" for k, c in enumerate(problem.constraints)
    ]
    said.append(f"{design.status}: objective {design.objective!r}, bound {design.bound!r}")
    return [" ".join(line.split()) for line in said]


def _table(rows: Iterable[Iterable[object]]) -> list[str]:
    return [" ".join(map(str, row)) for row in rows]


def _item(item: Item) -> str:
    i, j, o, rows = item
    parts = [f"{len(row)} {' '.join(map(str, row))}" for row in rows]
    return f"{i} {j} {o} {len(rows)} {' '.join(parts)}".rstrip()


def _dyadic(values: Floats) -> tuple[list[list[int]], int]:
    return integers(np.atleast_2d(np.asarray(values, dtype=np.float64)))


def _product(table: Floats, weights: Floats) -> tuple[list[list[int]], int]:
    """table[t, s] weights[s] exactly: whole numbers, and the power of two that they are over."""
    rows, bits = _dyadic(table)
    (factors,), more = _dyadic(weights)
    return [[v * w for v, w in zip(row, factors, strict=True)] for row in rows], bits + more


def _share(value: float, over: int, under: int) -> int:
    """The whole part of value · over / under, of a multiplier cut to what any may be."""
    cut = min(max(Fraction(value), Fraction(0)), _LARGEST) if math.isfinite(value) else Fraction(0)
    return (cut.numerator * over) // (cut.denominator * under)


def _stated(value: float, where: str) -> Fraction:
    """A stated limit, where it is a fraction."""
    if isinstance(value, Exact):
        low, high = bracket(value)
        if low != high:
            raise _uncovered(where, f"a limit of {value.words}, which is no fraction")
        return low
    return Fraction(value)


# rates and promises
def _rate(epsilon: Exact) -> str:
    head = f"rate {epsilon.factor.numerator} {epsilon.factor.denominator}"
    if epsilon.log_of is None:
        return f"{head} plain"
    low, high = (math.floor(end * 2**_HINT) for end in bracket(Exact(Fraction(1), epsilon.log_of)))
    ends = f"{max(low - 1, 0)} {high + 2} {_HINT}"
    return f"{head} log {epsilon.log_of.numerator} {epsilon.log_of.denominator} {ends}"


def _promises(family: object, statement: Statement) -> list[_Promise]:
    """What a family of inequalities is in the file, mostly one promise."""
    where = f"constraints[{getattr(family, 'index', '?')}]"
    if isinstance(family, Ratio):
        return [_ratios(family)]
    if isinstance(family, LiftedRatio | Approximate):
        return [_of_pairs(family, where)]
    if isinstance(family, Distortion):
        least = family.least
        if least[0] != least[1]:
            raise _uncovered(where, f"a distortion of {family.minimum!r}, which is no fraction")
        return [_adversary(_product(family.distance, family.prior), least[0])]
    if isinstance(family, Leakage):
        return [_adversary(_product(-family.gain, family.weights), -_leakage(family, where))]
    if isinstance(family, LossLimit):
        return [_loss_limit(family, statement, where)]
    if isinstance(family, Bias):
        return _bias(family, where)
    if isinstance(family, Support):
        return [_support(family)]
    if isinstance(family, Fixed):
        return [_fixed(family, statement)]
    raise _uncovered(where, f"a promise of the kind {getattr(family, 'kind', type(family))!r}")


def _leakage(family: Leakage, where: str) -> Fraction:
    low, high = family.most
    if high is not None and low == high:
        return low
    known = exact_exp(family.maximum, 1.0) if family.natural else None
    if known is None:
        raise _uncovered(where, f"a leakage of {family.maximum.words}, which is no fraction")
    return known


def _mask(mask: Any) -> list[str]:
    return _table(mask.astype(int).tolist())


def _ratios(family: Ratio) -> _Promise:
    limited = np.isfinite(family.distance)
    np.fill_diagonal(limited, False)
    whole, bits = _dyadic(np.where(limited, family.distance, 0.0))
    rows = zip(whole, limited.tolist(), strict=True)
    distances = [[v if own else "-" for v, own in zip(*row, strict=True)] for row in rows]
    window = ["window all"] if family.window is None else ["window some", *_mask(family.window)]
    lines = ["ratios", _rate(family.epsilon), f"distances {bits}", *_table(distances), *window]

    def items(given: Any, scale: int) -> Iterator[Item]:
        if given is None:
            return
        used = limited[given.i, given.j] & (given.value > 0)
        used &= family.log_ratio[given.i, given.j] <= _LARGEST_LOG
        if family.window is not None:
            used &= family.window[given.i, given.o]
        kept = given.take(used)
        columns = (part.tolist() for part in (kept.i, kept.j, kept.o, kept.value))
        for i, j, o, value in zip(*columns, strict=True):
            if v := _share(value, 1 << (scale - _FACTOR), 1):
                yield i, j, o, [[v]]

    return _Promise(lines, items)


def _of_pairs(family: LiftedRatio | Approximate, where: str) -> _Promise:
    """Both distributions of a pair are weights with one sum."""
    left, right = (
        _dyadic(side if isinstance(side, np.ndarray) else side.toarray())[0]
        for side in (family.left, family.right)
    )
    distances, bits = _dyadic(family.scale)
    pairs, totals = [], []
    for a, b, d in zip(left, right, distances[0], strict=True):
        x, y = sum(a), sum(b)
        common = math.lcm(x, y)
        sides = ([v * (common // x) for v in a], [v * (common // y) for v in b])
        pairs += [str(d), *_table(sides)]
        totals.append(common)
    stated = [f"pairs {bits} {len(totals)}", *pairs]
    large = (family.log_ratio > _LARGEST_LOG).tolist()
    rate = _rate(family.epsilon)
    if isinstance(family, LiftedRatio):

        def lifted(given: Any, scale: int) -> Iterator[Item]:
            places = () if given is None else np.argwhere(np.asarray(given) > 0).tolist()
            for k, o in places:
                v = _share(float(given[k, o]), 1 << (scale - _FACTOR), totals[k])
                if v and not large[k]:
                    yield k, 0, o, [[v]]

        return _Promise(["lifted", rate, *stated], lifted)
    delta = _stated(family.delta, where)

    def approximate(given: Any, scale: int) -> Iterator[Item]:
        weights = [] if given is None else given.weight.tolist()
        for k, weight in enumerate(weights):
            unit = (1 << (scale - _FACTOR), totals[k] * delta.denominator)
            if weight > 0 and not large[k] and (y := _share(weight, *unit)):
                tests = np.clip(given.test[k], 0.0, 1.0).tolist()
                yield k, 0, 0, [[y], [_share(t, y, 1) for t in tests]]

    head = ["approximate", rate, f"delta {delta.numerator} {delta.denominator}"]
    return _Promise([*head, *stated], approximate)


def _guesses(w: list[list[int]], bits: int) -> list[str]:
    return [f"guesses {len(w)} {bits}", *_table(w)]


def _strategy(played: Floats, total: int) -> list[list[int]]:
    """For every observable whole numbers with sum ``total``, in proportion."""
    found = []
    for row in np.maximum(np.nan_to_num(played, posinf=0.0), 0.0):
        (whole,), _ = _dyadic(row)
        if not any(whole):
            whole = [1] * len(whole)
        shares = [v * total // sum(whole) for v in whole]
        shares[shares.index(max(shares))] += total - sum(shares)
        found.append(shares)
    return found


def _adversary(costs: tuple[list[list[int]], int], least: Fraction) -> _Promise:
    w, bits = costs
    head = ["adversary", f"least {least.numerator} {least.denominator}"]

    def items(given: Any, scale: int) -> Iterator[Item]:
        if given is not None and given.weight > 0:
            total = _share(float(given.weight), 1 << scale, least.denominator << bits)
            yield 0, 0, 0, [[total], *_strategy(given.strategy, total)]

    return _Promise([*head, *_guesses(w, bits)], items)


def _loss_limit(family: LossLimit, statement: Statement, where: str) -> _Promise:
    low, high = family.most(statement)
    if low != high:
        raise _uncovered(where, f"a limit of {family.maximum!r}, which is no fraction")
    if family.per_secret:
        u, bits = _dyadic(family.loss)
        return _means(u, bits, [low] * statement.secrets, lambda given: given)
    columns, bits = _product(family.loss.T, statement.prior)
    u = [list(row) for row in zip(*columns, strict=True)]
    lines = ["mean", f"most {low.numerator} {low.denominator}", f"costs {bits}", *_table(u)]

    def items(given: Any, scale: int) -> Iterator[Item]:
        if given is not None:
            price = float(np.atleast_1d(given)[0])
            yield 0, 0, 0, [[_share(price, 1 << scale, low.denominator << bits)]]

    return _Promise(lines, items)


def _means(
    u: list[list[int]], bits: int, most: list[Fraction], prices: Callable[[Any], Any]
) -> _Promise:
    common = math.lcm(*(q.denominator for q in most))
    tops = " ".join(str(int(q * common)) for q in most)
    lines = ["means", f"most {common}", tops, f"costs {bits}", *_table(u)]

    def items(given: Any, scale: int) -> Iterator[Item]:
        own = () if given is None else np.atleast_1d(prices(given)).tolist()
        for s, price in enumerate(own):
            if v := _share(price, 1 << scale, common << bits):
                yield s, 0, 0, [[v]]

    return _Promise(lines, items)


def _bias(family: Bias, where: str) -> list[_Promise]:
    """Means that are not too large, and means that are not too small."""
    most = _stated(family.maximum, where)
    meant = [Fraction(v) for v in family.meant.tolist()]
    (values,), bits = _dyadic(family.reported)
    above = _means([values] * len(meant), bits, [most + v for v in meant], lambda given: given[0])
    values = [-v for v in values]
    below = _means([values] * len(meant), bits, [most - v for v in meant], lambda given: given[1])
    return [above, below]


def _support(family: Support) -> _Promise:
    """Any multiple of what is 0 may be added: so much that the least of a row is elsewhere."""
    closed = np.argwhere(~family.allowed).tolist()

    def items(_: Any, scale: int) -> Iterator[Item]:
        for s, o in closed:
            yield s, 0, o, [[1 << (scale + _FREE)]]

    return _Promise(["support", *_mask(family.allowed)], items)


def _fixed(family: Fixed, statement: Statement) -> _Promise:
    """Any multiple of the difference to the given row may be added: so much that all of the row
    cost the same."""
    rows = dict(zip(family.secrets.tolist(), family.exact.rows, strict=True))
    every = range(statement.secrets)
    table = [["row", *rows[s]] if s in rows else ["-"] for s in every]

    def items(costs: Any, scale: int) -> Iterator[Item]:
        for s, row in costs.items():
            for o, cost in enumerate(map(Fraction, row)):
                under = cost.denominator << family.exact.bits
                yield s, 0, o, [[-(cost.numerator << scale) // under]]

    return _Promise([f"fixed {family.exact.bits}", *_table(table)], items)


def _items(
    statement: Statement, given: Multipliers, promises: list[list[_Promise]], scale: int
) -> list[list[Item]]:
    """Those of every promise; pairs of secrets belong to the family that limits them most."""
    parts = [own for _, own in given.of(statement)]
    for place, pairs in shared_out(statement, pairs_of(statement, given)).items():
        parts[place] = pairs
    total = lagrangian_of(statement, given) if statement.held is not None else None
    seen: set[int] = set()
    for k, family in enumerate(statement.families):
        if isinstance(family, Fixed):  # of a row that is fixed twice the first takes all
            own = set(family.secrets.tolist()) - seen
            parts[k] = {} if total is None else {s: total.terms[s].tolist() for s in sorted(own)}
            seen |= own
    rows = zip(promises, parts, strict=True)
    return [list(each.items(own, scale)) for family, own in rows for each in family]


# the objective
def _objective(design: Design) -> tuple[list[str], int, Fraction]:
    """Its lines, the bits that its terms are over, and the claimed bound of what is minimised."""
    statement, bound = design.problem.statement, Fraction(design.bound)
    if statement.spread is not None:
        raise _uncovered("constraints", "a promise at every point of a region")
    loss, bits = _dyadic(statement.loss)
    if statement.objective == "expected_loss":
        (prior,), more = _dyadic(statement.prior)
        lines = ["objective expected", f"prior {more}", *_table([prior])]
        return [*lines, f"loss {bits}", *_table(loss)], bits + more, bound
    if statement.objective == "worst_loss":
        return ["objective worst", f"loss {bits}", *_table(loss)], bits, bound
    assert statement.target_factors is not None
    table, weights = statement.target_factors
    sign = -1 if statement.objective == "minimize_leakage" else 1
    w, bits = _product(sign * table, weights)
    return ["objective guessed", *_guesses(w, bits)], bits, -sign * bound


def _goal_item(statement: Statement, given: Multipliers, unit: int) -> Item:
    secrets, observables = statement.loss.shape
    if statement.objective == "expected_loss":
        return 0, 0, 0, [[unit]]
    if statement.objective == "worst_loss":
        equal = np.full(secrets, 1.0 / secrets)
        weights = equal if given.objective is None else given.objective
        return 0, 0, 0, [[_share(v, unit, 1) for v in np.asarray(weights).tolist()]]
    assert statement.target is not None
    played = given.objective
    if played is None:  # the guess that errs least without a report
        sign = -1.0 if statement.objective == "minimize_leakage" else 1.0
        best = int((sign * statement.target).sum(axis=1).argmin())
        played = np.zeros((observables, len(statement.target)))
        played[:, best] = 1.0
    return 0, 0, 0, [[unit], *_strategy(np.asarray(played), unit)]
