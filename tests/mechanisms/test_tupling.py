"""The tupling mechanism against enumeration of all tuples, simulation and DP19's numbers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import distributions, stochastic_matrices

import optmech as om
from optmech import mechanisms
from optmech.mechanisms import hockey_sum

EUCLIDEAN = om.distances.euclidean()


def tuples(t: mechanisms.Tupling, lam: np.ndarray) -> dict[tuple[int, ...], float]:
    """Q#λ by its definition: the truth in every place, dummies elsewhere."""
    output, nu, n = lam @ t.base.matrix, t.dummy_weights, t.dummies + 1
    found = {}
    for word in itertools.product(range(len(nu)), repeat=n):
        found[word] = (
            sum(
                output[word[i]] * math.prod(nu[word[j]] for j in range(n) if j != i)
                for i in range(n)
            )
            / n
        )
    return found


def enumerated_delta(t: mechanisms.Tupling, lam0: np.ndarray, lam1: np.ndarray, e: float) -> float:
    p, q = tuples(t, lam0), tuples(t, lam1)
    there = math.fsum(max(0.0, p[w] - math.exp(e) * q[w]) for w in p)
    back = math.fsum(max(0.0, q[w] - math.exp(e) * p[w]) for w in p)
    return max(there, back)


@st.composite
def cases(draw: st.DrawFn, zeros: bool = True) -> tuple[mechanisms.Tupling, np.ndarray, np.ndarray]:
    n, m, k = draw(st.integers(1, 3)), draw(st.integers(1, 4)), draw(st.integers(0, 3))
    domain = om.Domain.range(n)
    base = om.Mechanism(domain, om.Domain.range(m), draw(stochastic_matrices(n, m, zeros)))
    made = mechanisms.tupling(base, k, draw(distributions(m, zeros)))
    return made, draw(distributions(n)), draw(distributions(n))


@given(cases(), st.sampled_from([0.0, 0.1, 0.5, 2.0]))
@settings(max_examples=60)
def test_delta_by_enumeration(
    case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray], e: float
) -> None:
    made, lam0, lam1 = case
    expected = enumerated_delta(made, lam0, lam1, e)
    found = made.delta(lam0, lam1, e)
    assert found.lower - 1e-15 <= expected <= found.upper + 1e-15
    assert found.width < 1e-11
    assert found.lower == pytest.approx(expected, abs=1e-12 + 0.5 * found.width)


@pytest.mark.parametrize("k", [1, 2, 4, 6])
@pytest.mark.parametrize("seed", range(3))
def test_lattice_holds_what_the_halves_give(
    monkeypatch: pytest.MonkeyPatch, k: int, seed: int
) -> None:
    """Both ways of the same number: listed multisets, and the lattice's bounds around them."""
    rng = np.random.default_rng(seed)
    domain = om.Domain.range(6)
    base = om.Mechanism(domain, domain, rng.dirichlet(np.ones(6), 6))
    made = mechanisms.tupling(base, k, rng.dirichlet(np.full(6, 0.7)))
    lam0, lam1 = rng.dirichlet(np.ones(6), 2)
    exact = [made.delta(lam0, lam1, e) for e in (0.0, 0.05, 0.3)]
    monkeypatch.setattr(hockey_sum, "_MOST_MULTISETS", 0)
    for e, known in zip((0.0, 0.05, 0.3), exact, strict=True):
        for nodes in (2**12, 2**18):
            found = made.delta(lam0, lam1, e, nodes=nodes)
            assert found.lower <= known.lower
            assert known.upper <= found.upper
        assert found.width < 1e-5


def paper_like(spread: float = 60.0) -> tuple[om.Mechanism, np.ndarray, np.ndarray]:
    """276 regions, two smooth populations."""
    grid = om.Grid(12, 23)
    base = mechanisms.restricted_laplace(grid, 10.0, 2.0)
    x, y = grid.points.T
    lam0 = np.exp(-((x - 10) ** 2 + (y - 6) ** 2) / spread)
    lam1 = np.exp(-((x - 12) ** 2 + (y - 5.5) ** 2) / spread)
    return base, lam0 / lam0.sum(), lam1 / lam1.sum()


