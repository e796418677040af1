"""``composition``: what a promise says of n reports, against two and three reports put together by
brute force, of random mechanisms that keep the promise to the last digit.

Every kind of constraint is measured here by its definition, on one report and on all tuples of two
and three; the sentence is read back, and each number that it promises is compared.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import optmech as om
from optmech.designs.promise import promise_of

_UP = 1 + 1e-9
"""What is promised is a little more than what one report was measured to have."""
seen: Counter[str] = Counter()
"""How many sentences and numbers were checked, by the kind."""
Matrix = np.ndarray


class Made(NamedTuple):
    """A constraint that a mechanism keeps, and what it promises of one report."""

    constraint: om.Constraint
    numbers: dict[str, float]
    """By the words of a sentence: "ε", "δ", "the leakage" and others."""
    kept: Callable[[Matrix, int, dict[str, float]], bool]
    """Whether the rows of n reports keep numbers that are promised of n."""
    title: str


class World(NamedTuple):
    """Places, a prior, and a mechanism that reports from them."""

    domain: om.Domain
    prior: Matrix
    rows: Matrix
    away: Matrix
    """Distances of the places, (S, S)."""
    rng: np.random.Generator


def world(rng: np.random.Generator) -> World:
    """A random one: two to four places on a plane, two or three reports, rare and common."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    points = rng.uniform(0, 3, (n, 2))
    rows = rng.dirichlet(np.full(m, rng.choice([0.3, 1, 5])), n) + 3e-3
    rows /= rows.sum(axis=1, keepdims=True)
    prior = rng.dirichlet(np.full(n, rng.choice([0.3, 2])))
    away = np.hypot(*(points[:, None] - points).transpose(2, 0, 1))
    return World(om.Domain(range(n), points), prior + 1e-9, rows, away, rng)


def together(rows: Matrix, n: int) -> Matrix:
    """The rows of n independent reports about the same secret."""
    out = rows
    for _ in range(n - 1):
        out = np.einsum("sa,sb->sab", out, rows).reshape(len(rows), -1)
    return out


def _ratio(rows: Matrix, pairs: Matrix, rate: Matrix, shown: Matrix) -> float:
    """The least ε with p(o|s) <= e^(ε rate) p(o|t) of pairs (s, t), where o is shown at s."""
    log = np.log(rows[:, None]) - np.log(rows[None])
    log = np.where(shown[:, None], log, -np.inf).max(axis=2)
    return max(0.0, float((log[pairs] / rate[pairs]).max(initial=0.0)))


def _excess(rows: Matrix, pairs: Matrix, log_ratio: Matrix) -> float:
    factor = np.exp(np.minimum(log_ratio, 700))
    over = np.maximum(0, rows[:, None] - factor[..., None] * rows[None]).sum(axis=2)
    return float(over[pairs].max(initial=0.0))


def _of_pairs(
    w: World, make: Callable[..., om.Constraint], pairs: Matrix, rate: Matrix, title: str,
    *, delta: bool = False, shown: Matrix | None = None,
) -> Made:  # fmt: skip
    """A promise of ratios between pairs, with a δ or without."""
    everything = np.ones_like(w.rows, dtype=bool)
    window = everything if shown is None else shown
    epsilon = _ratio(w.rows, pairs, rate, window) * _UP + 1e-12
    if delta:
        epsilon *= float(w.rng.uniform(0, 0.9))
        lost = min(_excess(w.rows, pairs, epsilon * rate) * _UP + 1e-15, 0.999)

        def kept_but(rows: Matrix, _: int, said: dict[str, float]) -> bool:
            return _excess(rows, pairs, said["ε"] * rate) <= said["δ"] + 1e-12

        return Made(make(epsilon, delta=lost), {"ε": epsilon, "δ": lost}, kept_but, title)

    def kept(rows: Matrix, n: int, said: dict[str, float]) -> bool:
        inside = window
        for _ in range(n - 1):
            inside = np.einsum("sa,sb->sab", inside, window).reshape(len(window), -1)
        return _ratio(rows, pairs, rate, inside) <= said["ε"] + 1e-9

    return Made(make(epsilon), {"ε": epsilon}, kept, title)


