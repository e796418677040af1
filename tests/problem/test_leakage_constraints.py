"""g-leakage, maximal leakage and additive capacity: closed forms, and adversaries written again."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import optmech_audit as audit
import pytest
from forgery import resealed
from hypothesis import given, settings, strategies as st
from scipy.optimize import linprog

import optmech as om
from optmech import prices
from optmech.certificate import check_exact
from optmech.exact.numerators import Numerators

E, H = om.distances.euclidean(), om.distances.hamming()


def uniform(n: int) -> om.Prior:
    return om.Prior.uniform(om.Domain.range(n))


def solved(prior: om.Prior, *constraints: object, loss: object = H) -> om.Design:
    design = om.solve(om.Problem(prior, loss, constraints=list(constraints)))
    assert design.status == "optimal"
    return design


def vulnerability(gain: np.ndarray, prior: np.ndarray, p: np.ndarray) -> float:
    """By the adversary's posteriors: Σ_o p(o) max_w Σ_s p(s|o) g(w,s)."""
    total = 0.0
    for o in range(p.shape[1]):
        marginal = float(prior @ p[:, o])
        if marginal > 0:
            posterior = prior * p[:, o] / marginal
            total += marginal * max(float(row @ posterior) for row in gain)
    return total


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("factor", [Fraction(1), Fraction(3, 2), Fraction(2)])
def test_randomised_response_is_optimal_under_maximal_leakage(n: int, factor: Fraction) -> None:
    design = solved(uniform(n), om.constraints.MaximalLeakage(f"ln {factor}"))
    assert design.loss == pytest.approx(float(1 - factor / n), abs=1e-9)


@pytest.mark.parametrize("n", [2, 5])
@pytest.mark.parametrize("most", [0, "1/4", 1])
def test_shared_mass_is_all_that_additive_capacity_costs(n: int, most: object) -> None:
    design = solved(uniform(n), om.constraints.AdditiveCapacity(most))
    assert design.loss == pytest.approx((1 - float(Fraction(most))) * (1 - 1 / n), abs=1e-9)


@pytest.mark.parametrize("most", ["2/5", 0.55, 1])
def test_bayes_vulnerability_with_hamming_loss(most: object) -> None:
    """Whatever the prior: a right report is a right guess."""
    prior = om.Prior(om.Domain("abcd"), [4, 3, 2, 1])
    assert solved(prior, om.constraints.GainLeakage(most)).loss == pytest.approx(
        1 - float(Fraction(most))
    )


@pytest.mark.parametrize("n", [2, 5, 9])
@pytest.mark.parametrize("factor", ["1", "3/2", "2", "20"])
def test_each_report_says_at_most_so_much(n: int, factor: str) -> None:
    """p(o|o) <= e^ε p(o) for a uniform prior, which sum to e^ε."""
    design = solved(uniform(n), om.constraints.PointwiseMaximalLeakage(f"ln {factor}"))
    assert design.loss == pytest.approx(max(0, 1 - float(Fraction(factor)) / n), abs=1e-9)