@pytest.mark.parametrize("k", [10, 100])
def test_delta_by_simulation(k: int) -> None:
    base, lam0, lam1 = paper_like()
    made = mechanisms.tupling(base, k)
    p, q = lam0 @ base.matrix, lam1 @ base.matrix
    e, count = 0.02, 200_000
    rng = np.random.default_rng(0)
    terms = rng.choice((p - math.exp(e) * q) * 276, size=(count, k + 1)).mean(axis=1)
    back = rng.choice((q - math.exp(e) * p) * 276, size=(count, k + 1)).mean(axis=1)
    found = made.delta(lam0, lam1, e)
    seen = [np.maximum(x, 0) for x in (terms, back)]
    best = max(seen, key=lambda x: x.mean())
    assert abs(best.mean() - found.lower) < 5 * best.std() / math.sqrt(count)
    assert found.width < 1e-6


def test_epsilon_inverts_delta() -> None:
    base, lam0, lam1 = paper_like()
    made = mechanisms.tupling(base, 10)
    found = made.epsilon(lam0, lam1, 0.001)
    assert found.width < 1e-4
    assert made.delta(lam0, lam1, found.upper).upper <= 0.001 + 1e-7
    assert made.delta(lam0, lam1, found.lower - 1e-9).upper > 0.001 - 1e-7


def test_epsilon_without_delta_is_that_of_the_base() -> None:
    """All k + 1 points where the base's ratio is largest attain it (DP19 Prop. 10 is tight)."""
    base, lam0, lam1 = paper_like()
    made = mechanisms.tupling(base, 3)
    expected = om.measures.distribution_epsilon(base, lam0, lam1)
    assert made.epsilon(lam0, lam1, 0.0).lower == pytest.approx(expected, rel=1e-12)


def test_epsilon_is_infinite_where_dummies_do_not_cover() -> None:
    domain = om.Domain.range(3)
    base = om.Mechanism(domain, domain, np.eye(3))
    made = mechanisms.tupling(base, 2, [1, 1, 0])
    assert made.epsilon([0.5, 0.2, 0.3], [0.5, 0.5, 0], 0.01).upper == math.inf
    covered = mechanisms.tupling(base, 2)
    assert covered.epsilon([0.5, 0.2, 0.3], [0.5, 0.5, 0], 0.2).upper < 5


@given(cases())
@settings(max_examples=40)
def test_attack_success_by_enumeration(
    case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray],
) -> None:
    """Ties may go either way: the bounds cover both, and no more than the chords' steps cost."""
    made, lam0, lam1 = case
    p, q = tuples(made, lam0), tuples(made, lam1)
    # what differs by rounding only is a tie
    sure = [w for w in p if p[w] > q[w] * (1 + 1e-9)]
    tied = [w for w in p if abs(p[w] - q[w]) <= 1e-9 * q[w]]
    has, has_not = made.attack_success(lam0, lam1)
    low, high = math.fsum(p[w] for w in sure), math.fsum(p[w] for w in [*sure, *tied])
    assert has.lower - 1e-12 <= low <= high <= has.upper + 1e-12
    low = math.fsum(q[w] for w in p if w not in sure and w not in tied)
    assert has_not.lower - 1e-12 <= low
    assert low + math.fsum(q[w] for w in tied) <= has_not.upper + 1e-12
    # a likelihood ratio within 1e-5 of 1 without being 1 does not occur with such small numbers
    assert has.width <= math.fsum(p[w] for w in tied) + 1e-6
    assert has_not.width <= math.fsum(q[w] for w in tied) + 1e-6
    assert has.lower + has_not.upper == pytest.approx(1 + made.delta(lam0, lam1, 0.0).upper)


