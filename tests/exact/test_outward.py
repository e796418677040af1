"""Exponentials and logarithms against mpmath: on the right side, and close."""

from __future__ import annotations

import re
from fractions import Fraction

import mpmath
import numpy as np
from hypothesis import example, given, strategies as st

import optmech as om
from optmech.designs.promise import at_every_point, promise_of
from optmech.exact.number import from_above, from_below
from optmech.exact.rounding import exp_down, exp_up, log_floats, log_range
from optmech.problem.promised import Measure


def between(low: float, value: mpmath.mpf, high: float, width: float) -> bool:
    return bool(low <= value <= high and high - low <= width * max(1, abs(value)))


@given(st.floats(-700, 700))
@example(700.0)
@example(-700.0)
@example(0.0)
@example(0.34657359027997264)
@example(-0.34657359027997264)
@example(5e-324)
def test_exponentials_are_enclosed(x: float) -> None:
    with mpmath.workdps(60):
        power = mpmath.exp(x)
        low, high = (float(f(np.array(x))) for f in (exp_down, exp_up))
        assert low <= power <= high
        assert high - low <= 6e-15 * power


def test_exponentials_beyond_floats_stay_bounds() -> None:
    x = np.array([-np.inf, -1e300, -701.0, 701.0, 1e300, np.inf])
    low, high = exp_down(x), exp_up(x)
    assert (low[:3] == 0).all()
    assert (high[:3] > 0).all()
    assert (high[:3] < 1e-303).all()
    assert (high[3:] == np.inf).all()
    assert np.isfinite(low[3:]).all()
    assert (low[3:] > 1e303).all()


@given(st.floats(0, 1e308, exclude_min=True))
@example(5e-324)
@example(1.0)
@example(0.5)
@example(1.7976931348623157e308)
def test_logarithms_are_enclosed(y: float) -> None:
    with mpmath.workdps(60):
        low, high = (float(end) for end in log_floats(np.array(y)))
        assert between(low, mpmath.log(y), high, 1e-14)


@given(st.floats(0.5, 1, exclude_max=True), st.integers(-(2**40), 2**40))
def test_logarithms_of_numbers_with_exponents_of_their_own(m: float, e: int) -> None:
    with mpmath.workdps(60):
        low, high = (float(end) for end in log_range(np.array(m), np.array(e)))
        assert between(low, mpmath.log(m) + e * mpmath.log(2), high, 1e-14)


def test_the_logarithm_of_zero() -> None:
    low, high = log_floats(np.array([0.0, 1.0]))
    assert low[0] == high[0] == -np.inf
    assert low[1] <= 0 <= high[1]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 15))
@example(0.2499999999, 6)
@example(2 / 3, 4)
@example(-1 / 3, 2)
@example(5e-324, 3)
@example(1.7976931348623157e308, 5)
def test_bounds_are_shown_on_their_side(value: float, digits: int) -> None:
    low, high = from_below(value, digits), from_above(value, digits)
    assert float(low) <= value <= float(high)
    if 1e-300 < abs(value) < 1e300:
        assert float(high) - float(low) <= 2 * abs(value) * 10.0 ** (1 - digits)
    for text in (low, high):
        assert len(text.replace("-", "").replace(".", "").partition("e")[0].lstrip("0")) <= digits


def test_what_a_promise_adds_to_a_distance_is_shown_from_above() -> None:
    """The earth's file for tables has 0.1517 km, which was shown as 0.15: ε (d + 0.15) is less than
    what holds. The rate of "ln k" as a number likewise."""
    rng = np.random.default_rng(5)
    km = om.distances.euclidean()
    for _ in range(200):
        slack, base = float(10 ** rng.uniform(-6, 3)), int(rng.integers(2, 40))
        said = at_every_point(1.0, "ε = 1", Measure("haversine", "km"), slack).sentence
        assert Fraction(said.partition("(ε (d + ")[2].partition(" km")[0]) >= Fraction(slack)
        stated = om.MetricPrivacy(f"ln {base}", km)
        problem = om.Problem(om.Prior.uniform(om.Domain.range(3)), km, constraints=[stated])
        rate = promise_of(problem).sentence.partition(f"ln {base}")[2]
        shown = re.search(r", ([0-9]+(?:\.[0-9]+)?)", rate)
        assert shown
        assert mpmath.mpf(shown[1]) >= mpmath.log(base)