def test_pointwise_leakage_says_nothing_of_secrets_without_prior_weight() -> None:
    """Σ_o max_s p(o|s) <= e^ε needs π(s) > 0 for all s: the row of another one is free."""
    for weights, most in (([2, 1, 1], 0.0), ([1, 1, 0], math.log(2))):
        prior = om.Prior(om.Domain.range(3), weights)
        design = solved(prior, om.constraints.PointwiseMaximalLeakage(0))
        leaked = float(om.leakage.maximal_leakage(design.mechanism))
        assert leaked == pytest.approx(most, abs=1e-12)
    said = " ".join((om.constraints.PointwiseMaximalLeakage.__doc__ or "").split())
    assert "Where π(s) > 0 for every secret it implies maximal leakage" in said


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6))
def test_no_function_of_the_secret_is_guessed_much_better_after_any_report(seed: int) -> None:
    """Random randomised functions and their best guesses; some prior weights are 0. The loss is
    that of SciPy's program."""
    rng = np.random.default_rng(seed)
    n, rate = int(rng.integers(2, 6)), float(rng.uniform(0.05, 1.5))
    weights = rng.dirichlet(np.ones(n)) * (rng.random(n) < 0.8)
    weights[0] += 0.1
    prior = om.Prior(om.Domain.range(n), weights)
    pi, loss = prior.weights, rng.uniform(0, 1, (n, n))
    design = om.solve(
        om.Problem(
            prior,
            loss,
            om.Domain.range(n),
            constraints=[om.constraints.PointwiseMaximalLeakage(rate)],
        )
    )
    p = design.mechanism.matrix
    rows = []
    for s in range(n):
        for o in range(n):
            row = np.zeros((n, n))
            row[:, o] -= math.exp(rate) * pi
            row[s, o] += 1
            rows.append(row.ravel() if pi[s] > 0 else np.zeros(n * n))
    found = linprog(
        (pi[:, None] * loss).ravel(), rows, np.zeros(n * n), np.kron(np.eye(n), np.ones(n)),
        np.ones(n),
    )  # fmt: skip
    assert design.loss == pytest.approx(found.fun, abs=1e-8)
    assert design.lower_bound <= found.fun + 1e-9
    reported = pi @ p
    for _ in range(20):
        function = rng.dirichlet(np.full(6, 0.2), n)
        blind = float((pi @ function).max())
        for o in np.flatnonzero(reported > 1e-12).tolist():
            after = pi * p[:, o] / reported[o]
            assert (after @ function).max() <= math.exp(rate) * blind * (1 + 1e-9)
    spent = om.leakage.pointwise_maximal_leakage(design.mechanism, prior)
    told = design.problem.constraints[0].measured(design.mechanism, design.problem.space).measured
    assert float(spent) == pytest.approx(told, abs=1e-9)
    assert told <= rate + 1e-9


def test_a_predicate_that_says_all_of_the_loss() -> None:
    """The loss is that of guessing the predicate, so that it is 1 - V."""
    holds = np.array([True, False, False, True, False])
    prior = om.Prior(om.Domain("abcde"), [1, 2, 3, 1, 3])
    loss = (holds[:, None] != np.array([True, False])).astype(float)
    asked = om.constraints.GainLeakage.predicate(0.85, holds)
    design = om.solve(om.Problem(prior, loss, om.Domain(["yes", "no"]), constraints=[asked]))
    assert design.loss == pytest.approx(0.15, abs=1e-9)
    same = om.constraints.GainLeakage.partition(0.85, ["x", "y", "y", "x", "y"])
    again = om.solve(om.Problem(prior, loss, om.Domain(["yes", "no"]), constraints=[same]))
    assert again.loss == pytest.approx(0.15, abs=1e-9)


