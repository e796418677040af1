"""Leakage measures against their definitions in fractions, closed forms and an exact program."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import exact_lp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech.spaces.rationals import RationalRows

leakage = om.leakage
F = Fraction


def whole(rows: list[list[int]]) -> om.Mechanism:
    """The mechanism with exactly these rows, each over its sum."""
    secrets, seen = om.Domain(range(len(rows))), om.Domain(range(len(rows[0])))
    return om.Mechanism.of(secrets, seen, RationalRows(tuple(map(tuple, rows))))


def exact(m: om.Mechanism) -> list[list[Fraction]]:
    assert m.exact is not None
    return [[F(value, sum(row)) for value in row] for row in m.exact.rows]


def earned(rows: list[list[Fraction]], prior: list[Fraction], gain: list[list[F]]) -> Fraction:
    """Σ_o max_w Σ_s π g P, in a loop."""
    return sum(
        (
            max(sum(prior[s] * g[s] * rows[s][o] for s in range(len(prior))) for g in gain)
            for o in range(len(rows[0]))
        ),
        F(0),
    )


def identity(n: int) -> list[list[Fraction]]:
    return [[F(int(i == j)) for j in range(n)] for i in range(n)]


def counts(secrets: int, seen: tuple[int, int]) -> st.SearchStrategy[list[list[int]]]:
    return st.integers(*seen).flatmap(
        lambda k: st.lists(
            st.lists(st.integers(0, 3), min_size=k, max_size=k).filter(any),
            min_size=secrets,
            max_size=secrets,
        )
    )


@given(
    counts(3, (1, 4)),
    st.lists(st.integers(0, 3), min_size=3, max_size=3).filter(any),
    st.lists(st.lists(st.integers(-2, 3), min_size=3, max_size=3), min_size=1, max_size=4),
)
def test_vulnerabilities_are_their_definition(
    rows: list[list[int]], weights: list[int], gain: list[list[int]]
) -> None:
    m = whole(rows)
    prior = om.Prior(m.secrets, weights)
    pi = [F(w) for w in prior.weights]
    pi = [w / sum(pi) for w in pi]
    for g, stated in ((identity(3), "identity"), ([[F(v) for v in r] for r in gain], gain)):
        after, blind = (
            earned(exact(m), pi, g),
            max(sum(p * v for p, v in zip(pi, r, strict=True)) for r in g),
        )
        assert leakage.posterior_vulnerability(m, prior, stated).factor == after
        assert leakage.prior_vulnerability(prior, stated).factor == blind
        assert leakage.additive_leakage(m, prior, stated).factor == after - blind >= 0
        if min(map(min, g)) >= 0 and blind:
            found = leakage.multiplicative_leakage(m, prior, stated)
            assert found.factor == after / blind <= leakage.multiplicative_capacity(m).factor
        guesses = leakage.best_guesses(m, prior, stated)
        columns = list(zip(*exact(m), strict=True))
        assert after == sum(
            sum(pi[s] * g[w][s] * column[s] for s in range(3))
            for w, column in zip(guesses, columns, strict=True)
        )


def test_fractions_are_gains_as_they_are() -> None:
    m = whole([[1, 2], [2, 1]])
    third = [[F(1, 3), 0], [0, F(1, 3)]]
    prior = om.Prior.uniform(m.secrets)
    assert leakage.posterior_vulnerability(m, prior, third).factor == F(2, 9)


def test_randomized_response_in_closed_form() -> None:
    """P = e^ε / (e^ε + n - 1) on the diagonal: every capacity of it is known."""
    n, rate = 4, 3
    m = whole([[rate if i == j else 1 for j in range(n)] for i in range(n)])
    p, q = F(rate, rate + n - 1), F(1, rate + n - 1)
    assert leakage.multiplicative_capacity(m).factor == n * p
    assert leakage.maximal_leakage(m).log_of == n * p
    assert leakage.maximal_leakage(m) == pytest.approx(math.log(n * p))
    assert leakage.additive_capacity(m).factor == 1 - n * q
    assert leakage.bayes_risk_capacity(m).value.factor == 1 / (1 - (p - q))
    assert leakage.bayes_risk_capacity(m).prior.weights.tolist() == [0.5, 0.5, 0, 0]
    uniform = om.Prior.uniform(m.secrets)
    # a posterior is (p, q, q, q): TV to the prior p - 1/n
    assert leakage.additive_capacity(m, uniform, spanning="gains").factor == p - F(1, n)
    assert leakage.guessing_entropy(uniform).factor == F(n + 1, 2)
    assert leakage.guessing_entropy(uniform, m).factor == p + q * (2 + 3 + 4)
    capacity = leakage.shannon_capacity(m)
    closed = math.log(n) + float(p) * math.log(p) + (n - 1) * float(q) * math.log(q)
    assert capacity.lower - 1e-15 <= closed <= capacity.upper + 1e-15
    assert capacity.upper - capacity.lower < 1e-12
    assert leakage.shannon_leakage(m, uniform).lower == pytest.approx(closed, abs=1e-15)


@pytest.mark.parametrize("flip", [F(1, 10), F(3, 7)])
def test_capacities_of_binary_channels(flip: Fraction) -> None:
    """Binary symmetric ln 2 - h(p); erasure (1-p) ln 2; Z channel ln(1 + (1-p) p^{p/(1-p)})."""
    p, n = float(flip), flip.denominator
    k = flip.numerator
    h = -p * math.log(p) - (1 - p) * math.log(1 - p)
    known = {
        math.log(2) - h: [[n - k, k], [k, n - k]],
        (1 - p) * math.log(2): [[n - k, k, 0], [0, k, n - k]],
        math.log(1 + (1 - p) * p ** (p / (1 - p))): [[1, 0], [k, n - k]],
    }
    for closed, rows in known.items():
        found = leakage.shannon_capacity(whole(rows), gap=1e-12)
        assert found.lower - 1e-15 <= closed <= found.upper + 1e-15
        assert found.upper - found.lower < 2e-12


def test_shannon_bounds_hold_wherever_the_iteration_is_stopped() -> None:
    m = whole([[1, 0], [1, 9]])
    first, last = leakage.shannon_capacity(m, iterations=0), leakage.shannon_capacity(m)
    assert first.lower < last.lower <= last.upper < first.upper
    assert first.iterations == 0


def test_capacities_are_narrow_where_secrets_are_left_out() -> None:
    """Of many rows two are used: the capacity is that of the two farthest (Z = erasure's ends)."""
    rows = [[k, 60 - k] for k in (1, 2, 9, 20, 33, 59)]
    found = leakage.shannon_capacity(whole(rows))
    assert found.upper - found.lower < 2e-9
    ends = leakage.shannon_capacity(whole([rows[0], rows[-1]]))
    assert found.upper >= ends.lower
    assert ends.upper >= found.lower - 1e-15
    assert found.prior.weights[1:-1].max() < 1e-6


@given(counts(3, (1, 3)))
def test_information_is_its_definition(rows: list[list[int]]) -> None:
    m = whole(rows)
    found = leakage.shannon_leakage(m, om.Prior(m.secrets, [1, 2, 1]))
    expected = om.measures.mutual_information(m, om.Prior(m.secrets, [1, 2, 1]))
    assert found.lower - 1e-12 <= expected <= found.upper + 1e-12
    assert found.width < 1e-14


@given(counts(3, (2, 4)))
def test_capacities_bound_what_priors_on_a_grid_reach(rows: list[list[int]]) -> None:
    m = whole(rows)
    priors = [om.Prior(m.secrets, w) for w in product(range(4), repeat=3) if sum(w) == 3]
    capacity = leakage.bayes_risk_capacity(m)
    for prior in [*priors, capacity.prior]:
        before = 1 - leakage.prior_vulnerability(prior).factor
        after = 1 - leakage.posterior_vulnerability(m, prior).factor
        assert before <= (after * capacity.value.factor if capacity.value < math.inf else 1)
        assert leakage.additive_leakage(m, prior) <= leakage.additive_capacity(m)
    if capacity.value < math.inf:
        # attained by the prior that is named
        pi = capacity.prior
        after = 1 - leakage.posterior_vulnerability(m, pi).factor
        assert F(1, 2) / after == capacity.value.factor or capacity.value == 1
    mask = [1, 0, 1]
    gain = leakage.predicate(m.secrets, [0, 2])
    found = leakage.predicate_capacity(m, mask)
    best = max(leakage.multiplicative_leakage(m, prior, gain) for prior in priors)
    assert best <= found.value == leakage.multiplicative_leakage(m, found.prior, gain)
    risk = leakage.predicate_capacity(m, gain, risk=True)
    assert risk.value == pytest.approx(1 / (2 - found.value) if found.value < 2 else math.inf)


def test_partitions_and_predicates() -> None:
    secrets = om.Domain(["home", "work", "clinic", "hospital"])
    kind = {"home": "usual", "work": "usual", "clinic": "medical", "hospital": "medical"}
    by_block = leakage.partition(secrets, kind)
    assert by_block.tolist() == leakage.partition(secrets, kind.__getitem__).tolist()
    assert by_block.tolist() == [[1, 1, 0, 0], [0, 0, 1, 1]]
    assert leakage.predicate(secrets, ["home", "work"]).tolist() == by_block.tolist()
    with pytest.raises(om.ProblemError, match=r"blocks: 'work' has no block"):
        leakage.partition(secrets, {"home": 1})
    with pytest.raises(om.ProblemError, match="no 'moon'"):
        leakage.predicate(secrets, ["moon"])


@given(counts(3, (1, 5)))
def test_reduced_mechanisms_leak_the_same_and_are_least(rows: list[list[int]]) -> None:
    m = whole(rows)
    few = leakage.reduced(m)
    assert leakage.refines(m, few).holds
    assert leakage.refines(few, m).holds
    columns = [tuple(c) for c in zip(*exact(few), strict=True)]
    shapes = {tuple(v / sum(c) for v in c) for c in columns}
    assert (
        len(shapes)
        == len(columns)
        == len({tuple(v / sum(c) for v in c) for c in zip(*exact(m), strict=True) if any(c)})
    )
    prior = om.Prior(m.secrets, [1, 2, 5])
    posteriors = leakage.hyper(m, prior)
    assert sum(posteriors.outer.fractions) == 1
    mean = [
        sum(
            w * inner[s]
            for w, inner in zip(posteriors.outer.fractions, posteriors.inners, strict=True)
        )
        for s in range(3)
    ]
    assert mean == [F(1, 8), F(1, 4), F(5, 8)]


def holds_and_is_witnessed(a: om.Mechanism, b: om.Mechanism) -> bool:
    """Whether a ⊑ b, after looking at the witness with other code."""
    found = leakage.refines(a, b)
    left, right = exact(a), exact(b)
    if found.holds:
        assert found.remap is not None
        r = exact(found.remap)
        for s, row in enumerate(right):
            made = [sum(left[s][o] * r[o][z] for o in range(len(r))) for z in range(len(row))]
            assert made == row
        return True
    even = [F(1, len(left))] * len(left)
    gain = [[F(v) for v in row] for row in found.gain]
    assert all(0 <= value <= 1 for row in gain for value in row)
    more = earned(right, even, gain) - earned(left, even, gain)
    assert more > 0
    assert more == found.gap.factor
    return False


@settings(max_examples=150)
@given(counts(3, (1, 4)), counts(3, (1, 4)), st.booleans())
def test_refinement_has_a_witness_either_way(
    rows: list[list[int]], others: list[list[int]], composed: bool
) -> None:
    a, b = whole(rows), whole(others)
    if composed:
        remap = [(others * 4)[k] for k in range(len(rows[0]))]
        after = om.Mechanism.of(
            a.observables, b.observables, RationalRows(tuple(map(tuple, remap)))
        )
        b = a.then(after)
    holds = holds_and_is_witnessed(a, b)
    assert holds or not composed
    worst, private = leakage.refines(a, b, "max"), leakage.refines(a, b, "privacy")
    assert worst.holds or not holds
    assert private.holds or not worst.holds
    if not worst.holds:
        y, o = worst.gain[0], b.observables.index(worst.observable)
        columns = zip(*exact(a), strict=True)
        assert all(sum(v * p for v, p in zip(y, c, strict=True)) <= 0 for c in columns)
        assert sum(v * row[o] for v, row in zip(y, exact(b), strict=True)) > 0


@settings(max_examples=25)
@given(counts(2, (2, 3)), counts(2, (2, 2)))
def test_the_deficiency_is_the_optimum_of_its_program(
    rows: list[list[int]], others: list[list[int]]
) -> None:
    """max Σ_z b·y_z - Σ_o t_o, t_o >= a_o·y_z, 0 <= y <= 1/2 each: an exact simplex method."""
    a, b = whole(rows), whole(others)
    found = leakage.refines(a, b)
    left, right = exact(a), exact(b)
    k, seen = len(right[0]), len(left[0])
    unknowns = 2 * k + seen
    objective = [right[s][z] / 2 for s in range(2) for z in range(k)] + [F(-1)] * seen
    program, limits = [], []
    for o, z in product(range(seen), range(k)):
        row = [F(0)] * unknowns
        for s in range(2):
            row[s * k + z] = left[s][o] / 2
        row[2 * k + o] = F(-1)
        program.append(row)
        limits.append(F(0))
    for j in range(2 * k):
        program.append([F(int(i == j)) for i in range(unknowns)])
        limits.append(F(1))
    best = float(exact_lp.maximum(objective, program, limits))
    assert found.deficiency.lower - 1e-12 <= best <= found.deficiency.upper + 1e-12
    assert found.deficiency.width < 1e-9
    assert found.holds == (best == 0)


def test_more_noise_refines_less_up_to_rounding() -> None:
    """Geometric noise of rate 1/2 is that of rate 1, noised again (Ghosh et al., STOC 2009)."""
    line = om.Domain.range(6)
    sharp, blurred = om.mechanisms.geometric(line, 1), om.mechanisms.geometric(line, 0.5)
    assert leakage.refines(sharp, blurred, tolerance=1e-12).holds
    back = leakage.refines(blurred, sharp, tolerance=1e-12)
    assert not back.holds
    assert back.gap > 0.05
    assert not leakage.refines(blurred, sharp, "privacy").holds


def test_dependent_columns_go_to_the_simplex_method() -> None:
    """Three observables of two secrets, and floats that cannot tell 2^-70 from 0."""
    tiny = 2**70
    a = whole([[2, 1, 1], [1, 1, 2]])
    near = whole([[2 * tiny + 1, 2 * tiny - 1], [tiny, 3 * tiny]])
    assert not holds_and_is_witnessed(a, near)
    inside = whole([[2 * tiny - 1, 2 * tiny + 1], [tiny, 3 * tiny]])
    assert holds_and_is_witnessed(a, inside)


def test_mistakes_are_answered_with_places() -> None:
    m = whole([[1, 2], [2, 1]])
    uniform = om.Prior.uniform(m.secrets)
    with pytest.raises(om.ProblemError, match="gain: 'bayes' is unknown"):
        leakage.posterior_vulnerability(m, uniform, "bayes")
    with pytest.raises(om.ProblemError, match=r"gain: shape \(1, 3\) is not \(guesses, 2\)"):
        leakage.posterior_vulnerability(m, uniform, [[1, 2, 3]])
    with pytest.raises(om.ProblemError, match="gain: an entry is negative"):
        leakage.multiplicative_leakage(m, uniform, [[1, -1]])
    with pytest.raises(om.ProblemError, match="prior: is over 3 secrets"):
        leakage.posterior_vulnerability(m, om.Prior.uniform(om.Domain("abc")))
    with pytest.raises(om.ProblemError, match="members: the predicate holds for all"):
        leakage.predicate_capacity(m, [1, 1])
    with pytest.raises(om.ProblemError, match="members: is no mask"):
        leakage.predicate_capacity(m, [1, 2])
    with pytest.raises(om.ProblemError, match="spanning"):
        leakage.additive_capacity(m, spanning="gains")
    with pytest.raises(om.ProblemError, match="order: 'best' is unknown"):
        leakage.refines(m, m, "best")
    with pytest.raises(om.ProblemError, match="tolerance: is for the order"):
        leakage.refines(m, m, "max", tolerance=0.1)
    with pytest.raises(om.ProblemError, match="b: the two mechanisms have different secrets"):
        leakage.refines(m, whole([[1], [1], [1]]))


def test_large_mechanisms_are_decided_by_elimination(monkeypatch: pytest.MonkeyPatch) -> None:
    from optmech_leakage import refinement

    monkeypatch.setattr(refinement, "_PROGRAM", 0)
    a = whole([[5, 2, 1], [1, 6, 2], [2, 2, 7]])
    assert holds_and_is_witnessed(a, whole([[7, 1], [7, 2], [4, 7]]))
    assert holds_and_is_witnessed(a, a)
    # R = 1/2, 1/3, 1/4 of the observables
    remap = om.Mechanism.of(a.observables, om.Domain("xy"), RationalRows(((1, 1), (1, 2), (1, 3))))
    assert holds_and_is_witnessed(a, a.then(remap))
    assert not holds_and_is_witnessed(a.then(remap), a)
    assert not holds_and_is_witnessed(a, whole([[1, 0], [0, 1], [1, 1]]))
    wide = whole([[1, 2, 3, 4], [4, 3, 2, 1], [1, 1, 1, 5]])
    with pytest.raises(om.errors.TooLargeError, match="refines: a remap from 4 to 3 observables"):
        leakage.refines(wide, a)


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=4, max_size=4), min_size=1, max_size=4),
    st.lists(st.integers(-4, 4), min_size=4, max_size=4),
    st.lists(st.integers(0, 3), max_size=3, unique=True),
)
def test_systems_have_a_solution_or_a_reason_why_not(
    rows: list[list[int]], wanted: list[int], likely: list[int]
) -> None:
    """x >= 0 with A x = b, or y with yA <= 0 < yb (Farkas): never both, never neither."""
    from optmech_leakage.feasibility import nonnegative_solution

    a = [[F(v, 3) for v in row] for row in rows]
    b = [F(v, 2) for v in wanted[: len(rows)]]
    found = nonnegative_solution(a, b, likely, where="here")
    assert (found.solution is None) != (found.farkas is None)
    if found.solution is not None:
        assert min(found.solution) >= 0
        assert [sum(v * x for v, x in zip(row, found.solution, strict=True)) for row in a] == b
    else:
        y = found.farkas
        assert sum(v * w for v, w in zip(y, b, strict=True)) > 0
        assert all(sum(v * w for v, w in zip(y, c, strict=True)) <= 0 for c in zip(*a, strict=True))


