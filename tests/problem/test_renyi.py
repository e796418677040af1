"""Rényi privacy of any order: two-point mechanisms in closed form, and generators against their
definition."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from hypothesis import given, settings, strategies as st
from optmech_audit import inequalities
from scipy.optimize import brentq

import optmech as om
from optmech import prices
from optmech.exact.ratios.generators import (
    GENERATORS,
    generator,
    intercepts_below,
    limit_of,
    power_generator,
)
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()
TWO = om.Prior.uniform(om.Domain("ab"))
ORDERS = [Fraction(2), Fraction(3, 2), Fraction(7), Fraction(1, 2), Fraction(1, 3), Fraction(64)]


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    if order == 1:
        return float((p * np.log(p / q)).sum())
    return math.log(float((p**order * q ** (1 - order)).sum())) / (order - 1)


def error_at(order: float, epsilon: float) -> float:
    """The error of the randomised response whose rows have this divergence."""

    def excess(wrong: float) -> float:
        row = np.array([1 - wrong, wrong])
        return renyi(row, row[::-1], order) - epsilon

    return float(brentq(excess, 1e-12, 0.5, xtol=1e-15))


@pytest.mark.parametrize("order", [1, 2, "3/2", "1/2", 10])
@pytest.mark.parametrize("epsilon", [0.1, 1.5])
def test_randomised_response_of_two_secrets(order: object, epsilon: float) -> None:
    design = om.solve(
        om.Problem(TWO, H, constraints=[om.constraints.RenyiPrivacy(order, epsilon)]), gap=1e-9
    )
    assert design.status == "optimal"
    wrong = error_at(float(Fraction(str(order))), epsilon)
    assert design.loss == pytest.approx(wrong, rel=2e-6)
    assert design.lower_bound <= wrong * (1 + 1e-12)
    (price,) = [p for p in prices.of_constraints(design) if p.parameter == "epsilon"]
    step = 1e-5
    slope = (
        error_at(float(Fraction(str(order))), epsilon + step)
        - error_at(float(Fraction(str(order))), epsilon - step)
    ) / (2 * step)
    assert price.rate == pytest.approx(slope, rel=1e-3)


def test_losses_fall_from_high_to_low_orders() -> None:
    """D_α grows with α: a higher order is the stricter promise, and differential privacy the
    strictest."""
    prior = om.Prior(om.Domain.range(3), [1, 2, 1])
    orders = [om.constraints.RenyiPrivacy(order, 0.5) for order in ("1/2", 2, 8)]
    stated = [*orders, om.DifferentialPrivacy(0.5)]
    losses = [om.solve(om.Problem(prior, E, constraints=[c])).loss for c in stated]
    assert losses == sorted(losses)
    assert losses[0] < losses[-1] - 0.01


def test_order_two_is_chi_squared() -> None:
    prior, rng = om.Prior(om.Domain.range(4), [1, 2, 3, 1]), np.random.default_rng(2)
    pair = [tuple(rng.dirichlet(np.ones(4), 2))]
    power = om.DistributionPrivacy("ln 9/8", pair, divergence="renyi:2")
    chi = om.DistributionPrivacy("1/8", pair, divergence="chi2")
    one, other = (om.solve(om.Problem(prior, E, constraints=[c])) for c in (power, chi))
    assert one.loss == pytest.approx(other.loss, rel=1e-6)
    (family,) = power.families(0, om.Problem(prior, E).space)
    assert family.limits[0] == (Fraction(1, 8), Fraction(1, 8))


@pytest.mark.parametrize("order", ORDERS)
def test_generators_are_their_definition(order: Fraction) -> None:
    rng, f, a = np.random.default_rng(7), power_generator(order), float(order)
    sign = 1 if a > 1 else -1
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    spent = sign * ((p**a * q ** (1 - a)).sum() - 1)
    assert f.terms(p, q).sum() == pytest.approx(spent, rel=1e-9)
    assert (f.terms(p, q) >= 0).all()
    # next to each other: the second-order term, to many digits
    near = q * (1 + 1e-7 * np.array([1, -1, 2, -2, 0, 0]))
    second = abs(a * (a - 1)) / 2 * ((near - q) ** 2 / q)
    assert f.terms(near, q) == pytest.approx(second, rel=1e-5, abs=1e-30)
    zero, one = np.zeros(1), np.ones(1)
    assert f.terms(zero, one)[0] == pytest.approx(abs(a - 1))
    assert f.terms(one, zero)[0] == (math.inf if a > 1 else pytest.approx(a))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(ORDERS),
    st.floats(-30, 30),
    st.fractions(0, 1, max_denominator=50),
    st.fractions(0, 1, max_denominator=50),
)
def test_planes_lie_below_for_both_checkers(
    order: Fraction, slope: float, p: Fraction, q: Fraction
) -> None:
    """α p + β q <= q f(p/q), in rationals but for the power itself."""
    f = power_generator(order)
    alpha = float(f.cut(np.array([slope]))[0])
    beta = float(intercepts_below(f, np.array([alpha]))[0])
    other = inequalities.tangent(f"renyi:{order}", Fraction(slope))
    a = float(order)
    if q == 0 and a > 1:
        return
    power = 0.0 if not p or not q else float(q) * float(p / q) ** a
    sign = 1 if a > 1 else -1
    term = sign * (power - float(q) - a * float(p - q))
    for first, second in ((Fraction(alpha), Fraction(beta)), other):
        assert float(first * p + second * q) <= term * (1 + 1e-9) + 1e-9 * (1 + power)


@pytest.mark.parametrize("order", ORDERS[:5])
def test_limits_and_powers_enclose(order: Fraction) -> None:
    from optmech.exact.number import parse_exact

    low, high = limit_of(order, parse_exact(0.7, where=""))
    value = abs(math.exp(float(order - 1) * 0.7) - 1)
    assert low <= high
    assert float(low) == pytest.approx(value, rel=1e-12)
    assert float(high - low) < 1e-100
    low, high = inequalities.power_bounds(Fraction(5, 7), order)
    assert low < high
    assert float(low) == pytest.approx((5 / 7) ** float(order), rel=1e-14)
    found = inequalities.divergence(
        f"renyi:{order}", [Fraction(1, 3), Fraction(2, 3)], [Fraction(1, 2)] * 2
    )
    direct = renyi(np.array([1, 2]) / 3, np.array([0.5, 0.5]), float(order))
    assert float(found) == pytest.approx(abs(math.exp(float(order - 1) * direct) - 1), rel=1e-12)


def test_a_file_that_promises_less_divergence_is_refused(tmp_path: Path) -> None:
    prior = om.Prior(om.Domain.range(3), [1, 2, 2])
    design = om.solve(om.Problem(prior, E, constraints=[om.constraints.RenyiPrivacy("3/2", 0.4)]))
    path = tmp_path / "d.json"
    for name, value, accepted in (
        ("epsilon", 0.4, True), ("epsilon", 0.399, False), ("order", 2.0, False),
        ("order", "6/4", False), ("order", 1.0, False),
    ):  # fmt: skip
        body = json.loads(design.document())
        del body["digest"]
        body["problem"]["constraints"][0][name] = value
        path.write_bytes(seal(json.dumps(body).encode()))
        try:
            passed = om.check(path).passed
        except om.OptmechError:
            passed = False
        assert passed is accepted, (name, value)
        if accepted:
            audit.audit(str(path))
        else:
            with pytest.raises(audit.Fault):
                audit.audit(str(path))


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: om.constraints.RenyiPrivacy(0, 1), "order"),
        (lambda: om.constraints.RenyiPrivacy(2.3, 1), "order"),
        (lambda: om.constraints.RenyiPrivacy(65, 1), "order"),
        (lambda: om.constraints.RenyiPrivacy("ln 3", 1), "order"),
        (lambda: om.constraints.RenyiPrivacy(2, -1), "epsilon"),
        (
            lambda: om.Problem(TWO, H, constraints=[om.constraints.RenyiPrivacy(2, 11)]),
            "constraints[0].epsilon",
        ),
        (lambda: om.DistributionPrivacy(1, [([1], [1])], divergence="renyi:1"), "divergence"),
        (lambda: om.DistributionPrivacy(1, [([1], [1])], divergence="renyi:4/2"), "divergence"),
        (lambda: om.DistributionPrivacy(1, [([1], [1])], divergence="renyi:"), "divergence"),
        (lambda: generator("renyi:3/0"), "divergence"),
    ],
)
def test_what_cannot_be_meant(make: object, where: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        make()
    assert caught.value.where == where


def test_names_of_orders_stay_out_of_what_has_no_powers() -> None:
    assert set(GENERATORS) == {"kl", "reverse_kl", "chi2", "hellinger"}
    with pytest.raises(om.ProblemError, match="unknown"):
        om.guarantees.weaken(om.guarantees.points(0.5), "renyi:2")
