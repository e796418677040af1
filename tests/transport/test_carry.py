"""Carrying a guarantee over to distributions: against closed forms, the linear program in
fractions, mechanisms that attain it, and with a solver that returns nonsense."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from exact_lp import maximum
from hypothesis import given, settings, strategies as st
from strategies import distributions, metrics, spread_distributions

import optmech as om
from optmech.transport import pivots
from optmech.transport.gains import CarryOver, carry_over, carry_over_many


def power(x: float) -> Fraction:
    """e^x to 60 digits."""
    with mpmath.workdps(60):
        value = mpmath.exp(x)
        return Fraction(int(mpmath.floor(value * mpmath.mpf(10) ** 700)), 10**700)


def log(value: Fraction) -> mpmath.mpf:
    return mpmath.log(mpmath.mpf(value.numerator)) - mpmath.log(mpmath.mpf(value.denominator))


def exactly(ratio: np.ndarray, a: np.ndarray, b: np.ndarray) -> mpmath.mpf:
    """ln Λ from its definition, max a·v over v_i <= e^{r_ij} v_j with b·v <= 1, in fractions; rows
    of which no entry of one is larger are equal, as both sum to one."""
    count = len(ratio)
    ratio = np.where(ratio.T == 0, 0.0, ratio)
    rows, limits = [], []
    for i in range(count):
        for j in range(count):
            if i != j and np.isfinite(ratio[i, j]):
                row = [Fraction(0)] * count
                row[i], row[j] = Fraction(1), -power(ratio[i, j])
                rows.append(row)
                limits.append(Fraction(0))
    first, second = ([Fraction(x) for x in side.tolist()] for side in (a, b))
    rows.append(second)
    limits.append(Fraction(1))
    with mpmath.workdps(60):
        return log(maximum(first, rows, limits) * sum(second) / sum(first))


def require_bounds(found: CarryOver, truth: mpmath.mpf) -> None:
    """On the right sides, and within 1e-9."""
    with mpmath.workdps(60):
        assert found.lower <= truth + mpmath.mpf(10) ** -40
        assert found.upper >= truth - mpmath.mpf(10) ** -40
    assert found.upper - found.lower <= 1e-9 * max(1.0, abs(found.lower))


@given(r=st.floats(1e-6, 500), back=st.floats(1e-6, 500), t=st.floats(1e-9, 1 - 1e-9))
def test_two_points(r: float, back: float, t: float) -> None:
    """All of a in the first, b in both: v is largest at the first, by e^r."""
    ratio = np.array([[0, r], [back, 0]])
    with mpmath.workdps(60):
        rest = 1 - mpmath.mpf(t)
        total = mpmath.mpf(t) + mpmath.mpf(float(1 - t))
        rest = mpmath.mpf(float(1 - t)) / total
        truth = -mpmath.log(rest + mpmath.mpf(t) / total * mpmath.exp(-mpmath.mpf(r)))
        require_bounds(carry_over(ratio, [1, 0], [1 - t, t]), truth)
        spread = rest + mpmath.mpf(t) / total * mpmath.exp(mpmath.mpf(back))
        require_bounds(carry_over(ratio, [1 - t, t], [1, 0]), mpmath.log(spread))


@given(st.data())
def test_one_place_against_many(data: st.DataObject) -> None:
    distance = data.draw(metrics(5)) * 1.7
    lam = data.draw(distributions(5))
    one = np.eye(5)[2]
    if (lam == one).all():
        return
    with mpmath.workdps(60):
        to = mpmath.fsum(
            mpmath.mpf(x) * mpmath.exp(-d) for x, d in zip(lam, distance[2], strict=True)
        )
        of = mpmath.fsum(
            mpmath.mpf(x) * mpmath.exp(d) for x, d in zip(lam, distance[:, 2], strict=True)
        )
        total = mpmath.fsum(map(mpmath.mpf, lam.tolist()))
        require_bounds(carry_over(distance, one, lam), mpmath.log(total / to))
        require_bounds(carry_over(distance, lam, one), mpmath.log(of / total))


@settings(max_examples=40)
@given(st.data())
def test_against_the_program_in_fractions(data: st.DataObject) -> None:
    count = data.draw(st.integers(2, 4))
    entries = st.one_of(st.floats(0, 5), st.floats(0, 60), st.just(np.inf))
    ratio = np.array(data.draw(st.lists(entries, min_size=count**2, max_size=count**2)))
    a, b = (
        data.draw(distributions(count, zeros=False)),
        data.draw(distributions(count, zeros=False)),
    )
    ratio = ratio.reshape(count, count)
    require_bounds(carry_over(ratio, a, b), exactly(ratio, a, b))


@settings(max_examples=30)
@given(st.data())
def test_over_six_hundred_orders_of_magnitude(data: st.DataObject) -> None:
    ratio = data.draw(metrics(3)) * data.draw(st.sampled_from([0.1, 3.0, 90.0]))
    a, b = (data.draw(spread_distributions(3, zeros=False)) for _ in "ab")
    require_bounds(carry_over(ratio, a, b), exactly(ratio, a, b))


@settings(max_examples=40)
@given(data=st.data(), epsilon=st.sampled_from([0.01, 0.5, 2.0]))
def test_a_mechanism_attains_it_and_none_exceeds_it(data: st.DataObject, epsilon: float) -> None:
    distance = epsilon * data.draw(metrics(4))
    a, b = data.draw(distributions(4)), data.draw(distributions(4))
    found = carry_over(distance, a, b)
    v = np.exp(found.potentials - found.potentials.max())
    # seldom v, else the rest: as small as one likes, the rest keeps any ratio above 1
    seldom = 1e-3 * epsilon * v
    m = om.Mechanism(om.Domain.range(4), om.Domain.range(2), np.column_stack([seldom, 1 - seldom]))
    assert om.measures.epsilon(m, om.distances.matrix(distance)) <= 1 + 1e-9
    told = om.divergences.max_divergence(m.push(a), m.push(b))
    assert found.lower - 1e-9 <= told <= found.upper + 1e-12
    rng = np.random.default_rng(data.draw(st.integers(0, 10**6)))
    for _ in range(50):
        v = (np.exp(-distance) * rng.random(4) ** 4).max(axis=1)
        assert np.log((a @ v) / (b @ v)) <= found.upper + 1e-12


@settings(max_examples=40)
@given(st.data())
def test_witnesses_say_what_they_prove(data: st.DataObject) -> None:
    ratio = 1.3 * data.draw(metrics(5))
    a, b = data.draw(distributions(5)), data.draw(distributions(5))
    found = carry_over(ratio, a, b)
    np.testing.assert_allclose(found.plan.sum(axis=1), a, atol=1e-15)
    arrived = (found.plan * np.exp(ratio)).sum(axis=0)
    assert (arrived <= np.exp(found.upper) * b * (1 + 1e-12)).all()
    v = np.exp(found.potentials)
    assert (v[:, None] <= np.exp(ratio) * v * (1 + 1e-12)).all()
    assert a @ v >= np.exp(found.lower) * (b @ v) * (1 - 1e-12)
    # DP19 Theorem 2 has the longest move of a coupling
    assert found.upper <= om.transport.wasserstein(a, b, ratio, np.inf).value * (1 + 1e-12) + 1e-12


def test_half_of_what_the_longest_move_says() -> None:
    """a in one place, b there and at h: to first order ε h / 2, where W_∞ is h."""
    h = 1e-3
    found = carry_over(np.array([[0, h], [h, 0]]), [1, 0], [0.5, 0.5])
    assert found.upper == pytest.approx(h / 2, rel=1e-3)
    assert om.transport.wasserstein([1, 0], [0.5, 0.5], [[0, h], [h, 0]], np.inf).value == h


def test_paths_are_taken_first() -> None:
    inf = np.inf
    chain = np.array([[0, 1.0, inf], [inf, 0, 2.0], [inf, inf, 0]])
    assert carry_over(chain, [1, 0, 0], [0, 0, 1]).upper == pytest.approx(3.0, rel=1e-14)
    back = carry_over(chain, [0, 0, 1], [1, 0, 0])
    assert back.lower == back.upper == inf
    assert not back.plan.any()
    # what is reached in part only is no help to the rest
    assert carry_over(chain, [0.5, 0, 0.5], [1, 0, 0]).lower == inf
    longer = np.array([[0, 1.0, 9.0], [1.0, 0, 1.0], [9.0, 1.0, 0]])
    assert carry_over(longer, [1, 0, 0], [0, 0, 1]).lower == pytest.approx(2.0, rel=1e-14)


def test_equal_distributions_are_told_apart_by_nothing() -> None:
    found = carry_over(np.full((3, 3), 5.0), [1, 2, 3], [1, 2, 3])
    assert found.lower == found.upper == 0
    np.testing.assert_allclose(found.plan, np.diag([1, 2, 3]) / 6)
    assert carry_over(np.zeros((2, 2)), [1, 0], [0, 1]).upper < 1e-12


def test_numbers_at_the_ends_of_their_range() -> None:
    huge = np.full((2, 2), 1e300)
    found = carry_over(huge, [1, 0], [0, 1])
    assert found.lower <= 1e300 <= found.upper <= 1e300 * (1 + 1e-14)
    found = carry_over(np.full((2, 2), 1.0), [1e308, 1e308], [5e-324, 0])
    assert found.lower <= np.log((1 + np.e) / 2) <= found.upper <= found.lower + 1e-11


def test_what_is_no_share_is_refused() -> None:
    with pytest.raises(om.ProblemError, match="second"):
        carry_over(np.ones((2, 2)), [1, 0], [0, 1]).estimated(0.1, 1.5)


def test_many_are_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(7)
    points = rng.random((12, 2))
    ratio = np.hypot(*(points[:, None] - points).T)
    firsts, seconds = (
        np.where(rng.random((40, 12)) < 0.4, rng.random((40, 12)), 0.0) + np.eye(12)[k] * 0.1
        for k in (0, 11)
    )
    many = carry_over_many(ratio, list(firsts), list(seconds))
    for a, b, found in zip(firsts, seconds, many, strict=True):
        alone = carry_over(ratio, a, b)
        assert (found.lower, found.upper) == (alone.lower, alone.upper)


@settings(max_examples=40)
@given(data=st.data(), shares=st.tuples(st.floats(0, 0.3), st.floats(0, 0.3)))
def test_populations_that_are_known_roughly(
    data: st.DataObject, shares: tuple[float, float]
) -> None:
    ratio = data.draw(metrics(4))
    a, b, other, another = (data.draw(distributions(4)) for _ in range(4))
    found = carry_over(ratio, a, b)
    # mixing in a share moves no farther than the share in total variation
    one, two = (
        (1 - t) * x + t * y for t, x, y in zip(shares, (a, b), (other, another), strict=True)
    )
    domain = om.Domain.range(4)
    m = om.mechanisms.exponential(domain, 1.0, om.distances.matrix(ratio))
    back = carry_over(ratio, b, a)
    told = om.measures.distribution_delta(m, one, two, max(found.upper, back.upper))
    assert told <= max(found.estimated(*shares), back.estimated(*shares[::-1])) + 1e-12
    assert found.estimated(0.0, 0.0) == 0
    assert found.estimated(0.1, 0.0, 0.05) == pytest.approx(0.15)
    assert found.estimated(0.0, 0.01) == pytest.approx(min(1, 0.01 * np.exp(found.upper)))


@pytest.mark.parametrize("answer", [0.0, 1.0, -1.0, np.nan, np.inf])
def test_whatever_the_solver_says_bounds_hold(
    answer: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    ratio = np.array([[0, 0.4, 0.9], [0.4, 0, 0.6], [0.9, 0.6, 0]])
    a, b = np.array([0.6, 0.3, 0.1]), np.array([0.2, 0.3, 0.5])
    truth = exactly(ratio, a, b)

    def nonsense(w: np.ndarray, rows: object, columns: object, *out: np.ndarray) -> None:
        out[2][:], out[3][:] = answer, answer

    monkeypatch.setattr(pivots, "least_arrivals", nonsense)
    found = carry_over(ratio, a, b)
    assert found.lower <= truth <= found.upper
    # every place sends its mass somewhere, at worst across everything
    assert found.upper <= 0.9 + np.log(3)


@pytest.mark.parametrize(
    ("ratio", "a", "b", "where"),
    [
        ([[0, 1]], [1], [1], "log_ratio"),
        ([[0, -1], [1, 0]], [1, 0], [0, 1], "log_ratio"),
        ([[0, np.nan], [1, 0]], [1, 0], [0, 1], "log_ratio"),
        ([[0, 1e301], [1, 0]], [1, 0], [0, 1], "log_ratio"),
        ([[0, 1], [1, 0]], [1, 0, 0], [0, 1], "a"),
        ([[0, 1], [1, 0]], [1, 0], [0, 0], "b"),
    ],
)
def test_bad_input_is_named(ratio: object, a: object, b: object, where: str) -> None:
    with pytest.raises(om.ProblemError, match=f"^{where}"):
        carry_over(ratio, a, b)
    with pytest.raises(om.ProblemError, match="seconds"):
        carry_over_many(np.zeros((2, 2)), [[1, 0]], [])


@pytest.mark.parametrize("back", [5.0, 1e-3, np.inf])
def test_rows_that_cannot_differ_are_the_same(back: float) -> None:
    # p(o|0) <= p(o|1) for all o, and both sum to one
    for a, b in (([0, 1], [1, 0]), ([1, 0], [0, 1]), ([0.25, 0.75], [0.5, 0.5])):
        found = carry_over([[0, 0], [back, 0]], a, b)
        assert found.lower == 0 <= found.upper < 1e-12
    # 0 and 1 are equal by way of 2, and so is what 3 says of them
    ratio = [[0, 9, 0, 9], [9, 0, 9, 9], [9, 0, 0, 9], [9, 9, 2, 0]]
    found = carry_over(ratio, [0, 1, 0, 0], [1, 0, 0, 0])
    assert found.lower == 0 <= found.upper < 1e-12
    for end in range(3):
        found = carry_over(ratio, [0, 0, 0, 1], np.eye(4)[end])
        assert found.lower <= 2 <= found.upper < 2 + 1e-12
