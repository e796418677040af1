"""Measures, attacks and divergences of small mechanisms against sums of their definitions, at fifty
digits, and a linear program of the min-max attack."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import mpmath
import numpy as np
from scipy.optimize import linprog

import optmech as om

Numbers = Sequence[Any]


def judge(rng: np.random.Generator) -> Iterator[str]:
    n, count = int(rng.integers(1, 5)), int(rng.integers(1, 5))
    points = rng.normal(size=(n, 2))
    if n > 1 and rng.random() < 0.2:
        points[1] = points[0]
    secrets = om.Domain(range(n), points, "km")
    matrix = rows(rng, n, count)
    if n > 1 and rng.random() < 0.2:
        matrix[1] = matrix[0]
    m = om.Mechanism(secrets, om.Domain([f"o{k}" for k in range(count)]), matrix)
    weights = rng.dirichlet(np.ones(n))
    weights[rng.random(n) < 0.2] = 0
    prior = om.Prior(secrets, weights if weights.any() else np.ones(n))
    apart = [[math.dist(p, q) for q in points.tolist()] for p in points.tolist()]
    with mpmath.workdps(50):
        yield from of_privacy(rng, m, apart)
        yield from of_use(rng, m, prior)
        yield from of_attacks(m, prior, apart)
        yield from of_divergences(rng, matrix)


def rows(rng: np.random.Generator, n: int, count: int) -> np.ndarray:
    found = rng.dirichlet(np.full(count, 0.6), n)
    if rng.random() < 0.5:
        found[rng.random(found.shape) < 0.25] = 0
    if rng.random() < 0.3:
        found *= 10.0 ** -rng.integers(0, 12, found.shape)
    found += (found.sum(axis=1) == 0)[:, None]
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def off(name: str, found: float, wanted: Any, slack: float = 1e-12) -> Iterator[str]:
    wanted = float(wanted)
    if not (found == wanted or abs(found - wanted) <= slack * max(1.0, abs(wanted))):
        yield f"{name}: {found!r}, not {wanted!r}"


def big(values: Numbers) -> list[Any]:
    return [mpmath.mpf(float(v)) for v in values]


def log_ratio(p: Numbers, q: Numbers) -> Any:
    """max ln p/q: 0/0 says nothing."""
    pairs = [(x, y) for x, y in zip(big(p), big(q), strict=True) if x > 0]
    if any(y == 0 for _, y in pairs):
        return mpmath.inf
    return max((mpmath.log(x / y) for x, y in pairs), default=mpmath.mpf(0))


def excess(p: Numbers, q: Numbers, rate: Any) -> Any:
    """δ at ε."""
    pairs = zip(big(p), big(q), strict=True)
    return mpmath.fsum(max(mpmath.mpf(0), x - mpmath.exp(rate) * y) for x, y in pairs)


def of_privacy(
    rng: np.random.Generator, m: om.Mechanism, apart: list[list[float]]
) -> Iterator[str]:
    km, p = om.distances.euclidean(), m.matrix.tolist()
    pairs = list(itertools.permutations(range(len(p)), 2))
    plain = max((log_ratio(p[i], p[j]) for i, j in pairs), default=0)
    yield from off("ε", om.measures.epsilon(m), max(0, plain))
    metric: Any = 0
    for i, j in pairs:
        found = log_ratio(p[i], p[j])
        if found > 1e-15:
            metric = max(metric, found / apart[i][j] if apart[i][j] else mpmath.inf)
    measured = om.measures.epsilon(m, km)
    if not (math.isinf(measured) and metric > 1e12):
        yield from off("ε per km", measured, metric)
    rate = float(rng.choice([0.0, 0.3, 1.5]))
    spent = max((excess(p[i], p[j], rate * apart[i][j]) for i, j in pairs), default=0)
    yield from off("δ", om.measures.delta(m, rate, km), spent)
    budget = float(rng.choice([1e-6, 0.05, 0.5]))
    least = om.measures.epsilon_for_delta(m, budget)
    if math.isfinite(least):
        kept = max((excess(p[i], p[j], least * (1 + 1e-12)) for i, j in pairs), default=0)
        if kept > budget * (1 + 1e-9):
            yield f"ε {least} at δ {budget} leaves {kept}"
        less = max((excess(p[i], p[j], least * (1 - 1e-9)) for i, j in pairs), default=0)
        if least > 0 and less < budget * (1 - 1e-6):
            yield f"ε {least} at δ {budget} is not least: {less} at less"
    elif all(excess(p[i], p[j], 900) <= budget for i, j in pairs):
        yield f"ε at δ {budget} is said to be infinite"


def of_use(rng: np.random.Generator, m: om.Mechanism, prior: om.Prior) -> Iterator[str]:
    p, pi = [big(row) for row in m.matrix], big(prior.weights)
    loss = np.round(rng.exponential(size=m.matrix.shape), 2)
    each = [mpmath.fsum(x * c for x, c in zip(r, big(cs), strict=True))
            for r, cs in zip(p, loss, strict=True)]  # fmt: skip
    spent = mpmath.fsum(w * e for w, e in zip(pi, each, strict=True))
    yield from off("expected loss", om.measures.expected_loss(m, prior, loss), spent)
    yield from off("worst loss", om.measures.worst_loss(m, loss), max(each))
    joint = [[w * x for x in r] for w, r in zip(pi, p, strict=True)]
    out = [mpmath.fsum(c) for c in zip(*joint, strict=True)]
    right = mpmath.fsum(max(c) for c in zip(*joint, strict=True))
    yield from off("best guess", om.measures.bayes_vulnerability(m, prior), right)
    told = mpmath.fsum(v * mpmath.log(v / (w * o)) for w, r in zip(pi, joint, strict=True)
                       for v, o in zip(r, out, strict=True) if v > 0)  # fmt: skip
    yield from off("information", om.measures.mutual_information(m, prior), told)
    left = -mpmath.fsum(v * mpmath.log(v / o, 2) for r in joint
                        for v, o in zip(r, out, strict=True) if v > 0)  # fmt: skip
    yield from off("entropy left", om.measures.conditional_entropy(m, prior), left)


def of_attacks(m: om.Mechanism, prior: om.Prior, apart: list[list[float]]) -> Iterator[str]:
    km, n = om.distances.euclidean(), len(m.secrets)
    p, pi = [big(row) for row in m.matrix], big(prior.weights)

    def error(o: int, weights: Numbers) -> Any:
        return min(
            mpmath.fsum(weights[s] * p[s][o] * apart[t][s] for s in range(n)) for t in range(n)
        )

    reports = range(m.matrix.shape[1])
    least = mpmath.fsum(error(o, pi) for o in reports)
    yield from off("optimal attack", om.attacks.optimal_attack(m, prior, km).error, least)
    yield from off("distortion", om.measures.distortion(m, prior, km), least)
    free = mpmath.fsum(error(o, [mpmath.mpf(1) / n] * n) for o in reports)
    yield from off("attack without a prior", om.attacks.prior_free(m, km).error, free)
    drawn = mpmath.mpf(0)
    for o in reports:
        seen = mpmath.fsum(pi[s] * p[s][o] for s in range(n))
        if seen > 0:
            drawn += mpmath.fsum(pi[t] * p[t][o] * pi[s] * p[s][o] * apart[t][s]
                                 for s in range(n) for t in range(n)) / seen  # fmt: skip
    yield from off("attack by the posterior", om.attacks.bayesian(m, prior, km).error, drawn)
    found = om.attacks.minimax(m, km)
    strategy = found.strategy
    worst = max(sum(m.matrix[s, o] * strategy[o, t] * apart[t][s] for o in reports
                    for t in range(n)) for s in range(n))  # fmt: skip
    yield from off("min-max attack", found.value, worst, 1e-9)
    wanted = minimax(m.matrix, np.array(apart))
    if found.lower_bound > wanted + 1e-7 or found.value < wanted - 1e-7:
        yield f"min-max attack {found.lower_bound} to {found.value}, not {wanted}"


def minimax(p: np.ndarray, apart: np.ndarray) -> float:
    """min over strategies q(t|o) of the largest error of a secret."""
    n, count = p.shape
    cost = np.r_[np.zeros(count * n), 1.0]
    limits = np.array([np.r_[np.outer(p[s], apart[:, s]).ravel(), -1.0] for s in range(n)])
    sums = np.hstack([np.kron(np.eye(count), np.ones(n)), np.zeros((count, 1))])
    return float(linprog(cost, limits, np.zeros(n), sums, np.ones(count)).fun)


def of_divergences(rng: np.random.Generator, matrix: np.ndarray) -> Iterator[str]:
    n = len(matrix)
    i, j = (int(rng.integers(n)) for _ in range(2))
    p, q = matrix[i], matrix[j]
    x, y = big(p), big(q)
    x, y = [v / mpmath.fsum(x) for v in x], [v / mpmath.fsum(y) for v in y]
    pairs = list(zip(x, y, strict=True))
    lost = any(a > 0 == b for a, b in pairs)

    def kl(of: list[tuple[Any, Any]]) -> Any:
        if any(a > 0 == b for a, b in of):
            return mpmath.inf
        return mpmath.fsum(a * mpmath.log(a / b) for a, b in of if a > 0)

    d = om.divergences
    yield from off("KL", d.kl(p, q), kl(pairs))
    yield from off("reverse KL", d.reverse_kl(p, q), kl([(b, a) for a, b in pairs]))
    chi = mpmath.inf if lost else mpmath.fsum((a - b) ** 2 / b for a, b in pairs if b > 0)
    yield from off("χ²", d.chi_squared(p, q), chi, 1e-9)
    apart = mpmath.fsum(abs(a - b) for a, b in pairs) / 2
    yield from off("TV", d.total_variation(p, q), apart)
    near = mpmath.fsum((mpmath.sqrt(a) - mpmath.sqrt(b)) ** 2 for a, b in pairs) / 2
    yield from off("squared Hellinger", d.squared_hellinger(p, q), near)
    order = float(rng.choice([0.5, 2.0, 3.0]))
    power = mpmath.fsum(a**order * b ** (1 - order) for a, b in pairs if a > 0 < b)
    if order > 1 and lost:
        wanted = mpmath.inf
    else:
        wanted = mpmath.log(power) / (order - 1) if power > 0 else mpmath.inf
    yield from off(f"Rényi {order}", d.renyi(p, q, order), max(0, wanted), 1e-9)
    rate = float(rng.choice([0.0, 0.7]))
    yield from off("hockey stick", d.hockey_stick(p, q, rate), excess(p, q, rate))
