"""Divergences against scipy, mpmath-free high precision, brute force, and their own theory."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from each import each
from hypothesis import given, settings, strategies as st
from scipy.special import rel_entr
from strategies import distributions, stochastic_matrices

import optmech as om
from optmech import divergences as d
from optmech.exact.ratios.generators import GENERATORS

few = settings(max_examples=20)
NAMED = {
    "kl": d.kl,
    "reverse_kl": d.reverse_kl,
    "tv": d.total_variation,
    "chi2": d.chi_squared,
    "hellinger": d.squared_hellinger,
}
GIVEN = {
    "kl": lambda t: t * math.log(t) if t else 0.0,
    "reverse_kl": lambda t: -math.log(t) if t else math.inf,
    "tv": lambda t: abs(t - 1) / 2,
    "chi2": lambda t: (t - 1) ** 2,
    "hellinger": lambda t: (math.sqrt(t) - 1) ** 2 / 2,
}
ORDERS = [0.0, 0.1, 0.5, 0.9, 1.0, 1.5, 2.0, 7.0, math.inf]


def decimal_sum(name: str, p: np.ndarray, q: np.ndarray) -> float:
    """Σ over the support in 60 decimal digits, as written in CM19 Table I."""
    with localcontext() as context:
        context.prec = 60
        first, second = ([Decimal(float(x)) for x in side] for side in (p, q))
        a, b = sum(first), sum(second)
        total = Decimal(0)
        for x, y in zip((x / a for x in first), (y / b for y in second), strict=True):
            if (x > 0 and y == 0 and name in ("kl", "chi2")) or (
                y > 0 and x == 0 and name == "reverse_kl"
            ):
                return math.inf
            if name == "kl":
                total += x * (x / y).ln() if x else Decimal(0)
            elif name == "reverse_kl":
                total += y * (y / x).ln() if y else Decimal(0)
            elif name == "chi2":
                total += (x - y) ** 2 / y if y else Decimal(0)
            elif name == "hellinger":
                total += (x.sqrt() - y.sqrt()) ** 2 / 2
            else:
                total += abs(x - y) / 2
        return float(total)


@pytest.mark.parametrize("name", NAMED)
@few
@given(data=st.data())
def test_random_and_degenerate_distributions(name: str, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 6))
    p, q = data.draw(distributions(count)), data.draw(distributions(count))
    assert NAMED[name](p, q) == pytest.approx(decimal_sum(name, p, q), rel=2e-15, abs=1e-16)
    if name == "kl":
        assert d.kl(p, q) == pytest.approx(float(rel_entr(p, q).sum()), rel=1e-12, abs=1e-15)
    assert NAMED[name](p, p) == 0


@each("name", NAMED)
@each("apart", [0.3, 1e-3, 1e-6, 1e-9, 1e-12])
def test_nearly_equal_distributions_lose_no_digits(name: str, apart: float) -> None:
    rng = np.random.default_rng(3)
    # whole multiples of 2^-52: sums are exactly one
    q = rng.multinomial(2**40, np.full(8, 1 / 8)) / 2**40
    step = np.round(apart * 2**52 * rng.uniform(0.5, 1, 4)) / 2**52 / 8
    p = q + np.concatenate([step, -step])
    assert p.sum() == q.sum() == 1
    assert NAMED[name](p, q) == pytest.approx(decimal_sum(name, p, q), rel=4e-14, abs=0)


def test_extreme_masses() -> None:
    p, q = np.array([1 - 1e-300, 1e-300]), np.array([0.5, 0.5])
    assert d.kl(p, q) == pytest.approx(math.log(2), rel=1e-15)
    assert d.reverse_kl(p, q) == pytest.approx(0.5 * math.log(0.5 / 1e-300) - math.log(2) / 2)
    assert d.kl([5e-324, 1], [1, 5e-324]) == pytest.approx(-math.log(5e-324))
    assert d.chi_squared([0.5, 0.5], [1 - 1e-300, 1e-300]) == pytest.approx(0.25e300)


@pytest.mark.parametrize("name", GENERATORS)
@few
@given(data=st.data())
def test_enclosures_hold_the_value_and_are_tight(name: str, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 5))
    p, q = data.draw(distributions(count)), data.draw(distributions(count))
    found, exact = d.enclosure(p, q, name), decimal_sum(name, p, q)
    assert found.lower <= exact <= found.upper
    if math.isfinite(exact):
        assert found.upper - found.lower <= 4 * np.spacing(max(exact, 1e-60))


@pytest.mark.parametrize("name", GIVEN)
@few
@given(data=st.data())
def test_any_function_agrees_with_the_named(name: str, data: st.DataObject) -> None:
    p, q = data.draw(distributions(4)), data.draw(distributions(4))
    recession = {"reverse_kl": 0.0}.get(name)
    found = d.f_divergence(p, q, GIVEN[name], recession=recession)
    assert found == pytest.approx(NAMED[name](p, q), rel=1e-12, abs=1e-12)


def test_a_function_is_questioned() -> None:
    p, q = [0.5, 0.5], [1.0, 0.0]
    with pytest.raises(om.ProblemError, match=r"f\(1\) is 1"):
        d.f_divergence(p, q, lambda t: t)
    with pytest.raises(om.ProblemError, match="not convex"):
        d.f_divergence(p, q, lambda t: -t * np.log(t))
    with pytest.raises(om.ProblemError, match=r"f: f\(.*\) is nan"):
        d.f_divergence(p, q, lambda t: np.sqrt(t - 2) - 1)
    with pytest.raises(om.ProblemError, match="at_zero"):
        d.f_divergence(q, p, lambda t: t * np.log(t))
    assert d.f_divergence(q, p, lambda t: t * np.log(t), at_zero=0.0) == pytest.approx(math.log(2))
    # t ln ln-like growth: neither settled nor growing evenly
    slow = lambda t: t * np.log1p(np.log1p(t)) - np.log1p(np.log(2)) * t  # noqa: E731
    with pytest.raises(om.ProblemError, match="recession"):
        d.f_divergence(p, q, slow)
    assert d.f_divergence(p, q, slow, recession=math.inf) == math.inf
    with pytest.raises(om.ProblemError, match="is not a function"):
        d.f_divergence(p, q, "kl")
    with pytest.raises(om.ProblemError, match="recession"):
        d.f_divergence(p, q, GIVEN["tv"], recession="many")


@few
@given(data=st.data(), delta=st.sampled_from([0.0, 0.05, 0.3, 1.0]))
def test_max_divergence_is_that_of_the_worst_set(data: st.DataObject, delta: float) -> None:
    p, q = data.draw(distributions(5)), data.draw(distributions(5))
    best = 0.0
    for size in range(1, 6):
        for chosen in itertools.combinations(range(5), size):
            left, right = sum(p[list(chosen)]) - delta, sum(q[list(chosen)])
            if left > 1e-15:
                best = max(best, math.log(left / right) if right > 0 else math.inf)
    assert d.max_divergence(p, q, delta) == pytest.approx(best, rel=1e-12, abs=1e-12)
    if math.isfinite(best):
        assert d.hockey_stick(p, q, best) <= delta + 1e-12
    if 0 < best < math.inf:
        assert d.hockey_stick(p, q, best * (1 - 1e-6)) > delta


@few
@given(data=st.data(), epsilon=st.sampled_from([0.0, 0.5, "ln 3"]))
def test_hockey_stick_is_the_worst_excess(data: st.DataObject, epsilon: float | str) -> None:
    p, q = data.draw(distributions(4)), data.draw(distributions(4))
    factor = 3.0 if epsilon == "ln 3" else math.exp(float(epsilon))
    sets = itertools.product((0, 1), repeat=4)
    best = max(sum(s * (a - factor * b) for s, a, b in zip(t, p, q, strict=True)) for t in sets)
    assert d.hockey_stick(p, q, epsilon) == pytest.approx(best, abs=1e-14)
    if epsilon == 0.0:
        assert d.total_variation(p, q) == pytest.approx(best, abs=1e-14)


@few
@given(data=st.data(), order=st.sampled_from(ORDERS))
def test_renyi_of_every_order(data: st.DataObject, order: float) -> None:
    p, q = data.draw(distributions(4)), data.draw(distributions(4))
    joint = (p > 0) & (q > 0)
    if order == math.inf:
        expected = d.max_divergence(p, q)
    elif order == 1:
        expected = decimal_sum("kl", p, q)
    elif not joint.any() or (order > 1 and (p[q == 0] > 0).any()):
        expected = math.inf
    else:
        total = float((p[joint] ** order * q[joint] ** (1 - order)).sum())
        expected = math.log(total) / (order - 1)
    assert d.renyi(p, q, order) == pytest.approx(expected, rel=1e-11, abs=1e-13)


@few
@given(data=st.data())
def test_renyi_grows_with_its_order_and_is_continuous_at_one(data: st.DataObject) -> None:
    p, q = data.draw(distributions(4)), data.draw(distributions(4))
    found = [d.renyi(p, q, order) for order in ORDERS]
    assert all(a <= b * (1 + 1e-12) + 1e-13 for a, b in itertools.pairwise(found))
    if math.isfinite(d.kl(p, q)):
        for order in (1 - 1e-9, 1 + 1e-9):
            assert d.renyi(p, q, order) == pytest.approx(d.kl(p, q), rel=1e-7, abs=1e-16)


@pytest.mark.parametrize("order", [0.01, 0.4, 0.7, 0.99999, 1.00001, 3.0, 40.0])
def test_renyi_of_nearly_equal_distributions(order: float) -> None:
    """D_α = α χ²/2 to leading order."""
    q = np.array([0.25, 0.25, 0.5])
    p = q + np.array([2.0**-40, 2.0**-41, -3 * 2.0**-41])
    expected = order * decimal_sum("chi2", p, q) / 2
    assert d.renyi(p, q, order) == pytest.approx(expected, rel=1e-9)


def test_renyi_of_far_distributions() -> None:
    p, q = np.array([1 - 1e-200, 1e-200]), np.array([1e-200, 1 - 1e-200])
    assert d.renyi(p, q, 0.5) == pytest.approx(-2 * math.log(2e-100), rel=1e-14)
    assert d.renyi(p, q, 30) == pytest.approx(200 * math.log(10), rel=1e-14)
    for order in (-0.1, math.nan, "2", None, True):
        with pytest.raises(om.ProblemError, match="order"):
            d.renyi(p, q, order)


MEASURES = {
    **NAMED,
    "max": d.max_divergence,
    "approximate max": lambda p, q: d.max_divergence(p, q, 0.1),
    "hockey stick": lambda p, q: d.hockey_stick(p, q, 0.3),
    "renyi 1/3": lambda p, q: d.renyi(p, q, 1 / 3),
    "renyi 4": lambda p, q: d.renyi(p, q, 4),
}


@pytest.mark.parametrize("name", MEASURES)
@few
@given(data=st.data())
def test_data_processing(name: str, data: st.DataObject) -> None:
    p, q = data.draw(distributions(4)), data.draw(distributions(4))
    channel = data.draw(stochastic_matrices(4, 3))
    before, after = MEASURES[name](p, q), MEASURES[name](p @ channel, q @ channel)
    assert after <= before * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("name", [*NAMED, "hockey stick", "renyi 1/3"])
@few
@given(data=st.data(), share=st.sampled_from([0.0, 0.25, 0.5, 0.9]))
def test_joint_convexity(name: str, data: st.DataObject, share: float) -> None:
    p0, p1, q0, q1 = (data.draw(distributions(4)) for _ in range(4))
    mixed = MEASURES[name](share * p0 + (1 - share) * p1, share * q0 + (1 - share) * q1)
    parts = [(share, MEASURES[name](p0, q0)), (1 - share, MEASURES[name](p1, q1))]
    chord = sum(weight * value for weight, value in parts if weight > 0)
    assert mixed <= chord * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("name", ["max", "renyi 4"])
@few
@given(data=st.data())
def test_joint_quasi_convexity(name: str, data: st.DataObject) -> None:
    p0, p1, q0, q1 = (data.draw(distributions(4)) for _ in range(4))
    mixed = MEASURES[name]((p0 + p1) / 2, (q0 + q1) / 2)
    assert mixed <= max(MEASURES[name](p0, q0), MEASURES[name](p1, q1)) * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("measure", [d.kl, d.total_variation, d.max_divergence])
def test_unusable_distributions_are_refused(measure: object) -> None:
    for p, q, where in [
        ([0.5, 0.6], [0.5, 0.5], "p"),
        ([0.5, 0.5], [1.5, -0.5], "q"),
        ([0.5, 0.5], [1.0], "q"),
        ([], [], "p"),
        ([0.5, math.nan], [0.5, 0.5], "p"),
        ("ab", [0.5, 0.5], "p"),
        ([[0.5, 0.5]], [0.5, 0.5], "p"),
    ]:
        with pytest.raises(om.ProblemError) as caught:
            measure(p, q)
        assert caught.value.where == where
    with pytest.raises(om.ProblemError, match="no smooth generator"):
        d.enclosure([1.0], [1.0], "tv")
    prior = om.Prior.uniform(om.Domain("ab"))
    assert d.kl(prior, [0.5, 0.5]) == 0


@pytest.mark.parametrize("order", [1e9, 1e11, 1e100, 1e300, 1.7e308])
def test_renyi_of_huge_orders_is_nearly_the_largest_ratio(order: float) -> None:
    p, q = [1e-3, 0.999], [1e-60, 1.0]
    found = om.divergences.renyi(p, q, order)
    largest = 57 * math.log(10)
    assert largest + math.log(1e-3) / (order - 1) == pytest.approx(found, rel=1e-13)