@given(cases(zeros=False))
@settings(max_examples=40)
def test_kl_by_enumeration(case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray]) -> None:
    made, lam0, lam1 = case
    p, q = tuples(made, lam0), tuples(made, lam1)
    expected = math.fsum(p[w] * math.log(p[w] / q[w]) for w in p if p[w] > 0)
    found = made.kl(lam0, lam1, nodes=2**16)
    assert found.lower - 1e-14 <= expected <= found.upper + 1e-14
    assert found.width < 1e-3


@pytest.mark.parametrize("e", [25.0, 60.0, 700.0, 5000.0])
def test_delta_at_huge_epsilon(e: float) -> None:
    """What is left is the mass that only one of the two can produce."""
    domain = om.Domain.range(3)
    base = om.Mechanism(domain, domain, np.eye(3))
    lam0, lam1 = [0.2, 0.3, 0.5], [0.0, 0.5, 0.5]
    found = mechanisms.tupling(base, 2).delta(lam0, lam1, e)
    # the truth is the first point, and so are both dummies
    expected = 0.2 / 9
    assert found.lower <= expected * (1 + 1e-12)
    assert found.upper == pytest.approx(expected, abs=1e-5)


def test_kl_is_infinite_where_a_tuple_excludes_one() -> None:
    domain = om.Domain.range(2)
    base = om.Mechanism(domain, domain, np.eye(2))
    made = mechanisms.tupling(base, 3)
    assert made.kl([0.5, 0.5], [0, 1]).lower == math.inf
    assert made.kl([0, 1], [0.5, 0.5]).upper < math.inf


def enumerated_loss(t: mechanisms.Tupling, prior: np.ndarray, d: np.ndarray) -> tuple[float, float]:
    nearest = average = 0.0
    for x, weight in enumerate(prior):
        for word, chance in tuples(t, np.eye(len(prior))[x]).items():
            nearest += weight * chance * min(d[x, y] for y in word)
            average += weight * chance * sum(d[x, y] for y in word) / len(word)
    return nearest, average


@given(cases())
@settings(max_examples=40)
def test_losses_by_enumeration(case: tuple[mechanisms.Tupling, np.ndarray, np.ndarray]) -> None:
    made, lam0, _ = case
    prior = om.Prior(made.base.secrets, lam0)
    d = EUCLIDEAN(made.base.secrets, made.base.observables)
    nearest, average = enumerated_loss(made, lam0, d)
    assert made.expected_loss(prior, EUCLIDEAN) == pytest.approx(nearest, abs=1e-12)
    assert made.all_points_loss(prior, EUCLIDEAN) == pytest.approx(average, abs=1e-12)


def test_theorem_3_bounds_the_exact_number_by_far() -> None:
    base, lam0, lam1 = paper_like(600.0)
    for k in (10, 50, 100):
        made = mechanisms.tupling(base, k)
        for delta in (0.001, 0.01, 0.1):
            bound = made.theorem3(lam0, lam1, delta)
            assert 0 < bound < math.inf
            assert made.delta(lam0, lam1, bound / 5).upper < delta


def test_theorem_3_of_table_2() -> None:
    """DP19 Table 2 has 2.170, 1.625 and 1.140 for k = 10 and |Y| = 276, from three β: the one of
    the first, found by bisection, gives 1.6347 and 1.1563."""
    k, outputs, seen = 10, 276, []
    for delta, printed in ((0.001, 2.170), (0.01, 1.625), (0.1, 1.140)):
        low, high = 0.0, 0.01
        for _ in range(60):
            beta = (low + high) / 2
            # as DP19 prints it: δ = 2 e^{-2α²/(kβ²)}
            alpha = beta * math.sqrt(k * math.log(2 / delta) / 2)
            own = math.log((k + (alpha + beta) * outputs) / (k - alpha * outputs))
            low, high = (beta, high) if own < printed else (low, beta)
        found = mechanisms.theorem3_epsilon(k, outputs, low, delta=delta)
        assert found == pytest.approx(printed, rel=1e-9)
        seen.append(low)
    assert [round(beta, 6) for beta in seen] == [0.004596, 0.004577, 0.00454]
    others = [mechanisms.theorem3_epsilon(k, outputs, seen[0], delta=d) for d in (0.01, 0.1)]
    assert others == [pytest.approx(1.6347, abs=5e-5), pytest.approx(1.1563, abs=5e-5)]


