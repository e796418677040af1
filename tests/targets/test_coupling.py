"""Coupling mechanisms: what CM19 section VI says of them, in fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.stats import wasserstein_distance
from strategies import distributions, nonnegative_matrices

import optmech as om
from optmech.exact.sampler import limbs_for

LINE3 = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))


def exactly(weights: object) -> list[Fraction]:
    listed = [Fraction(w) if isinstance(w, str) else Fraction(float(w)) for w in weights]
    return [w / sum(listed) for w in listed]


def output(m: om.Mechanism, lam: list[Fraction]) -> list[Fraction]:
    """Σ_x λ[x] C(x)[y] from the mechanism's whole numbers."""
    rows = m.exact.rows
    return [
        sum((p * Fraction(row[y], sum(row)) for p, row in zip(lam, rows, strict=True)), Fraction(0))
        for y in range(len(rows[0]))
    ]


def test_example_2_of_the_paper() -> None:
    """λ = (0.2, 0.5, 0.3), μ = (0.3, 0.2, 0.5) on 1, 2, 3: γ[2,1] = 0.1, γ[2,3] = 0.2, and from 2
    the mechanism goes to 1 with 20 % and to 3 with 40 %; the cost is 0.3 (§II-G)."""
    places = om.Domain([1, 2, 3], points=[[1.0], [2.0], [3.0]])
    lam, mu = ["1/5", "1/2", "3/10"], ["3/10", "1/5", "1/2"]
    (m,) = om.mechanisms.coupling([lam], mu, LINE3, secrets=places)
    assert m.matrix[1].tolist() == [0.2, 0.4, 0.4]
    assert m.matrix[[0, 2]].tolist() == [[1, 0, 0], [0, 0, 1]]
    assert output(m, exactly(lam)) == exactly(mu)
    design = om.mechanisms.coupling_design([lam], mu, LINE3)
    assert design.plans[0].plan.tolist() == [[0.2, 0, 0], [0.1, 0.2, 0.2], [0, 0, 0.3]]
    assert design.exact_losses == (Fraction(3, 10),)
    assert set(m.sample(2, size=200, seed=1)) == {1, 2, 3}


@given(st.data(), st.integers(1, 5), st.integers(1, 5), st.sampled_from([1, math.inf]))
def test_outputs_are_the_target_exactly_and_losses_the_distances(
    data: st.DataObject, n: int, m: int, p: float
) -> None:
    lams = [data.draw(distributions(n)) for _ in range(2)]
    target, d = data.draw(distributions(m)), data.draw(nonnegative_matrices(n, m))
    design = om.mechanisms.coupling_design(lams, target, d, p)
    for t, lam in enumerate(lams):
        used = design.plans[t].first.fractions
        if p == 1:
            assert used == exactly(lam)
            plain = om.transport.wasserstein(lam, target, d).value
            assert design.losses[t] == pytest.approx(plain, rel=1e-12, abs=1e-12)
        else:
            assert max(abs(a - b) for a, b in zip(used, lam, strict=True)) < 1e-14
            assert design.worst_moves[t] == om.transport.wasserstein(lam, target, d, p).value
        assert output(design.mechanisms[t], used) == exactly(target)
    assert design.is_common
    assert design.gap <= 1e-15


@given(st.data())
def test_loss_on_a_line_is_that_of_scipy(data: st.DataObject) -> None:
    lam, target = data.draw(distributions(6)), data.draw(distributions(6))
    places = np.arange(6.0)
    d = np.abs(np.subtract.outer(places, places))
    design = om.mechanisms.coupling_design([lam], target, d)
    value = wasserstein_distance(places, places, lam, target)
    assert design.loss == pytest.approx(value, abs=1e-12)
    mechanism = design.mechanisms[0]
    assert (lam[:, None] * mechanism.matrix * d).sum() == pytest.approx(value, abs=1e-12)


def test_inputs_that_were_not_foreseen() -> None:
    lams, target = [["1/2", "1/2", "0"], [0, 1, 1]], ["0", "1/4", "3/4"]
    default = om.mechanisms.coupling(lams, target, LINE3)
    assert default[0].matrix[2].tolist() == [0, 0.25, 0.75]
    assert default[1].matrix[0].tolist() == [0, 0.25, 0.75]
    nearest = om.mechanisms.coupling(lams, target, LINE3, outside="nearest")
    assert nearest[0].matrix[2].tolist() == [0, 0, 1]
    assert nearest[1].matrix[0].tolist() == [0, 1, 0]


def test_unforeseen_inputs_reveal_nothing_by_default() -> None:
    design = om.mechanisms.coupling_design([[1, 1, 0], [0, 1, 1]], [1, 2, 1], LINE3)
    found = design.under([["1/3", "1/3", "1/3"], ["0", "1/2", "1/2"]])
    assert found.exact_outputs[0].fractions == exactly(["1/4", "1/2", "1/4"])
    assert found.epsilon == 0
    assert found.closeness == math.inf


