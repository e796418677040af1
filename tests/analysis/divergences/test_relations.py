"""Divergence guarantees from one another: brute force, and what attains them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from strategies import distributions, mechanisms

import optmech as om
from optmech import divergences as d, guarantees

FUNCTION = {
    "max": d.max_divergence,
    "chi2": d.chi_squared,
    "kl": d.kl,
    "reverse_kl": d.reverse_kl,
    "tv": d.total_variation,
    "hellinger": d.squared_hellinger,
}
FOLLOWS = [
    *itertools.product(["max"], ["kl", "tv", "chi2", "hellinger"]),
    *itertools.product(["chi2"], ["kl", "tv", "hellinger"]),
    *itertools.product(["kl", "reverse_kl"], ["tv", "hellinger"]),
    ("hellinger", "tv"),
    ("tv", "hellinger"),
]


@given(p=distributions(4), q=distributions(4), share=st.sampled_from([0.0, 0.5, 0.99, 1 - 1e-6]))
@settings(max_examples=300)
def test_what_follows_holds_for_every_pair(p: np.ndarray, q: np.ndarray, share: float) -> None:
    p = (1 - share) * p + share * q
    for known, asked in FOLLOWS:
        if math.isfinite(own := FUNCTION[known](p, q)):
            found = guarantees.weaken(
                guarantees.distributions(own, 0, "Ψ", divergence=known), asked
            )
            assert found.divergence == asked
            assert FUNCTION[asked](p, q) <= found.epsilon + 1e-13


@pytest.mark.parametrize(
    ("pair", "attained"),
    [
        # λ' and λ' given an event of probability 0.3: the likelihood ratio is 1/0.3 or 0
        (
            ([1.0, 0.0], [0.3, 0.7]),
            [*FOLLOWS[:4], ("chi2", "kl"), ("chi2", "tv"), ("chi2", "hellinger"),
             ("kl", "hellinger")],
        ),
        (([0.3, 0.7], [1.0, 0.0]), [("reverse_kl", "hellinger")]),
        (([0.7, 0.3], [0.5, 0.5]), [("chi2", "tv")]),
        (([0.7, 0.3], [0.3, 0.7]), [("hellinger", "tv")]),
        (([0.6, 0.4, 0.0], [0.6, 0.0, 0.4]), [("tv", "hellinger")]),
    ],
)  # fmt: skip
def test_bounds_are_attained(
    pair: tuple[list[float], list[float]], attained: list[tuple[str, str]]
) -> None:
    for known, asked in attained:
        found = guarantees.weaken(
            guarantees.points(FUNCTION[known](*pair), divergence=known), asked
        )
        assert FUNCTION[asked](*pair) == pytest.approx(found.epsilon, rel=1e-13)


def test_nothing_follows_of_what_rare_reports_decide() -> None:
    rare = 1e-12
    p, q = [1 - 1e-3, 1e-3, 0], [1 - rare, rare, 0]
    assert d.kl(p, q) < 0.021
    assert d.chi_squared(p, q) > 1e5
    for known, asked in itertools.permutations(FUNCTION, 2):
        if (known, asked) not in FOLLOWS:
            with pytest.raises(om.ProblemError, match=f"{known} gives none of {asked}"):
                guarantees.weaken(guarantees.points(0.1, divergence=known), asked)


def test_rates_stay_rates_where_they_can() -> None:
    """ε d bounds what a concave bound of it gives, at its slope in 0."""
    for known, asked in FOLLOWS:
        rate = guarantees.points(0.5, per="km", divergence=known)
        if (asked == "tv" and known != "max") or asked == "chi2":
            with pytest.raises(om.ProblemError, match="not proportional"):
                guarantees.weaken(rate, asked)
            continue
        slope = guarantees.weaken(rate, asked)
        assert slope.per == "km"
        for distance in (1e-3, 0.1, 1.0, 5.0):
            here = guarantees.weaken(guarantees.points(0.5 * distance, divergence=known), asked)
            assert here.epsilon <= slope.epsilon * distance * (1 + 1e-14)
    assert guarantees.weaken(guarantees.points(0.5), "max").epsilon == 0.5


@given(data=st.data(), m=mechanisms(2, 4, zeros=False))
@settings(max_examples=40)
def test_the_way_round_figure_4(data: st.DataObject, m: om.Mechanism) -> None:
    """From d-privacy to W_∞, on to KL; to W_1 with KL, on to W_∞, and back to points."""
    line = om.Domain.range(len(m.secrets))
    apart = om.distances.euclidean()
    m = om.Mechanism(line, m.observables, m.matrix)
    lams = data.draw(distributions(len(line))), data.draw(distributions(len(line)))
    moved = {
        f"W_{'1' if p == 1 else '∞'} of km": om.transport.wasserstein(
            *lams, apart(line, line), p
        ).value
        for p in (1, math.inf)
    }
    spent = d.kl(m.push(lams[0]), m.push(lams[1]))
    by_max = guarantees.weaken(
        guarantees.lift(guarantees.points(d.point_epsilon(m, "max", apart), per="km")), "kl"
    )
    by_kl = guarantees.lift(
        guarantees.points(d.point_epsilon(m, "kl", apart), per="km", divergence="kl")
    )
    for found in (by_max, by_kl, guarantees.weaken_metric(by_kl)):
        assert spent <= found.epsilon * moved[found.per] * (1 + 1e-12) + 1e-12
        back = guarantees.restrict(found)
        assert (back.of, back.per, back.pairs) == ("points", "km", "all pairs of points")
        assert back.epsilon == found.epsilon
    assert guarantees.weaken_metric(by_kl).epsilon == by_kl.epsilon
    assert "Proposition 9" in guarantees.weaken_metric(by_kl).theorem


def test_points_and_back() -> None:
    near = guarantees.points(0.5, 0, "neighbours", divergence="kl")
    assert guarantees.restrict(guarantees.lift(near)).pairs == "neighbours"
    # a rate for some pairs is none for all: an optimal plan has to move within them
    rate = guarantees.lift(guarantees.points(0.5, 0, "neighbours", per="km", divergence="kl"))
    assert rate.pairs == "pairs with an optimal coupling within neighbours"
    assert guarantees.restrict(rate).pairs == "neighbours"
    assert (
        "point masses"
        in guarantees.restrict(guarantees.distributions(0.5, 0, "Ψ", divergence="kl")).pairs
    )
    with pytest.raises(om.ProblemError, match="distributions is needed"):
        guarantees.restrict(near)
    with pytest.raises(om.ProblemError, match="not of a Wasserstein distance"):
        guarantees.restrict(
            guarantees.distributions(0.5, 0, "all", per="total variation", divergence="kl")
        )
    with pytest.raises(om.ProblemError, match="W_1 of d"):
        guarantees.weaken_metric(guarantees.distributions(0.5, 0, "all", divergence="kl"))


@pytest.mark.parametrize("units", range(1, 12))
@pytest.mark.parametrize(("premise", "found"), [("max", "hellinger"), ("kl", "hellinger")])
def test_half_of_the_least_floats_is_rounded_up(premise: str, found: str, units: int) -> None:
    """1 - e^{-e/2} is e/2 to hundreds of digits, and half of a float this small may be none."""
    epsilon = units * math.ulp(0.0)
    here = guarantees.weaken(
        guarantees.distributions(epsilon, 0, "pairs", divergence=premise), found
    ).epsilon
    rate = guarantees.weaken(guarantees.points(epsilon, per="d", divergence=premise), found).epsilon
    assert min(2 * here, 2 * rate) >= epsilon
    # two distributions as far apart as Pinsker's inequality allows, to first order
    share = guarantees.weaken(
        guarantees.distributions(epsilon, 0, "pairs", divergence="kl"), "tv"
    ).epsilon
    assert share == pytest.approx(math.sqrt(units / 2) * math.sqrt(math.ulp(0.0)), rel=1e-12)