def _others(w: World) -> Matrix:
    return ~np.eye(len(w.rows), dtype=bool)


def _differential(w: World, *, which: str = "all", delta: bool = False) -> Made:
    pairs, one = _others(w), np.ones_like(w.away)
    adjacency: Any = "all"
    if which == "listed":
        adjacency, pairs = [(0, 1)], np.zeros_like(pairs)
        pairs[0, 1] = pairs[1, 0] = True
    elif which == "near":
        radius = float(w.away[0, 1])
        adjacency, pairs = (om.distances.euclidean(), radius), pairs & (w.away <= radius)
    make = partial(om.DifferentialPrivacy, adjacency=adjacency)
    return _of_pairs(w, make, pairs, one, "differential privacy", delta=delta)


def _metric(w: World, *, which: str = "all", delta: bool = False) -> Made:
    pairs, more, shown = _others(w), {}, None
    if which == "near":
        more["threshold"] = radius = float(w.away[0, 1])
        pairs = pairs & (w.away <= radius)
    elif which == "reached":
        more["observable_threshold"] = radius = float(np.median(w.away))
        shown = (w.away <= radius)[:, np.arange(w.rows.shape[1]) % len(w.rows)]
    make = partial(om.MetricPrivacy, distance=om.distances.euclidean(), **more)
    return _of_pairs(w, make, pairs, w.away, "metric privacy", delta=delta, shown=shown)


def _policy(w: World) -> Made:
    edges = [(k, k + 1, float(w.away[k, k + 1])) for k in range(len(w.rows) - 1)]
    pairs = np.zeros_like(_others(w))
    for a, b, _ in edges:
        pairs[a, b] = pairs[b, a] = True
    make = partial(om.constraints.PolicyGraph, graph=edges)
    return _of_pairs(w, make, pairs, w.away, "policy graph")


def _one_number(
    w: World, make: Callable[[float], om.Constraint], what: str, title: str,
    value: Callable[[Matrix], float],
) -> Made:  # fmt: skip
    stated = max(value(w.rows), 0.0) * _UP + 1e-9
    return Made(make(stated), {what: stated},
                lambda rows, _, said: value(rows) <= said[what] + 1e-9, title)  # fmt: skip


def _maximal(rows: Matrix) -> float:
    return math.log(rows.max(axis=0).sum())


def _capacity(rows: Matrix) -> float:
    return 1 - float(rows.min(axis=0).sum())


def _information(prior: Matrix, rows: Matrix) -> float:
    mean = prior @ rows
    return float(prior @ (rows * np.log(rows / mean)).sum(axis=1))


def _renyi(order: float, away: Matrix, rows: Matrix) -> float:
    worst = 0.0
    for s, t in itertools.permutations(range(len(rows)), 2):
        p, q = rows[s], rows[t]
        if order == 1:
            found = float((p * np.log(p / q)).sum())
        else:
            found = math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)
        worst = max(worst, found / min(away[s, t], away[t, s]))
    return worst


def _renyi_made(w: World) -> Made:
    order = float(w.rng.choice([1, 2, 1.5, 0.5, 8]))
    # at most ten nats of a pair may be stated
    scaled = _renyi(order, w.away, w.rows) * w.away.max() < 9.9 and bool(w.rng.integers(2))
    away = w.away if scaled else np.ones_like(w.away)
    distance = om.distances.euclidean() if scaled else None
    make = partial(_renyi_constraint, order, distance)
    return _one_number(w, make, "the divergence", "renyi privacy", partial(_renyi, order, away))


def _renyi_constraint(order: float, distance: Any, epsilon: float) -> om.Constraint:
    return om.constraints.RenyiPrivacy(order, epsilon, distance)