def test_distortion_is_leakage_with_gains_below_zero() -> None:
    """Σ_o min_w Σ_s π d P >= d_m is the vulnerability of top - d, at most top - d_m."""
    prior = om.Prior(om.Domain.range(6), [3, 1, 4, 1, 5, 9])
    d = E(prior.domain, prior.domain)
    error = solved(prior, om.DistortionPrivacy(0.9, E))
    gain = solved(prior, om.constraints.GainLeakage(5 - 0.9, 5 - d))
    assert gain.loss == pytest.approx(error.loss, abs=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_what_is_measured_is_what_adversaries_gain(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(2, 6)), int(rng.integers(1, 6))
    domain, outputs = om.Domain.range(n), om.Domain.range(m)
    p = rng.dirichlet(np.full(m, 0.5), n)
    weights, gain = rng.dirichlet(np.ones(n)), rng.uniform(0, 1, (int(rng.integers(1, 5)), n))
    prior, mechanism = om.Prior(domain, weights), om.Mechanism(domain, outputs, p)
    space = om.Problem(prior, np.zeros((n, m)), outputs).space
    spent = om.constraints.GainLeakage(1, gain).measured(mechanism, space).measured
    assert spent == pytest.approx(vulnerability(gain, weights, p))
    # the capacities bound every prior and gain, and the uniform prior attains the first one
    times = math.exp(om.constraints.MaximalLeakage(1).measured(mechanism, space).measured)
    more = om.constraints.AdditiveCapacity(1).measured(mechanism, space).measured
    blind = float((gain @ weights).max())
    assert spent <= times * blind * (1 + 1e-12)
    assert spent <= blind + more + 1e-12
    assert n * vulnerability(np.eye(n), np.full(n, 1 / n), p) == pytest.approx(times)


def test_the_limit_is_met_exactly_or_not_at_all() -> None:
    """Σ_o max_s p(o|s) = 2 passes for ln 2, and one unit of 2^-60 more does not."""
    statement = om.Problem(
        uniform(3), H, constraints=[om.constraints.MaximalLeakage("ln 2")]
    ).statement
    one = 1 << 60
    rows = [[one // 2 + 1, one // 4, one // 4 - 1], [one // 8, one * 3 // 4, one // 8],
            [one // 4, one // 8 - 1, one * 5 // 8 + 1]]  # fmt: skip
    over = Numerators(60, tuple(map(tuple, rows)))
    rows[0] = [one // 2, one // 4, one // 4]
    rows[2] = [one // 8, one // 8, one * 3 // 4]
    exact = Numerators(60, tuple(map(tuple, rows)))
    assert [c.passed for c in check_exact(statement, exact)] == [True, True]
    rows[0] = [one // 2 + 1, one // 4, one // 4 - 1]
    less = Numerators(60, tuple(map(tuple, rows)))
    assert [c.passed for c in check_exact(statement, less)] == [True, False]
    assert [c.passed for c in check_exact(statement, over)] == [True, True]
    irrational = om.Problem(
        uniform(3), H, constraints=[om.constraints.MaximalLeakage(0.7)]
    ).statement
    assert all(c.passed for c in check_exact(irrational, less))


def test_less_than_nothing_cannot_leak() -> None:
    prior = om.Prior(om.Domain("ab"), [2, 1])
    design = om.solve(om.Problem(prior, H, constraints=[om.constraints.GainLeakage(0.6)]))
    assert design.status == "infeasible"
    assert "gains 0.6666" in design.reason
    rounded = om.solve(
        om.Problem(uniform(3), H, constraints=[om.constraints.GainLeakage(0.3333333333333333)])
    )
    assert rounded.loss == pytest.approx(2 / 3)
    idle = om.Problem(
        prior, H, constraints=[om.constraints.GainLeakage(1), om.constraints.MaximalLeakage(2)]
    )
    assert len([note for note in idle.notes if "constrains nothing" in note]) == 2


def test_prices_are_slopes_of_the_optimum() -> None:
    prior = om.Prior(om.Domain.range(5), [1, 2, 4, 2, 3])
    for make, value in (
        (om.constraints.GainLeakage, 0.5),
        (om.constraints.MaximalLeakage, 0.6),
        (om.constraints.AdditiveCapacity, 0.3),
        (om.constraints.PointwiseMaximalLeakage, 0.5),
    ):
        (price,) = prices.of_constraints(solved(prior, make(value), loss=E))
        step = 1e-4
        after, before = (solved(prior, make(value + k * step), loss=E).loss for k in (1, -1))
        slope = (after - before) / (2 * step)
        assert price.rate == pytest.approx(slope, rel=1e-3), make


def tampered(design: om.Design, change: object, path: Path) -> tuple[bool, bool]:
    """Whether the check and the audit accept a file after a change and with a good digest."""
    path.write_bytes(resealed(design.document(), change))
    try:
        passed = om.check(path).passed
    except om.OptmechError:
        passed = False
    try:
        audit.audit(str(path))
    except audit.Fault:
        return passed, False
    return passed, True


LIMITS = {
    "gain": (om.constraints.GainLeakage(0.6, [[1, 0, 0, 0.5], [0, 1, 1, 0]]), "11/20"),
    "bayes": (om.constraints.GainLeakage("1/2"), "9/20"),
    "maximal": (om.constraints.MaximalLeakage("ln 3/2"), "ln 7/5"),
    "additive": (om.constraints.AdditiveCapacity("1/4"), "1/5"),
}


def test_a_file_that_promises_less_by_each_report_is_refused(tmp_path: Path) -> None:
    prior = om.Prior(om.Domain.range(4), [1, 1, 1, 0])
    other = om.Prior(om.Domain.range(4), [1, 1, 1, 1])
    for stated in (
        om.constraints.PointwiseMaximalLeakage("ln 2"),
        om.constraints.PointwiseMaximalLeakage("ln 2", prior=other),
    ):
        loose = om.solve(om.Problem(prior, E, constraints=[stated]))
        path = tmp_path / "d.json"
        assert tampered(loose, lambda body: None, path) == (True, True)

        def promise(body: dict) -> None:
            body["problem"]["constraints"][0]["epsilon"] = "ln 19/10"

        def dearer(body: dict) -> None:
            body["result"]["bound"] = body["result"]["lower_bound"] = body["result"]["objective"]
            del body["multipliers"]["lifted"]

        for change in (promise, dearer):
            assert tampered(loose, change, path) == (False, False), change.__name__


@pytest.mark.parametrize("name", LIMITS)
def test_a_file_that_promises_less_leakage_is_refused(name: str, tmp_path: Path) -> None:
    stated, less = LIMITS[name]
    prior = om.Prior(om.Domain.range(4), [1, 2, 1, 2])
    loose = om.solve(om.Problem(prior, E, constraints=[stated]))
    path = tmp_path / "d.json"
    assert tampered(loose, lambda body: None, path) == (True, True)

    def promise(body: dict) -> None:
        body["problem"]["constraints"][0]["maximum"] = less

    def dearer(body: dict) -> None:
        body["result"]["bound"] = body["result"]["lower_bound"] = body["result"]["objective"]
        body["multipliers"]["leakage"][0]["weight"] *= 0.5

    def missing(body: dict) -> None:
        del body["multipliers"]["leakage"]

    for change in (promise, dearer, missing):
        assert tampered(loose, change, path) == (False, False), change.__name__


@pytest.mark.parametrize(
    ("make", "where"),
    [
        (lambda: om.constraints.GainLeakage("much"), "maximum"),
        (lambda: om.constraints.GainLeakage("-ln 2"), "maximum"),
        (lambda: om.constraints.GainLeakage(1, "bayes"), "gain"),
        (lambda: om.constraints.GainLeakage(1, [1, 2]), "gain"),
        (lambda: om.constraints.GainLeakage(1, [[math.nan]]), "gain"),
        (lambda: om.constraints.GainLeakage(1, np.zeros((0, 3))), "gain"),
        (lambda: om.constraints.GainLeakage.predicate(1, [0.5, 1]), "holds"),
        (lambda: om.constraints.GainLeakage.partition(1, "abc"), "blocks"),
        (lambda: om.constraints.MaximalLeakage("two"), "maximum"),
        (lambda: om.constraints.AdditiveCapacity(1.5), "maximum"),
        (
            lambda: solved(uniform(3), om.constraints.GainLeakage(1, [[1, 2]])),
            "constraints[0].gain",
        ),
    ],
)
def test_what_cannot_be_meant(make: object, where: str) -> None:
    with pytest.raises(om.ProblemError) as caught:
        make()
    assert caught.value.where == where


FILE = """
format = 1
prior = "uniform"
loss = "hamming"
[secrets]
kind = "labels"
labels = ["a", "b", "c"]
[[constraints]]
kind = "gain_leakage"
maximum = 0.5
gain = {gain}
"""


@pytest.mark.parametrize(
    ("gain", "rows"),
    [
        ('"identity"', np.eye(3)),
        ("{ values = [[1, 0, 0.5]] }", [[1, 0, 0.5]]),
        ('{ partition = ["x", "y", "x"] }', [[1, 0, 1], [0, 1, 0]]),
        ('{ distance = "hamming" }', 1 - np.eye(3)),
        ('{ file = "gains.csv" }', [[0, 1, 2], [3, 4, 5]]),
    ],
)
def test_gains_of_problem_files(gain: str, rows: object, tmp_path: Path) -> None:
    (tmp_path / "gains.csv").write_text("0,1,2\n3,4,5\n")
    path = tmp_path / "p.toml"
    path.write_text(FILE.format(gain=gain))
    (family,) = om.load_problem(path).statement.families
    assert np.array_equal(family.gain, rows)


@pytest.mark.parametrize(
    ("gain", "said"),
    [
        ('"bayes"', "constraints[0].gain"),
        ("{ values = [[1, 0]] }", "constraints[0].gain: 2 columns for 3 secrets"),
        ("{ values = [[1, 0], [1]] }", "constraints[0].gain: not a rectangular array"),
        ("{ values = [[1, 0, 0]], file = 'x.csv' }", "constraints[0].gain: needs either"),
        ('{ partition = ["x", "y"] }', "constraints[0].gain: 2 columns for 3 secrets"),
        ("{ file = 'none.csv' }", "constraints[0].gain.file"),
    ],
)
def test_gains_that_cannot_be_meant_in_problem_files(gain: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "p.toml"
    path.write_text(FILE.format(gain=gain))
    with pytest.raises(om.ProblemError) as caught:
        om.load_problem(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("gain", "least"), [("identity", 0.7), ("maximal", 3.5), ("additive", 0.625)]
)
def test_the_least_leakage_at_a_loss(gain: str, least: float) -> None:
    """1 - q; n (1 - q); and c with (1 - c)(1 - 1/n) = q, for n = 5 and q = 0.3."""
    goal = om.MinimizeLeakage(gain)
    problem = om.Problem(uniform(5), H, objective=goal, constraints=[om.LossBound("3/10")])
    design = om.solve(problem)
    assert design.status == "optimal"
    assert design.objective == pytest.approx(least, abs=1e-8)
    assert design.bound <= least + 1e-12
    assert design.lower_bound == pytest.approx(0.3, abs=1e-6)
    (price,) = prices.of_constraints(design)
    slope = {"identity": -1.0, "maximal": -5.0, "additive": -1.25}[gain]
    assert price.rate == pytest.approx(slope, rel=1e-6)


def test_least_leakage_and_largest_error_are_one_program() -> None:
    prior = om.Prior(om.Domain.range(5), [3, 1, 4, 1, 5])
    limit = [om.LossBound(0.35), om.MetricPrivacy(3.0, E)]
    d = E(prior.domain, prior.domain)
    error = om.solve(om.Problem(prior, H, objective=om.MaximizeDistortion(E), constraints=limit))
    gain = om.solve(om.Problem(prior, H, objective=om.MinimizeLeakage(-d), constraints=limit))
    assert gain.objective == pytest.approx(-error.objective, rel=1e-8)
    assert gain.lower_bound == pytest.approx(error.lower_bound, rel=1e-5)


def test_a_leakage_that_is_said_to_be_less_is_refused(tmp_path: Path) -> None:
    goal = om.MinimizeLeakage("maximal")
    problem = om.Problem(uniform(4), E, objective=goal, constraints=[om.LossBound(0.4)])
    design, path = om.solve(problem), tmp_path / "d.json"
    assert tampered(design, lambda body: None, path) == (True, True)

    def less(body: dict) -> None:
        body["result"]["objective"] -= 1e-6

    def nearer(body: dict) -> None:
        body["result"]["bound"] = body["result"]["objective"] + 1e-6

    def other(body: dict) -> None:
        body["problem"]["objective"]["gain"] = "additive"

    for change in (less, nearer, other):
        assert tampered(design, change, path) == (False, False), change.__name__


def test_objectives_that_cannot_be_meant() -> None:
    with pytest.raises(om.ProblemError, match="minimising leakage needs a limit on the loss"):
        om.Problem(uniform(3), H, objective=om.MinimizeLeakage())
    with pytest.raises(om.ProblemError, match="the same for every prior"):
        om.MinimizeLeakage("maximal", uniform(3))


@pytest.mark.parametrize("short", [0.0, 1e-14, 2e-13])
def test_a_gain_that_misses_the_least_by_rounding_is_designed_for(short: float) -> None:
    """Of three secrets a blind guess is right a third of the time, and constants lose 2/3."""
    assert solved(
        uniform(3), om.constraints.GainLeakage(1 / 3 - short), loss=E
    ).loss == pytest.approx(2 / 3)


def test_limits_of_gains_below_zero(tmp_path: Path) -> None:
    """Distortion is the case g = -d, V = -d_m. Under the Hamming distance the least loss of an
    attack that errs by d_m is d_m itself, as long as it is below the blind error 2/3."""
    prior = uniform(3)
    hamming = 1 - np.eye(3)
    for limit, value in ((-0.25, 0.25), ("-1/3", 1 / 3), (Fraction(-1, 2), 0.5)):
        problem = om.Problem(
            prior, hamming, constraints=[om.constraints.GainLeakage(limit, -hamming)]
        )
        design = om.solve(problem, gap=1e-9)
        assert design.lower_bound <= value * (1 + 1e-12)
        assert design.loss == pytest.approx(value, rel=1e-8)
        assert om.measures.distortion(design.mechanism, prior, hamming) >= value * (1 - 1e-12)
        design.save(tmp_path / "below.json")
        assert om.check(tmp_path / "below.json").faults == ()
        assert audit.main([str(tmp_path / "below.json")]) == 0
        read = om.Design.load(tmp_path / "below.json").problem.constraints[0]
        assert read.maximum.factor == Fraction(limit)
    few = om.Problem(prior, hamming, constraints=[om.constraints.GainLeakage(-0.7, -hamming)])
    assert om.solve(few).status == "infeasible"
