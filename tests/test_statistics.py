"""Designs for statistics beside all extreme columns, simulated surveys, and forged files."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import flint
import networkx as nx
import numpy as np
import pytest
from optmech_audit import variance as audited
from optmech_audit.designs import judge_design
from optmech_audit.document import read
from optmech_audit.numbers import Fault
from scipy.optimize import minimize
from scipy.spatial.distance import pdist, squareform

import optmech as om
from optmech.base.arrays import Floats
from optmech.base.minplus import shortest_paths
from optmech.certificate.families.ratio import factors_of
from optmech.certificate.variance import Dyadic, is_positive
from optmech.certificate.variance_bound import listed_rays, variance_bound
from optmech.engines.rays import needed
from optmech.pipeline import pieces
from optmech.reading.sealed import seal

E, H = om.distances.euclidean(), om.distances.hamming()
Body = dict[str, Any]


def path_rays(n: int, epsilon: float) -> Floats:
    """All extreme rays of a path: up or down at every step."""
    signs = itertools.product((-1, 1), repeat=n - 1)
    return np.exp(epsilon * np.array([[0, *np.cumsum(own)] for own in signs]))


def level_rays(n: int, epsilon: float) -> Floats:
    """All extreme rays of all pairs: two values."""
    bits = list(itertools.product((0, 1), repeat=n))[1:]
    return np.exp(epsilon * np.array(bits, dtype=float))


def optimum(rays: Floats, prior: Floats, statistic: Floats) -> float:
    """The least variance over weights of given columns, by a general method."""
    rays = rays / (rays @ prior)[:, None]

    def value(x: Floats) -> tuple[float, Floats]:
        inverse = np.linalg.inv((rays.T * x) @ rays)
        middle = inverse @ statistic.T @ statistic @ inverse
        return float(np.trace(statistic @ inverse @ statistic.T)), -((rays @ middle) * rays).sum(1)

    start = np.linalg.lstsq(rays.T, np.ones(rays.shape[1]), rcond=None)[0]
    found = minimize(
        value, np.maximum(start, 1e-3), jac=True, method="SLSQP", bounds=[(0, None)] * len(rays),
        constraints=[{"type": "eq", "fun": lambda x: rays.T @ x - 1, "jac": lambda x: rays.T}],
        options={"maxiter": 500, "ftol": 1e-10},
    )  # fmt: skip
    return float(found.fun - np.sum((statistic @ prior) ** 2))


def problem(
    n: int, epsilon: float, statistic: Any = "histogram", *, all_pairs: bool = False, **more: Any
) -> om.Problem:
    line = om.Domain.range(n)
    weights = np.arange(n, 2 * n, dtype=float)
    promise = om.DifferentialPrivacy(epsilon) if all_pairs else om.MetricPrivacy(epsilon, E)
    goal = om.MinimizeVariance(statistic, **more)
    return om.Problem(om.Prior(line, weights), E, objective=goal, constraints=[promise])


@cache
def solved(n: int, epsilon: float, statistic: str, all_pairs: bool) -> om.Design:
    return om.solve(problem(n, epsilon, statistic, all_pairs=all_pairs), gap=1e-3)


CASES = [
    (5, 0.3, "histogram", False), (5, 1.0, "cdf", False), (4, 1.0, "histogram", True),
    (5, 0.7, "ranges", True),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_optimum_over_all_extreme_columns_is_inside_the_bracket(case: Any) -> None:
    design = solved(*case)
    n, epsilon, _, all_pairs = case
    statistic = design.problem.statement.survey
    assert statistic is not None
    rays = level_rays(n, epsilon) if all_pairs else path_rays(n, epsilon)
    best = optimum(rays, design.problem.prior.weights, statistic.statistic)
    assert design.variance_bound <= best * (1 + 1e-6)
    assert design.variance >= best * (1 - 1e-6)
    assert design.gap < 0.03
    assert design.verified
    limit = om.distances.hamming() if all_pairs else E
    assert om.measures.epsilon(design.mechanism, limit) <= epsilon * (1 + 1e-9)


def test_the_table_of_the_literature() -> None:
    """Six points of a line at 0.3 a step: 95.33; eight values at ln e: subset selection 22.61."""
    line = om.Domain.range(6)
    goal = om.MinimizeVariance("histogram")
    promise = om.MetricPrivacy(0.3, E)
    design = om.solve(
        om.Problem(om.Prior.uniform(line), E, objective=goal, constraints=[promise]), gap=1e-3
    )
    assert design.variance_bound <= 95.34 <= design.variance * (1 + 1e-3)
    eight = om.Domain(list("abcdefgh"))
    local = om.DifferentialPrivacy(1.0)
    design = om.solve(
        om.Problem(om.Prior.uniform(eight), H, objective=goal, constraints=[local]), gap=5e-3
    )
    assert design.variance_bound <= 22.6114 <= design.variance * (1 + 1e-4)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_secrets_that_are_far_apart_leave_a_bound(epsilon: float) -> None:
    """Ratios of up to e^93, which floats of multipliers would not stand."""
    line = om.Domain.range(32)
    goal, promise = om.MinimizeVariance("histogram"), om.MetricPrivacy(epsilon, E)
    design = om.solve(
        om.Problem(om.Prior.uniform(line), E, objective=goal, constraints=[promise]), gap=5e-3
    )
    used = om.mechanisms.geometric(line, epsilon)
    # what sampling alone does, and a mechanism in use that is nearly the best at ε 3
    known = float(om.estimate.variances(used, "histogram").sum())
    assert 1 - 1 / 32 < design.variance_bound <= known
    assert design.variance < 1.005 * known
    assert design.variance < 1.005 * design.variance_bound
    assert om.measures.epsilon(design.mechanism, E) <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("most", [24, 80])
def test_few_products_prove_a_smaller_bound(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of secrets that mirrors carry into each other, equally near ones count together."""
    grid = om.Grid(4, 4, unit="km")
    problem = om.Problem(
        om.Prior.uniform(grid), E, constraints=[om.MetricPrivacy(0.6, E)],
        objective=om.MinimizeVariance("histogram"),
    )  # fmt: skip
    monkeypatch.setattr(pieces, "_PRODUCTS", most**2 // 2)
    factor = np.exp(0.6 * squareform(pdist(grid.points)))
    assert int(needed(factor).sum()) > most
    design = om.solve(problem, gap=0.01)
    # with all of them it is 70.98 (docs/statistics.md)
    assert 35 < design.variance_bound < 70.99


def test_simulated_surveys_vary_as_stated() -> None:
    design = solved(5, 1.0, "cdf", False)
    rng = np.random.default_rng(1)
    prior = design.problem.prior.weights
    people, repeats = 500, 4000
    counts = rng.multinomial(people, prior @ design.matrix, size=repeats)
    found = [design.estimate(own) for own in counts[:20]]
    weights = np.array(found[0].statistic) @ np.linalg.solve(
        design.certificate.multipliers.variance.estimate @ design.matrix.T,
        design.certificate.multipliers.variance.estimate,
    )
    values = counts / people @ weights.T
    assert np.allclose(values[:20], [own.values for own in found])
    wanted = found[0].statistic @ prior
    assert np.allclose(
        values.mean(axis=0), wanted, atol=5 * np.sqrt(design.variance / people / repeats)
    )
    spread = people * values.var(axis=0).sum()
    assert spread == pytest.approx(design.variance, rel=0.1)
    inside = [own.interval(0.99) for own in found]
    assert np.mean([(a[:, 0] <= wanted + 1e-9) & (wanted <= a[:, 1] + 1e-9) for a in inside]) > 0.9
    assert np.trace(found[0].covariance) * people == pytest.approx(design.variance, rel=0.5)
    assert found[0].consistent()[-1] == pytest.approx(1.0)


def test_the_worst_population_is_no_better_than_any() -> None:
    design = om.solve(problem(4, 1.0, population="worst"), gap=1e-2)
    each = om.estimate.variances(design.mechanism, population=design.problem.prior)
    assert design.variance >= float(each.sum())
    assert design.variance_bound > 0


def test_a_population_of_another_sum_proves_nothing(tmp_path: Path) -> None:
    design = om.solve(problem(3, 1.0, population="worst"), gap=1e-2)

    def heavier(body: Body) -> None:
        body["multipliers"]["objective"]["population"][0] += 2.0**-30

    assert judged(write(design, tmp_path / "sound.json", lambda body: None)) == (True, True)
    assert judged(write(design, tmp_path / "forged.json", heavier)) == (False, False)


def test_forms_with_a_negative_value_are_never_taken_for_positive() -> None:
    rng = np.random.default_rng(1)
    for size in (1, 2, 5, 9):
        for _ in range(20):
            basis = np.linalg.qr(rng.normal(size=(size, size)))[0]
            values = np.exp(rng.uniform(-20, 0, size))
            for least, wanted in ((1e-7, True), (-1e-9, False), (-1e-15, False)):
                values[0] = least
                whole = np.round((basis * values) @ basis.T * 2.0**80)
                # exactly what is judged: a little below where it is to be
                rows = [[int(v) for v in row] for row in (whole + whole.T).tolist()]
                small = min(np.linalg.eigvalsh(np.array(rows, dtype=float) / 2.0**81))
                if (small > 0) != wanted or abs(small) < 1e-16:
                    continue
                ours = is_positive(Dyadic(flint.fmpz_mat(rows), 81))
                theirs = audited.is_positive(audited.Dyadic(rows, 81))
                assert ours == theirs
                assert wanted or not ours
                assert ours or not wanted


def write(design: om.Design, path: Path, change: Callable[[Body], None]) -> Path:
    body = json.loads(design.document())
    body.pop("digest")
    change(body)
    path.write_bytes(seal(json.dumps(body).encode()))
    return path


def judged(path: Path) -> tuple[bool, bool]:
    try:
        passed = om.check(path).passed
    except om.OptmechError:
        passed = False
    try:
        judge_design(read(str(path)))
    except (Fault, ValueError, OverflowError, ArithmeticError, TypeError, KeyError):
        return passed, False
    return passed, True


def test_files_are_read_back_and_pass_twice(tmp_path: Path) -> None:
    for case in CASES:
        path = tmp_path / "design.json"
        solved(*case).save(path)
        assert om.Design.load(path).variance == solved(*case).variance
        assert judged(path) == (True, True)


def claim(bound: float) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        body["result"]["bound"] = bound

    return change


def wrong_estimate(body: Body) -> None:
    body["multipliers"]["objective"]["estimate"][0][0] += 0.5


def wrong_population(body: Body) -> None:
    body["multipliers"]["objective"]["population"][0] *= 0.5


def lower_prices(body: Body) -> None:
    """Prices that are too small would prove too much."""
    proof = body["multipliers"]["objective"]
    proof["prices"] = [0.9 * v for v in proof["prices"]]
    body["result"]["bound"] = body["result"]["objective"]


def sorted_levels(body: Body) -> None:
    """Of a promise along a line columns have more than two values."""
    for piece in body["multipliers"]["objective"]["pieces"]:
        piece["form"] = "levels"


@pytest.mark.parametrize(
    "change", [claim(96.0), wrong_estimate, wrong_population, lower_prices, sorted_levels]
)
def test_forged_files_are_refused_twice(change: Callable[[Body], None], tmp_path: Path) -> None:
    design = solved(5, 0.3, "histogram", False)
    assert judged(write(design, tmp_path / "sound.json", lambda body: None)) == (True, True)
    assert judged(write(design, tmp_path / "forged.json", change)) == (False, False)


@cache
def square() -> om.Design:
    grid = om.Grid(2, 2, unit="km")
    goal = om.MinimizeVariance("histogram")
    promise = om.MetricPrivacy(0.4, E)
    prior = om.Prior.uniform(grid)
    return om.solve(om.Problem(prior, E, objective=goal, constraints=[promise]), gap=1e-2)


def test_all_extreme_rays_close_the_gap_of_the_plane() -> None:
    """By another program over all extreme rays the optimum is 47.674, and the plain program's bound
    36.55."""
    assert 47.66 <= square().variance_bound <= 47.6745 <= square().variance * (1 + 1e-4)


def trees(logs: Floats) -> set[tuple[float, ...]]:
    """Extreme rays as potentials that are tight along a tree."""
    n, found = len(logs), set()
    for edges in itertools.combinations(itertools.combinations(range(n), 2), n - 1):
        tree = nx.Graph(edges)
        if len(tree) < n or not nx.is_connected(tree):
            continue
        for signs in itertools.product((1, -1), repeat=n - 1):
            level = np.zeros(n)
            for (a, b), sign in zip(nx.bfs_edges(tree, 0), signs, strict=True):
                level[b] = level[a] + (logs[b, a] if sign > 0 else -logs[a, b])
            if (level[:, None] - level <= logs + 1e-9).all():
                found.add(tuple(np.round(level - level.max(), 6) + 0.0))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_extreme_rays_are_those_of_all_trees_and_no_more_than_of_polytropes(seed: int) -> None:
    """At most C(2n - 2, n - 1), which generic distances have; with unequal limits of a pair too."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(0, 2, (5, 2))
    logs = np.linalg.norm(places[:, None] - places, axis=2)
    if seed > 1:
        logs = shortest_paths(logs * rng.uniform(0.5, 2, (5, 5)))
    factor = np.exp(logs)
    listed = np.log(listed_rays(np.where(needed(factor), factor, np.inf)))
    wanted = np.array(sorted(trees(logs)))
    assert len(listed) == len(wanted) <= math.comb(8, 4)
    assert seed > 1 or len(listed) == math.comb(8, 4)
    assert np.abs(np.sort(listed, axis=0) - np.sort(wanted, axis=0)).max() < 1e-5


def test_rays_of_lines_and_of_all_pairs_and_of_cells() -> None:
    line = np.where(np.abs(np.subtract.outer(range(7), range(7))) == 1, np.e, np.inf)
    assert len(listed_rays(line)) == 2**6
    assert len(listed_rays(np.where(np.eye(7, dtype=bool), np.inf, 3.0))) == 2**7 - 2


def test_rays_are_listed_only_where_limits_lead_everywhere(tmp_path: Path) -> None:
    design = square()
    proof = json.loads(design.document())["multipliers"]["objective"]
    assert [piece["form"] for piece in proof["pieces"]] == ["rays"]

    def one_way(body: Body) -> None:
        """Limits by which nobody is compared with the first secret."""
        own = body["multipliers"]["objective"]
        pairs = np.reshape(own["pairs"], (-1, 2))
        own["pairs"] = pairs[pairs[:, 0] != 0].ravel().tolist()

    def fewer(body: Body) -> None:
        """A cone that is larger, of which the multipliers hold no more."""
        own = body["multipliers"]["objective"]
        own["pairs"] = own["pairs"][:-2]

    def none(body: Body) -> None:
        body["multipliers"]["objective"]["pieces"] = []

    def cone(body: Body) -> None:
        body["multipliers"]["objective"]["pieces"][0]["form"] = "cone"

    assert judged(write(design, tmp_path / "sound.json", lambda body: None)) == (True, True)
    for change in (one_way, fewer, none, cone):
        assert judged(write(design, tmp_path / "forged.json", change)) == (False, False)


def test_what_is_negative_at_one_ray_proves_nothing() -> None:
    """Of a form that is lowered until one of 20 rays is about 0."""
    design = square()
    statement = design.problem.statement
    proof = design.certificate.multipliers.variance
    assert proof is not None
    factors = factors_of(statement)
    survey = statement.survey
    assert survey is not None
    kept = np.full(factors.shape, np.inf)
    kept[tuple(proof.pairs.T)] = factors[tuple(proof.pairs.T)]
    rays, prior = listed_rays(kept), proof.population
    squares = ((rays @ proof.inverse) @ survey.gram * (rays @ proof.inverse)).sum(axis=1)
    room = ((rays @ proof.prices) * (rays @ prior) - squares) / (rays @ prior) ** 2
    for share, holds in ((0.99, True), (1.01, False)):
        lower = dataclasses.replace(proof, prices=proof.prices - share * room.min() * prior)
        assert (variance_bound(survey, lower, factors) > 0) == holds


def test_problem_files_state_statistics(tmp_path: Path) -> None:
    path = tmp_path / "survey.toml"
    path.write_text(
        'format = 1\nprior = "uniform"\nloss = "euclidean"\n'
        '[secrets]\nkind = "line"\ncount = 3\n'
        '[objective]\nkind = "minimize_variance"\nstatistic = "mean"\npopulation = "worst"\n'
        '[[constraints]]\nkind = "metric_privacy"\nepsilon = 1\ndistance = "euclidean"\n'
    )
    given = om.load_problem(path)
    assert isinstance(given.objective, om.MinimizeVariance)
    assert given.objective.statistic == "mean"
    assert given.objective.population == "worst"


@pytest.mark.parametrize(
    ("statistic", "more", "words"),
    [
        ("median", {}, "unknown"),
        ([[1.0, 2.0]], {}, "columns"),
        ("histogram", {"weights": [1.0, 2.0]}, "weights for"),
        ("marginals", {}, "no product"),
        ("histogram", {"population": "best"}, "population"),
    ],
)
def test_what_cannot_be_meant_is_refused(statistic: Any, more: Any, words: str) -> None:
    with pytest.raises(om.ProblemError, match=words):
        problem(3, 1.0, statistic, **more)


def test_other_promises_are_refused_before_anything_is_searched() -> None:
    line = om.Domain.range(3)
    goal = om.MinimizeVariance()
    stated = om.Problem(
        om.Prior.uniform(line), E, objective=goal,
        constraints=[om.MetricPrivacy(1, E), om.constraints.Bias(0.1, [0, 1, 2], [0, 1, 2])],
    )  # fmt: skip
    with pytest.raises(om.ProblemError, match="likelihood ratios"):
        om.solve(stated)
    with pytest.raises(om.ProblemError, match="single reports"):
        _ = om.solve(om.Problem(om.Prior.uniform(line), E)).variance