def _prior(w: World) -> om.Prior:
    return om.Prior(w.domain, w.prior)


def _ratios(w: World) -> Made:
    with np.errstate(divide="ignore"):
        table = (np.log(w.rows[:, None]) - np.log(w.rows[None])).max(axis=2) * _UP + 1e-9
    np.fill_diagonal(table, 0.0)

    def kept(rows: Matrix, _: int, said: dict[str, float]) -> bool:
        times = said["each log ratio"]
        found = (np.log(rows[:, None]) - np.log(rows[None])).max(axis=2)
        return bool((found <= times * table + 1e-9).all())

    return Made(om.Ratios(table), {"each log ratio": 1.0}, kept, "ratios")


def _nothing(make: Callable[[World], om.Constraint], title: str) -> Callable[[World], Made]:
    """A kind of which nothing is promised of several reports."""
    return lambda w: Made(make(w), {}, lambda *_: True, title)


def _laws(w: World) -> list[tuple[Matrix, Matrix]]:
    n = len(w.rows)
    return [(w.rng.dirichlet(np.ones(n)), w.rng.dirichlet(np.ones(n)))]


KINDS: dict[str, Callable[[World], Made]] = {
    "differential": _differential,
    "differential, listed": partial(_differential, which="listed"),
    "differential, near": partial(_differential, which="near"),
    "differential, delta": partial(_differential, delta=True),
    "differential, near, delta": partial(_differential, which="near", delta=True),
    "metric": _metric,
    "metric, near": partial(_metric, which="near"),
    "metric, reached": partial(_metric, which="reached"),
    "metric, delta": partial(_metric, delta=True),
    "policy graph": _policy,
    "ratios": _ratios,
    "ratios, mixtures": _nothing(
        lambda w: om.Ratios([9.0], of=[_laws(w)[0][0]], to=[_laws(w)[0][1]]), "ratios"
    ),
    "linear": _nothing(lambda w: om.Linear(np.ones_like(w.rows), 1e6), "linear"),
    "renyi": _renyi_made,
    "maximal leakage": lambda w: _one_number(
        w, om.constraints.MaximalLeakage, "the leakage", "maximal leakage", _maximal
    ),
    "additive capacity": lambda w: _one_number(
        w, om.constraints.AdditiveCapacity, "capacity", "additive capacity", _capacity
    ),
    "mutual information": lambda w: _one_number(
        w, om.constraints.MutualInformation, "the information", "mutual information",
        partial(_information, _prior(w).weights),
    ),
    "pointwise": _nothing(
        lambda w: om.constraints.PointwiseMaximalLeakage(1), "pointwise maximal leakage"
    ),
    "distribution": _nothing(lambda w: om.DistributionPrivacy(1, _laws(w)), "distribution privacy"),
    "distribution, delta": _nothing(
        lambda w: om.DistributionPrivacy(1, _laws(w), 0.1), "distribution privacy"
    ),
    "distribution, kl": _nothing(
        lambda w: om.DistributionPrivacy(1, _laws(w), divergence="kl"), "distribution privacy"
    ),
    "pufferfish": _nothing(lambda w: om.constraints.Pufferfish(1, _laws(w)), "pufferfish"),
    "gain leakage": _nothing(lambda w: om.constraints.GainLeakage(0.9), "gain leakage"),
    "distortion": _nothing(
        lambda w: om.DistortionPrivacy(0, om.distances.hamming()), "distortion privacy"
    ),
}  # fmt: skip
FOR_USE: dict[str, Callable[[World], om.Constraint]] = {
    "loss bound": lambda w: om.LossBound(1e6),
    "bias": lambda w: om.constraints.Bias(1e6, np.arange(len(w.rows)), np.arange(w.rows.shape[1])),
    "support": lambda w: om.Support(np.ones_like(w.rows)),
    "fixed rows": lambda w: om.constraints.FixedRows({0: [1, *[0] * (w.rows.shape[1] - 1)]}),
}
"""Kinds that promise no privacy, of one report or of several."""