def test_theorem_3_needs_uniform_dummies() -> None:
    base, lam0, lam1 = paper_like()
    with pytest.raises(om.ProblemError, match="uniform dummies only"):
        mechanisms.tupling(base, 2, np.arange(1, 277)).theorem3(lam0, lam1, 0.01)
    assert mechanisms.theorem3_epsilon(1, 1000, 0.5, delta=0.001) == math.inf


def test_a_constant_refutes_proposition_12() -> None:
    """(λA)(y) = 1 for a constant A, above every λ(x): β must be taken after A."""
    domain = om.Domain.range(10)
    constant = om.Mechanism(domain, domain, np.eye(10)[[0] * 10])
    uniform = np.full(10, 0.1)
    assert constant.push(uniform).max() == pytest.approx(1.0)
    assert constant.push(uniform).max() > uniform.max()
    assert constant.push(uniform).min() < uniform.min()


def test_theorem_3_is_false_where_some_outputs_may_be_likely() -> None:
    """η = 1/m: point masses, the identity on m places; promised is 0.01 at ε = 0.0021."""
    m, k, alpha, beta = 100, 1, 1e-5, 1e-6
    epsilon = math.log((k + (alpha + beta) * m) / (k - alpha * m))
    promised = 2 * math.exp(-2 * alpha**2 / (k * beta**2)) + 1 / m
    cells = om.Domain.range(m)
    made = mechanisms.tupling(om.Mechanism(cells, cells, np.eye(m)), k)
    first, second = np.eye(m)[:2]
    assert (first @ made.base.matrix > beta).mean() == pytest.approx(1 / m)
    found = made.delta(first, second, epsilon)
    assert promised == pytest.approx(0.01)
    assert epsilon == pytest.approx(0.0021, abs=2e-5)
    # the two tuples of both places, of probability 1/2m each under either, do not tell them apart
    assert found.lower == pytest.approx(1 - 1 / m, abs=1e-9)


def test_samples_have_the_law() -> None:
    domain = om.Domain("abc", [[0.0], [1.0], [2.0]])
    base = om.Mechanism(domain, domain, [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]])
    made = mechanisms.tupling(base, 1, [0.5, 0.25, 0.25])
    count = 1500
    seen: dict[tuple[int, ...], int] = {}
    for seed in range(count):
        word = tuple("abc".index(str(label)) for label in made.sample("a", seed=seed))
        seen[word] = seen.get(word, 0) + 1
    law = tuples(made, np.array([1.0, 0, 0]))
    for word, chance in law.items():
        assert abs(seen.get(word, 0) / count - chance) < 5 * math.sqrt(chance / count) + 1e-12
    assert len(made.sample("b")) == 2


@pytest.mark.parametrize("k", [-1, 1.5, True, 20_000])
def test_dummies_are_counted(k: object) -> None:
    base = mechanisms.randomized_response(om.Domain.range(2), 1.0)
    with pytest.raises(om.ProblemError, match="whole number"):
        mechanisms.tupling(base, k)  # type: ignore[arg-type]


def test_bad_weights_are_named() -> None:
    base = mechanisms.randomized_response(om.Domain.range(2), 1.0)
    with pytest.raises(om.ProblemError) as caught:
        mechanisms.tupling(base, 1, [1, 2, 3])
    assert caught.value.where == "dummy_weights"
    with pytest.raises(om.ProblemError) as caught:
        mechanisms.tupling(base, 1).delta([1, 2], [1, -2], 0.0)
    assert caught.value.where == "lam1"