def test_priors_bring_their_domains() -> None:
    cells = om.Grid(rows=1, columns=3, cell=1.0)
    prior = om.Prior(cells, [1, 1, 0])
    m, _ = om.mechanisms.coupling([prior, [0, 1, 1]], om.Prior(cells, [0, 1, 0]), LINE3)
    assert m.secrets is cells
    assert m.observables is cells
    assert m.sample((0, 0), seed=3) == (0, 1)


def test_tight_bound_is_attained() -> None:
    """The three points of docs/theory/targets.md, in rational numbers: E = 3, so ε = ln 3."""
    e = 3
    mu = [Fraction(1, e + 1), Fraction(1, e + 1), Fraction(e - 1, e + 1)]
    first = [mu[0] * e, mu[1] / e, mu[2] / e]
    second = [mu[0] / e, mu[1] * e, mu[2] / e]
    design = om.mechanisms.coupling_design([mu, mu], mu, LINE3)
    found = design.under([first, second])
    assert found.closeness == pytest.approx(math.log(3), rel=1e-15)
    assert found.epsilon == pytest.approx(2 * math.log(3), rel=1e-15)
    for name in ("max", "kl", "reverse_kl", "tv", "chi2", "hellinger"):
        assert found.divergences[name] == pytest.approx(found.bound(name).epsilon, rel=1e-12)
    assert found.bound("kl").epsilon < 2 * math.log(3) * math.tanh(math.log(3))


@given(st.data(), st.floats(0.01, 1.5))
def test_misestimated_inputs_keep_the_bounds(data: st.DataObject, closeness: float) -> None:
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    lams = rng.dirichlet(np.ones(5), 3)
    d = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
    design = om.mechanisms.coupling_design(lams, rng.dirichlet(np.ones(5)), d)
    actual = lams * np.exp(closeness * rng.uniform(-0.5, 0.5, lams.shape))
    actual /= actual.sum(axis=1, keepdims=True)
    found = design.under(actual)
    logs = np.abs(np.log(actual / lams))
    assert found.closeness == pytest.approx(logs.max(), rel=1e-9)
    outputs = np.array([a @ m.matrix for a, m in zip(actual, design.mechanisms, strict=True)])
    np.testing.assert_allclose(found.outputs, outputs, rtol=1e-12, atol=1e-15)
    ratios = outputs[:, None] / outputs[None]
    assert found.epsilon == pytest.approx(np.log(ratios).max(), abs=1e-12)
    kl = (outputs[:, None] * np.log(ratios)).sum(axis=2).max()
    assert found.divergences["kl"] == pytest.approx(kl, abs=1e-12)
    for name, value in found.divergences.items():
        assert value <= found.bound(name).epsilon * (1 + 1e-9)
    assert kl <= 2 * found.closeness * math.tanh(found.closeness)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"target": [1, 1]}, "target"),
        ({"target": [1, -1, 1]}, r"target\[1\]"),
        ({"inputs": [[1, 1]]}, r"inputs\[0\]"),
        ({"inputs": []}, "inputs"),
        ({"p": 2}, "p"),
        ({"p": "one"}, "p"),
        ({"outside": "zero"}, "outside"),
        ({"distance": [[1, math.inf, 0]]}, "distance"),
        ({"secrets": om.Domain("ab")}, "secrets"),
        ({"names": ["a", "a"]}, "names"),
        ({"weights": [1, 2, 3]}, "weights"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, object], where: str) -> None:
    arguments = {
        "inputs": [[1, 1, 1], [1, 2, 3]],
        "target": [1, 1, 1],
        "distance": LINE3,
        **change,
    }
    with pytest.raises(om.ProblemError) as caught:
        om.mechanisms.coupling_design(**arguments)
    assert where.replace("\\", "") in caught.value.where


def test_actual_inputs_must_fit() -> None:
    design = om.mechanisms.coupling_design([[1, 1, 1]], [1, 1, 1], LINE3)
    with pytest.raises(om.ProblemError, match="2 distributions"):
        design.under([[1, 1, 1], [1, 1, 1]])
    with pytest.raises(om.ProblemError, match="2 weights"):
        design.under([[1, 1]])
    with pytest.raises(om.ProblemError, match="auxiliary input"):
        design.sample("night", 0)


def test_all_inputs_take_the_same_work_to_draw_from() -> None:
    """Certainty needs one word, thirds two: the family draws two for both."""
    family = om.mechanisms.coupling_design([[1, 1, 1], [1, 1, 2]], [1, 1, 1], LINE3)
    assert [limbs_for(m.exact.rows) for m in family.mechanisms] == [1, 2]
    assert [m._table.limbs for m in family.mechanisms] == [2, 2]