_SINGLE = re.compile(r"^(?:Every fresh report spends it again: )?(?P<rule>[^.]*)\. Repeat a report")
_ADDS = re.compile(r"n times (ε|δ|the \w+|each log ratio)")


def problem_of(w: World, constraints: list[om.Constraint]) -> om.Problem:
    """A problem with these constraints, whose sentences are read; it is not solved."""
    m = w.rows.shape[1]
    reports = w.domain if m == len(w.rows) else om.Domain(
        [f"o{k}" for k in range(m)], np.resize(w.domain.points, (m, 2))
    )  # fmt: skip
    return om.Problem(_prior(w), np.ones((len(w.rows), m)), reports, constraints=constraints)


def rules_of(said: str, titles: list[str]) -> dict[str, str]:
    """What a sentence says of n reports, by the kinds that it says it of."""
    found = _SINGLE.match(said)
    assert found is not None, said
    rule = found["rule"]
    if not rule.lower().startswith("by "):
        return dict.fromkeys(titles, rule)
    rules = {}
    for part in rule.split("; "):
        names = next(t for t in _splits(part[3:], titles))
        rules |= dict.fromkeys(names[0], names[1])
    return rules


def _splits(text: str, titles: list[str]) -> Iterator[tuple[list[str], str]]:
    """The kinds that a part begins with, and the rest."""
    names = []
    while True:
        name = next((t for t in titles if text.startswith(t)), None)
        if name is None:
            break
        names.append(name)
        text = text[len(name) :].removeprefix(" ")
        text = text.removeprefix("and ")
    yield names, text


def promised(rule: str, made: Made, n: int) -> dict[str, float]:
    """The numbers that a rule promises of n reports."""
    if "1 - (1 - c)^n" in rule:
        return {"capacity": 1 - (1 - made.numbers["capacity"]) ** n}
    return {what: n * made.numbers.get(what, math.nan) for what in _ADDS.findall(rule)}


def violations(w: World, names: list[str]) -> Iterator[str]:
    """What is false in the sentence of one problem with constraints of these kinds."""
    made = [KINDS[name](w) for name in names if name in KINDS]
    for_use = [FOR_USE[name](w) for name in names if name in FOR_USE]
    problem = problem_of(w, [*(own.constraint for own in made), *for_use])
    promise = promise_of(problem)
    for name in names:
        seen[f"{name}, sentences"] += 1
    if not made:
        if promise.repeats or promise.scope != "use" or promise.brief != "no promise":
            yield f"{names}: {promise.repeats!r}, {promise.brief!r}"
        return
    rules = rules_of(promise.repeats, [own.title for own in made])
    for name, own in zip((n for n in names if n in KINDS), made, strict=True):
        rule = rules.get(own.title)
        if rule is None:
            yield f"{name}: nothing is said in {promise.repeats!r}"
        elif not own.numbers:
            if "nothing is promised" not in rule.lower() or _ADDS.search(rule):
                yield f"{name}: {rule!r}"
        else:
            for n in (2, 3):
                numbers = promised(rule, own, n)
                seen[f"{name}, numbers"] += len(numbers)
                if set(numbers) != set(own.numbers):
                    yield f"{name}: {rule!r} says {sorted(numbers)}"
                elif not own.kept(together(w.rows, n), n, numbers):
                    yield f"{name}: {n} reports do not keep {numbers}: {w.rows.tolist()}"


def judge(rng: np.random.Generator) -> Iterator[str]:
    """A mechanism, every kind alone, and one pair of kinds together."""
    w = world(rng)
    for name in (*KINDS, *FOR_USE):
        yield from violations(w, [name])
    first, second = rng.choice([*KINDS, *FOR_USE], 2, replace=False).tolist()
    if not ({first, second} <= set(KINDS) and KINDS[first](w).title == KINDS[second](w).title):
        yield from violations(w, [first, second])
