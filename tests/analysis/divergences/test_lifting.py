"""Divergence guarantees of pairs against the divergences of the very outputs, in fractions: no mass
is too small to matter."""

from __future__ import annotations

import exact_numbers as exact
import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import distributions, spread_distributions

import optmech as om
from optmech import guarantees

d = om.divergences
MEASURES = {
    "max": exact.max_divergence,
    "kl": exact.kl,
    "chi2": exact.chi2,
    "tv": exact.tv,
    "hellinger": exact.hellinger,
}
ANY = st.one_of(distributions(3), spread_distributions(3))


def above(value: mpmath.mpf) -> float:
    """A premise: a little more than what is true."""
    return float(value) * (1 + 1e-14) if value < 1e308 else 1e308


@settings(max_examples=40)
@given(data=st.data(), name=st.sampled_from(sorted(MEASURES)))
def test_no_pair_of_inputs_exceeds_its_guarantee(data: st.DataObject, name: str) -> None:
    matrix = np.array([data.draw(ANY) for _ in range(3)])
    lams = [data.draw(ANY), data.draw(ANY)]
    relation = np.eye(3, dtype=bool) | np.array(
        data.draw(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=3, max_size=3))
    )
    rows = [exact.push(row, matrix) for row in np.eye(3, dtype=int).tolist()]
    rows = [[x / sum(row) for x in row] for row in rows]
    measure = MEASURES[name]
    worst = max(measure(rows[i], rows[j]) for i, j in np.argwhere(relation).tolist())
    if worst == mpmath.inf:
        return
    premise = guarantees.points(above(worst), 0, "Φ", divergence=name)
    try:
        found = guarantees.lift_pair(premise, *lams, relation)
    except om.ProblemError as error:
        if name in ("kl", "chi2") and "too small to matter" in str(error):
            return
        raise
    if isinstance(found, om.transport.Violation):
        return
    one, two = (exact.shares(lam) for lam in lams)
    pushed = [
        [sum(w * row[o] for w, row in zip(lam, rows, strict=True)) for o in range(3)]
        for lam in (one, two)
    ]
    if found.delta:
        with mpmath.workdps(exact.DIGITS):
            factor = mpmath.exp(found.epsilon)
            one, two = ([exact.big(value) for value in output] for output in pushed)
            spent = mpmath.fsum(max(0, p - factor * q) for p, q in zip(one, two, strict=True))
            assert spent <= found.delta
    else:
        assert measure(*pushed) <= found.epsilon


@settings(max_examples=30)
@given(data=st.data(), name=st.sampled_from(sorted(MEASURES)))
def test_no_pair_exceeds_what_its_distance_gives(data: st.DataObject, name: str) -> None:
    lams = [data.draw(ANY), data.draw(ANY)]
    matrix = np.array([[0.5, 0.25, 0.25], [0.3, 0.5, 0.2], [0.1, 0.2, 0.7]])
    apart = np.abs(np.subtract.outer(np.arange(3), np.arange(3))).astype(float)
    rows = [exact.shares(row) for row in matrix]
    measure = MEASURES[name]
    rate = max(
        measure(rows[i], rows[j]) / apart[i, j] for i in range(3) for j in range(3) if i != j
    )
    found = guarantees.lift_metric_pair(
        guarantees.points(above(rate), per="d", divergence=name), *lams, apart
    )
    pushed = [
        [sum(w * row[o] for w, row in zip(exact.shares(lam), rows, strict=True)) for o in range(3)]
        for lam in lams
    ]
    assert measure(*pushed) <= found.epsilon


def test_mass_that_a_float_coupling_forgets_is_not_forgotten() -> None:
    count = 200
    a, b = np.full(count, 1 / (count - 1)), np.full(count, 1 / (count - 1))
    a[0], b[0] = 5e-14, 0.0
    same = np.eye(count, dtype=bool)
    assert d.max_divergence(a / a.sum(), b / b.sum()) == np.inf
    for name in ("kl", "reverse_kl", "chi2"):
        with pytest.raises(om.ProblemError, match="too small to matter"):
            guarantees.lift_pair(
                guarantees.points(0.0, 0, "equal points", divergence=name), a, b, same
            )
    for name in ("tv", "hellinger"):
        found = guarantees.lift_pair(
            guarantees.points(0.0, 0, "equal points", divergence=name), a, b, same
        )
        assert found.epsilon == pytest.approx(5e-14, rel=0.01)
    found = guarantees.lift_pair(guarantees.points(0.0, 0, "equal points"), a, b, same)
    assert found.epsilon == 0
    assert found.delta == pytest.approx(5e-14, rel=0.01)
    # the same pair exactly, and a pair of fractions that floats cannot hold
    found = guarantees.lift_pair(guarantees.points(0.0, 0, "equal points"), a, a, same)
    assert (found.epsilon, found.delta) == (0, 0)
    thirds = ["1/3", "1/3", "1/3"]
    found = guarantees.lift_pair(
        guarantees.points(0.0, 0, "equal points", divergence="kl"), thirds, [1, 1, 1], np.eye(3) > 0
    )
    assert found.epsilon == 0


def test_the_longest_move_of_a_speck_counts() -> None:
    count = 200
    apart = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(float)
    m = om.mechanisms.geometric(om.Domain.range(count), 1.0)
    a, b = np.zeros(count), np.zeros(count)
    a[0], a[-1], b[0], b[-1] = 1 - 5e-14, 5e-14, 1.0, 1e-20
    found = guarantees.lift_metric_pair(guarantees.points(1.0, 0, "all", per="d"), a, b, apart)
    # 5e-14 of the mass has to move by 199, which W_∞ counts in full and ln Λ by what it is worth
    assert d.max_divergence(m.push(a), m.push(b)) == pytest.approx(15.42, abs=0.01)
    assert found.epsilon == pytest.approx(15.42, abs=0.01)


def test_masses_are_rounded_to_within_one_unit_each() -> None:
    """What a coupling says it leaves out covers what rounding to 2^-60 moved."""
    rng = np.random.default_rng(1)
    for count in (2, 30, 300):
        a, b = rng.dirichlet(np.full(count, 0.5), 2)
        line = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(float)
        for p in (1, np.inf):
            found = om.transport.wasserstein(a, b, line, p)
            rows = [sum(map(exact.Fraction, row)) for row in found.plan.tolist()]
            off = sum(abs(x - y) for x, y in zip(rows, exact.shares(a), strict=True)) / 2
            # the plan's floats are rounded once more, each by half a unit in the last place
            assert off <= found.missing + 2.0**-53
            assert found.missing < 3 * count * 2.0**-52
