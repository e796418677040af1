"""Leakage of small mechanisms against its definitions in fractions, own linear programs and brute
force over k reports.

A float matrix counts as its rows over their exact sums: that is what is drawn with.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from exact_lp import maximum
from scipy.optimize import linprog

import optmech as om
from optmech.spaces.rationals import RationalRows

Rows = list[list[Fraction]]
NEAR = 1e-7
"""What a linear program in floats may be off by."""


def judge(rng: np.random.Generator) -> Iterator[str]:
    secrets = int(rng.integers(1, 5))
    a = mechanism(rng, secrets, int(rng.integers(1, 5)))
    b = second(rng, a)
    prior = weights(rng, a.secrets)
    gain = gains(rng, secrets)
    yield from of_one(rng, a, prior, gain)
    yield from of_information(rng, a, prior)
    yield from of_two(a, b)
    yield from of_distance(a, b, prior)
    yield from of_reports(rng, a, b, prior, gain)


def mechanism(rng: np.random.Generator, secrets: int, reports: int) -> om.Mechanism:
    """Floats of any sort, or fractions."""
    kind = rng.integers(8)
    p = rng.dirichlet(np.full(reports, 0.7), secrets)
    if kind == 1:
        p = p * 10.0 ** -rng.integers(0, 14, p.shape)
    if kind == 2:
        p[:] = p[0]
    if kind == 3:
        p = np.eye(max(secrets, reports))[:secrets, :reports] + (reports < secrets) * 0.1
    if kind == 4 and reports > 1:
        p[:, rng.integers(reports)] = 0
    if kind == 5 and reports > 1:
        p[:, 0] = 2 * p[:, 1]
    if kind in (6, 7):
        p = rng.integers(0, 4, p.shape) + np.eye(secrets, reports)
        p[p.sum(axis=1) == 0, 0] = 1
    secret, report = om.Domain.range(secrets), om.Domain([f"r{k}" for k in range(reports)])
    if kind == 7:
        whole = tuple(tuple(map(int, row)) for row in p.tolist())
        return om.Mechanism.of(secret, report, RationalRows(whole))
    p = p + (p.sum(axis=1) == 0)[:, None]
    return om.Mechanism(secret, report, p / p.sum(axis=1, keepdims=True))


def second(rng: np.random.Generator, a: om.Mechanism) -> om.Mechanism:
    """One to compare with: the same with reports swapped, a post-processing, or any."""
    kind, count = rng.integers(4), len(a.observables)
    if kind == 0:
        order = rng.permutation(count)
        labels = om.Domain([a.observables.labels[k] for k in order])
        return om.Mechanism(a.secrets, labels, a.matrix[:, order])
    if kind == 1:
        onto = mechanism(rng, count, int(rng.integers(1, 4)))
        p, r = fractions(a), fractions(om.Mechanism(a.observables, onto.observables, onto.matrix))
        made = [[sum(u * row[o] for u, row in zip(line, r, strict=True)) for o in range(len(r[0]))]
                for line in p]  # fmt: skip
        whole = tuple(tuple(int(v * lcm(row)) for v in row) for row in made)
        return om.Mechanism.of(a.secrets, onto.observables, RationalRows(whole))
    return mechanism(rng, len(a.secrets), int(rng.integers(1, 5)))


def lcm(row: list[Any]) -> int:
    return math.lcm(*(value.denominator for value in row))


def weights(rng: np.random.Generator, domain: om.Domain) -> om.Prior:
    found = rng.dirichlet(np.full(len(domain), 0.7))
    found[rng.random(len(found)) < 0.2] = 0
    return om.Prior(domain, found if found.any() else np.ones(len(domain)))


def gains(rng: np.random.Generator, secrets: int) -> np.ndarray:
    found = rng.normal(size=(int(rng.integers(1, 4)), secrets))
    return np.asarray(np.round(found, 1) if rng.random() < 0.5 else found)


def fractions(m: om.Mechanism) -> Rows:
    if m.exact is not None:
        return [[Fraction(v, sum(row)) for v in row] for row in m.exact.rows]
    rows = [[Fraction(v) for v in row] for row in m.matrix.tolist()]
    return [[v / sum(row) for v in row] for row in rows]


def of_prior(prior: om.Prior) -> list[Fraction]:
    found = [Fraction(v) for v in prior.weights.tolist()]
    return [v / sum(found) for v in found]


def earned(joint: Rows, gain: Rows) -> Fraction:
    return sum(
        (max(sum(g * v for g, v in zip(row, column, strict=True)) for row in gain)
         for column in zip(*joint, strict=True)), Fraction(0),
    )  # fmt: skip


def table(gain: np.ndarray) -> Rows:
    return [[Fraction(v) for v in row] for row in gain.tolist()]


def eye(n: int) -> Rows:
    return [[Fraction(int(i == j)) for j in range(n)] for i in range(n)]


def differs(name: str, found: Any, wanted: Fraction) -> Iterator[str]:
    """Exact numbers are equal, and the float beside them is the nearest."""
    if found.factor != wanted or float(found) != float(wanted):
        yield f"{name}: {float(found)!r}, not {float(wanted)!r} (off by {found.factor - wanted})"


def of_one(
    rng: np.random.Generator, m: om.Mechanism, prior: om.Prior, gain: np.ndarray
) -> Iterator[str]:
    p, pi, n = fractions(m), of_prior(prior), len(m.secrets)
    joint = [[w * v for v in row] for w, row in zip(pi, p, strict=True)]
    leak = om.leakage
    for words, given, exact in (("identity", "identity", eye(n)), ("gain", gain, table(gain))):
        blind = earned([[w] for w in pi], exact)
        told = earned(joint, exact)
        yield from differs(f"V({words})", leak.posterior_vulnerability(m, prior, given), told)
        yield from differs(f"V0({words})", leak.prior_vulnerability(prior, given), blind)
        yield from differs(f"L({words})", leak.additive_leakage(m, prior, given), told - blind)
    columns = list(zip(*p, strict=True))
    capacity = sum((max(c) for c in columns), Fraction(0))
    yield from differs("capacity", leak.multiplicative_capacity(m), capacity)
    support = [s for s in range(n) if pi[s]]
    least = sum((min(c[s] for s in support) for c in columns), Fraction(0))
    yield from differs("additive capacity", leak.additive_capacity(m, prior), 1 - least)
    least = sum(map(min, columns), Fraction(0))
    yield from differs("additive capacity", leak.additive_capacity(m), 1 - least)
    out = [sum(c) for c in zip(*joint, strict=True)]
    moved = sum((max(Fraction(0), joint[s][o] - pi[s] * out[o])
                 for s in range(n) for o in range(len(out))), Fraction(0))  # fmt: skip
    found = leak.additive_capacity(m, prior, spanning="gains")
    yield from differs("mean move", found, moved)
    rounds = sum((k * v for c in zip(*joint, strict=True)
                  for k, v in enumerate(sorted(c, reverse=True), 1)), Fraction(0))  # fmt: skip
    yield from differs("guesses", leak.guessing_entropy(prior, m), rounds)
    # no prior and no gain exceeds a capacity
    other, any_gain = weights(rng, m.secrets), np.abs(gains(rng, n))
    if leak.multiplicative_leakage(m, other, any_gain) > capacity * (1 + Fraction(1, 10**12)):
        yield f"more than the capacity {float(capacity)} leaks"
    apart = [sum(max(Fraction(0), x - y) for x, y in zip(p[i], p[j], strict=True))
             for i in range(n) for j in range(n) if i != j]  # fmt: skip
    farthest = max(apart, default=Fraction(0))
    risk = leak.bayes_risk_capacity(m).value
    if farthest == 1:
        if risk != math.inf:
            yield f"Bayes risk capacity {risk}, not infinite"
    else:
        yield from differs("Bayes risk capacity", risk, 1 / (1 - farthest))
    found = leak.hyper(m, prior)
    seen = {tuple(v / sum(c) for v in c) for c in zip(*joint, strict=True) if any(c)}
    if {tuple(inner.fractions) for inner in found.inners} != seen or sum(
        found.outer.fractions
    ) != 1:
        yield "the posteriors are others"
    fewer = fractions(leak.reduced(m))
    if earned([[w * v for v in row] for w, row in zip(pi, fewer, strict=True)], eye(n)) != earned(
        joint, eye(n)
    ):
        yield "the reduced mechanism leaks otherwise"


def of_information(rng: np.random.Generator, m: om.Mechanism, prior: om.Prior) -> Iterator[str]:
    wanted = information(m.matrix, prior.weights)
    found = om.leakage.shannon_leakage(m, prior)
    if not found.lower - 1e-12 <= wanted <= found.upper + 1e-12 or found.upper - found.lower > 1e-9:
        yield f"mutual information {found} nats, not {wanted}"
    capacity = om.leakage.shannon_capacity(m)
    other = weights(rng, m.secrets).weights
    if information(m.matrix, other) > capacity.upper + 1e-12:
        yield f"a prior learns more than the capacity {capacity.upper}"
    if capacity.upper - capacity.lower > 1e-6:
        yield f"Shannon's capacity between {capacity.lower} and {capacity.upper}"


def information(p: np.ndarray, pi: np.ndarray) -> float:
    out = pi @ p
    terms = [pi[s] * p[s, o] * math.log(p[s, o] / out[o])
             for s, o in np.argwhere(p * pi[:, None] > 1e-300)]  # fmt: skip
    return math.fsum(terms)


def of_two(a: om.Mechanism, b: om.Mechanism) -> Iterator[str]:
    p, q, n = fractions(a), fractions(b), len(a.secrets)
    even = [Fraction(1, n)] * n
    try:
        found = om.leakage.refines(a, b)
    except (om.errors.TooLargeError, om.SolverError) as error:
        yield f"not decided: {error}"
        return
    if found.holds:
        r = fractions(found.remap)
        made = [[sum(u * row[o] for u, row in zip(line, r, strict=True)) for o in range(len(r[0]))]
                for line in p]  # fmt: skip
        if made != q:
            yield "the remap does not lead from a to b"
    else:
        stated = found.gain.tolist() if isinstance(found.gain, np.ndarray) else found.gain
        gain = [[Fraction(v) for v in row] for row in stated]
        told = [earned([[w * v for v in row] for w, row in zip(even, rows, strict=True)], gain)
                for rows in (q, p)]  # fmt: skip
        if told[0] <= told[1] or not all(0 <= v <= 1 for row in gain for v in row):
            yield "the gain does not tell a from b"
    least = deficiency(p, q)
    if not found.deficiency.lower - NEAR <= least <= found.deficiency.upper + NEAR:
        yield f"deficiency {found.deficiency}, not {least}"
    if found.holds and not om.leakage.refines(a, b, "max").holds:
        yield "refined on average and not in the worst case"
    worst = om.leakage.refines(a, b, "max")
    if not worst.holds:
        row, at = worst.gain[0], b.observables.index(worst.observable)
        inside = max(sum(y * v for y, v in zip(row, c, strict=True)) for c in zip(*p, strict=True))
        if inside > 0 or sum(y * line[at] for y, line in zip(row, q, strict=True)) <= 0:
            yield "the row does not separate the posterior"
    private = om.leakage.refines(a, b, "privacy")
    first, other = ratios(p), ratios(q)
    wanted = all(y <= x for x, y in zip(first, other, strict=True))
    if private.holds != wanted or (worst.holds and not private.holds):
        yield f"refined in privacy: {private.holds}, not {wanted}"


def ratios(rows: Rows) -> list[float | Fraction]:
    """The largest ratio of every pair of secrets."""
    out: list[float | Fraction] = []
    for one, other in itertools.combinations(rows, 2):
        pairs = [(x, y) for x, y in zip(one, other, strict=True) if x or y]
        split = any(not x or not y for x, y in pairs)
        out.append(math.inf if split else max(max(x / y, y / x) for x, y in pairs))
    return out


def deficiency(p: Rows, q: Rows) -> float:
    """min_R of the mean over the secrets of TV(q, pR), by a linear program over R and excess."""
    n, mine, theirs = len(p), len(p[0]), len(q[0])
    cost = np.r_[np.zeros(mine * theirs), np.full(n * theirs, 1 / n)]
    rows, most = [], []
    for s, z in itertools.product(range(n), range(theirs)):
        row = np.zeros(len(cost))
        for o in range(mine):
            row[o * theirs + z] = -float(p[s][o])
        row[mine * theirs + s * theirs + z] = -1
        rows.append(row)
        most.append(-float(q[s][z]))
    sums = np.zeros((mine, len(cost)))
    for o in range(mine):
        sums[o, o * theirs : (o + 1) * theirs] = 1
    return float(linprog(cost, np.array(rows), most, sums, np.ones(mine)).fun)


def of_distance(a: om.Mechanism, b: om.Mechanism, prior: om.Prior) -> Iterator[str]:
    found = om.leakage.refinement_distance(a, b, prior)
    pi = of_prior(prior)
    p, q = ([[w * v for v in row] for w, row in zip(pi, fractions(m), strict=True)] for m in (a, b))
    mine, theirs = len(p[0]), len(q[0])
    # the largest mass of a post-processing of a that stays below b
    gained = [sum(row[o] for row in p) for o in range(mine) for _ in range(theirs)]
    places = list(itertools.product(range(mine), range(theirs)))
    rows, most = [], []
    for s, z in itertools.product(range(len(p)), range(theirs)):
        rows.append([p[s][o] * (z == other) for o, other in places])
        most.append(q[s][z])
    for y in range(mine):
        rows.append([Fraction(int(o == y)) for o, _ in places])
        most.append(Fraction(1))
    wanted = 1 - maximum(gained, rows, most)
    if not found.lower <= wanted <= found.upper:
        yield f"refinement distance {found.lower} to {found.upper}, not {float(wanted)}"
    if found.upper - found.lower > 1e-9:
        yield f"refinement distance between {found.lower} and {found.upper}"
    guess = [[Fraction(v) for v in row] for row in found.gain.tolist()]
    more = earned(q, guess) - earned(p, guess)
    if max(map(max, guess)) > 1 or abs(float(more) - found.lower) > 1e-12:
        yield f"the gain earns {float(more)} more, not {found.lower}"


def of_reports(
    rng: np.random.Generator, a: om.Mechanism, b: om.Mechanism, prior: om.Prior, gain: np.ndarray
) -> Iterator[str]:
    k = int(rng.integers(1, 4))
    p, q, pi, n = fractions(a), fractions(b), of_prior(prior), len(a.secrets)
    many = [
        [math.prod((row[o] for o in seen), start=Fraction(1))
         for seen in itertools.product(range(len(row)), repeat=k)] for row in p
    ]  # fmt: skip
    both = [[x * y for x in r for y in t] for r, t in zip(p, q, strict=True)]
    found = om.leakage.repeated(a, k)
    together = om.leakage.parallel(a, b)
    for name, got, rows in (("k reports", found, many), ("two mechanisms", together, both)):
        joint = [[w * v for v in row] for w, row in zip(pi, rows, strict=True)]
        for given, exact in (("identity", eye(n)), (gain, table(gain))):
            wanted, bounds = earned(joint, exact), got.vulnerability(prior, given)
            if not bounds.lower <= wanted <= bounds.upper:
                yield f"{name}: {bounds}, not {float(wanted)}"
        worst = max(ratios(rows), default=Fraction(1))
        if worst == math.inf:
            if got.epsilon != math.inf:
                yield f"{name}: ε {got.epsilon}, not infinite"
        elif abs(float(got.epsilon) - float(math.log(worst))) > 1e-9 * (1 + math.log(worst)):
            yield f"{name}: ε {got.epsilon}, not {math.log(worst)}"
    rate = float(rng.choice([0.0, 0.5, 2.0]))
    floats = [[float(v) for v in row] for row in many]
    pairs = itertools.permutations(floats, 2)
    spent = max((excess(*pair, math.exp(rate)) for pair in pairs), default=0.0)
    bounds = found.delta(rate)
    if not bounds.lower - 1e-12 <= spent <= bounds.upper + 1e-12:
        yield f"δ of {k} reports at {rate}: {bounds}, not {spent}"


def excess(p: list[float], q: list[float], factor: float) -> float:
    return math.fsum(max(0.0, x - factor * y) for x, y in zip(p, q, strict=True))