def test_a_mechanism_of_floats_is_refined_by_itself_in_another_order() -> None:
    """Rows whose floats do not sum to one are drawn over their exact sums, in any order of the
    reports; what leaks is of the probabilities that are drawn with."""
    rng = np.random.default_rng(3)
    uneven = 0
    for _ in range(40):
        n, m = int(rng.choice([2, 4])), int(rng.integers(2, 5))
        rows = rng.dirichlet(np.ones(m), n)
        sums = [sum(map(Fraction, row)) for row in rows.tolist()]
        uneven += any(total != 1 for total in sums)
        secrets, reports = om.Domain.range(n), om.Domain.range(m)
        one = om.Mechanism(secrets, reports, rows)
        other = om.Mechanism(secrets, reports, rows[:, rng.permutation(m)])
        for a, b in ((one, other), (other, one)):
            for order in ("average", "max", "privacy"):
                assert leakage.refines(a, b, order).holds
        # Σ_o max_s π_s p(o|s) for a uniform prior
        drawn = [[Fraction(p) / t for p in row] for row, t in zip(rows.tolist(), sums, strict=True)]
        right = sum(max(column) for column in zip(*drawn, strict=True)) / n
        found = leakage.posterior_vulnerability(one, om.Prior.uniform(secrets))
        assert found.factor == right
    assert uneven > 10
