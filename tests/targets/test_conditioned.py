"""Targets under any divergence: against the exact transport program, closed forms and cvxpy."""

from __future__ import annotations

import json

import numpy as np
import pytest

import optmech as om

LINE = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
INPUTS = [[2, 5, 3, 0, 1], [1, 1, 8, 2, 0], [0, 1, 1, 1, 1]]


@pytest.mark.parametrize(
    ("divergence", "epsilon", "terms"),
    [("max", "ln 2", {"epsilon": "ln 2"}), ("tv", 0.1, {"delta": 0.1}), ("kl", 0, {})],
)
def test_what_optimal_target_solves_otherwise(divergence, epsilon, terms) -> None:
    weights = [1, 2, 1]
    problem = om.mechanisms.target_problem(
        INPUTS, LINE, epsilon, divergence=divergence, weights=weights
    )
    design = om.solve(problem)
    known = om.mechanisms.optimal_target(INPUTS, LINE, weights=weights, **terms)
    assert design.lower_bound <= known.loss + 1e-12
    assert known.lower_bound <= design.loss + 1e-12
    assert design.loss == pytest.approx(known.loss, rel=1e-6)


@pytest.mark.parametrize(
    ("divergence", "measured"),
    [
        ("kl", lambda p, q: float(np.sum(p * np.log(p / q)))),
        ("chi2", lambda p, q: float(np.sum((p - q) ** 2 / q))),
        ("renyi:3/2", lambda p, q: 2 * np.log(np.sum(p**1.5 * q**-0.5))),
    ],
)
def test_two_points_have_one_equation(divergence, measured) -> None:
    """Two inputs (a, 1-a) and (1-a, a) on two points at distance 1: by symmetry and convexity the
    outputs are (1/2 + s, 1/2 - s) and its mirror, at a loss of a - 1/2 - s."""
    a, limit = 0.9, 0.2
    low, high = 0.0, 0.4
    for _ in range(80):
        s = (low + high) / 2
        p = np.array([0.5 + s, 0.5 - s])
        low, high = (s, high) if measured(p, p[::-1]) <= limit else (low, s)
    inputs = [[9, 1], [1, 9]]
    design = om.solve(
        om.mechanisms.target_problem(
            inputs, 1 - np.eye(2), limit, divergence=divergence, names=["a", "b"]
        )
    )
    assert design.loss == pytest.approx(a - 0.5 - low, rel=1e-6)
    assert design.lower_bound <= a - 0.5 - low + 1e-12
    found = om.mechanisms.target_mechanisms(design)
    mu = {
        name: m.push(np.array(w) / 10) for (name, m), w in zip(found.items(), inputs, strict=True)
    }
    assert measured(mu["a"], mu["b"]) <= limit * (1 + 1e-9)
    assert mu["a"][0] == pytest.approx(0.5 + low, abs=1e-5)


def test_three_inputs_against_cvxpy() -> None:
    cp = pytest.importorskip("cvxpy")
    laws = [np.array(w) / sum(w) for w in INPUTS]
    plans = [cp.Variable((5, 5), nonneg=True) for _ in laws]
    outputs = [cp.sum(plan, axis=0) for plan in plans]
    rules = [cp.sum(plan, axis=1) == law for plan, law in zip(plans, laws, strict=True)]
    rules += [
        cp.sum(cp.rel_entr(p, q)) <= 0.05 for i, p in enumerate(outputs)
        for j, q in enumerate(outputs) if i != j
    ]  # fmt: skip
    program = cp.Problem(
        cp.Minimize(sum(cp.sum(cp.multiply(LINE, plan)) for plan in plans) / 3), rules
    )
    program.solve(solver="CLARABEL")
    design = om.solve(om.mechanisms.target_problem(INPUTS, LINE, 0.05))
    assert design.loss == pytest.approx(float(program.value), rel=1e-5)
    assert design.gap < 1e-6


def test_unforeseen_secrets_draw_from_the_output() -> None:
    domain = om.Domain(["p", "q", "r", "s", "t"])
    design = om.solve(
        om.mechanisms.target_problem(
            INPUTS, LINE, 0.1, divergence="chi2", names=["a", "b", "c"], secrets=domain
        )
    )
    found = om.mechanisms.target_mechanisms(design, domain)
    assert list(found) == ["a", "b", "c"]
    mu = found["a"].push(np.array(INPUTS[0]) / 11)
    np.testing.assert_allclose(found["a"].matrix[3], mu, atol=1e-12)
    assert list(om.mechanisms.target_mechanisms(design)["c"].secrets.labels) == ["q", "r", "s", "t"]


def test_a_problem_file_is_solved_checked_and_audited(tmp_path) -> None:
    import optmech_audit as audit

    text = """format = 1
loss = "euclidean"
secrets = { kind = "grid", rows = 1, columns = 3 }
prior = { kind = "uniform" }
[transport]
task = "target"
epsilon = 0.05
divergence = "kl"
inputs = [{ name = "home", distribution = [5, 2, 2] }, { name = "out", distribution = [1, 1, 1] }]
"""
    file = tmp_path / "kl.toml"
    file.write_text(text)
    design = om.solve(om.load_problem(file))
    same = om.mechanisms.target_problem([[5, 2, 2], [1, 1, 1]], LINE[:3, :3], 0.05)
    assert design.loss == pytest.approx(om.solve(same).loss, rel=1e-6)
    design.save(tmp_path / "kl.json")
    assert om.check(tmp_path / "kl.json").passed
    assert audit.main([str(tmp_path / "kl.json")]) == 0
    told = json.loads((tmp_path / "kl.json").read_text())
    for constraint in told["problem"]["constraints"]:
        constraint["epsilon"] = 0.049
    (tmp_path / "forged.json").write_text(json.dumps(told))
    assert audit.main([str(tmp_path / "forged.json")]) != 0
    mistakes = [
        ('task = "target"', 'task = "barycenter"', "belong"),
        ('divergence = "kl"', 'divergence = "kl"\nepsilons = [1]', "epsilons and outside"),
        ('divergence = "kl"', 'divergence = "klc"', "divergence"),
        (
            "[transport]",
            '[[constraints]]\nkind = "loss_bound"\nmaximum = 1\n[transport]',
            "neither",
        ),
    ]
    for before, after, word in mistakes:
        file.write_text(text.replace(before, after))
        with pytest.raises(om.ProblemError, match=word):
            om.load_problem(file)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(om.ProblemError, match="one input"):
        om.mechanisms.target_problem(INPUTS[:1], LINE, 0.1)
    with pytest.raises(om.ProblemError):
        om.mechanisms.target_problem(INPUTS, LINE, 0.1, divergence="nonsense")
    other = om.solve(om.Problem(om.Prior.uniform(om.Domain.range(2)), 1 - np.eye(2)))
    with pytest.raises(om.ProblemError, match="no design for pairs"):
        om.mechanisms.target_mechanisms(other)


@pytest.mark.parametrize(
    "pairs",
    [
        [([0.4, 0.3, 0.2, 0.1], [0, 0, 0.5, 0.5])],
        [([0.6, 0.4, 0, 0], [0, 0, 0.5, 0.5]), ([0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5])],
    ],
)
def test_laws_that_are_not_one_for_every_name_are_no_family(pairs) -> None:
    """Pairs of a name and a label alone do not make a design one of targets."""
    secrets = om.Domain([("a", 0), ("a", 1), ("b", 0), ("b", 1)])
    problem = om.Problem(
        om.Prior.uniform(secrets),
        np.array([[0.0, 1.0], [1.0, 0.0]] * 2),
        om.Domain([0, 1]),
        constraints=[om.DistributionPrivacy(0.2, pairs, divergence="kl")],
    )
    with pytest.raises(om.ProblemError, match="no design for pairs"):
        om.mechanisms.target_mechanisms(om.solve(problem))
