"""The structured engine by itself: its points against HiGHS on the whole program, closed forms
and published optima; no repair and no pipeline in between."""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import linprog

import optmech as om
from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.native import has_kernels
from optmech.certificate import lower_bound
from optmech.certificate.statement import Statement
from optmech.engines.base import EngineResult, Options, Outcome, program_bytes
from optmech.engines.structured import StructuredEngine, engine
from optmech.engines.structured.array_backend import ArrayBackend
from optmech.engines.structured.arrays import open_device
from optmech.engines.structured.engine import make_backend
from optmech.engines.structured.model import build
from optmech.engines.structured.rows import add_rows, first_rows, make_cone
from optmech.lp.blocks import Point
from optmech.lp.flatten import flatten
from optmech.lp.inequalities import Compiled, Inequalities, compile_lp

E, H = om.distances.euclidean(), om.distances.hamming()
Make = Callable[[np.random.Generator], om.Problem]


@pytest.fixture(params=["numpy", "compiled", "device"])
def either(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run under every backend, small problems included."""
    if request.param == "device":
        pytest.importorskip("array_api_compat")
        for module in (engine, sys.modules[__name__]):
            monkeypatch.setattr(
                module,
                "make_backend",
                lambda model, cone, threads: ArrayBackend(model, cone, open_device("numpy")),
            )
        return "device"
    if request.param == "compiled" and not has_kernels():
        pytest.skip("no kernels are compiled")
    monkeypatch.setenv("OPTMECH_KERNELS", "numpy" if request.param == "numpy" else "")
    monkeypatch.setattr(engine, "SMALL", 0)
    return str(request.param)


class Recorder:
    """A monitor that evaluates bounds with the certificate and values from the raw point."""

    def __init__(self, compiled: Compiled, statement: Statement, stop_after: int = 10**9) -> None:
        self.compiled, self.statement, self.stop_after = compiled, statement, stop_after
        self.bound, self.value, self.matrix = -np.inf, np.inf, np.zeros(0)
        self.bounds: list[float] = []
        self.asked = 0

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        matrix, found = self.compiled.recover(point)
        lp = self.compiled.lp
        if dual:
            self.bounds.append(lower_bound(self.statement, found.stated(self.statement)).value)
            self.bound = max(self.bound, self.bounds[-1])
        if primal:
            self.matrix = matrix
            self.value = float((lp.cost * point.z).sum() + lp.shared_cost @ point.shared)
        return abs(self.value - self.bound) / abs(self.value)

    def should_stop(self) -> bool:
        self.asked += 1
        return self.asked > self.stop_after

    def remaining(self) -> float:
        return np.inf

    def report(self, text: str) -> None:
        assert text


def run(
    problem: om.Problem, gap: float = 1e-7, stop_after: int = 10**9
) -> tuple[Recorder, EngineResult]:
    compiled = compile_lp(Inequalities.of(problem.statement))
    recorder = Recorder(compiled, problem.statement, stop_after)
    return recorder, StructuredEngine().run(compiled.lp, Options(gap=gap), recorder)


def reference(problem: om.Problem) -> float:
    """The optimum of the flattened program by HiGHS."""
    flat = flatten(compile_lp(Inequalities.of(problem.statement)).lp)
    equal = np.isfinite(flat.lower)
    found = linprog(
        flat.cost,
        A_ub=flat.matrix[~equal],
        b_ub=flat.upper[~equal],
        A_eq=flat.matrix[equal],
        b_eq=flat.upper[equal],
        bounds=np.column_stack([np.zeros_like(flat.cost), flat.upper_x]),
        options={"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9},
    )
    assert found.status == 0, found.message
    return float(found.fun)


def assert_solved(problem: om.Problem, expected: float, gap: float = 1e-7) -> Recorder:
    recorder, result = run(problem, gap)
    assert result.outcome is Outcome.SOLVED, result.message
    slack = 1e-9 + 2 * gap * abs(expected)
    assert expected - slack <= recorder.bound <= expected + 1e-9 + 1e-8 * abs(expected)
    assert recorder.value == pytest.approx(expected, rel=3 * gap, abs=1e-8)
    assert np.abs(recorder.matrix.sum(axis=1) - 1).max() < 1e-6
    return recorder


def grid_problem(rows: int, columns: int, loss: object, *extra: object) -> om.Problem:
    grid = om.Grid(rows, columns)
    prior = om.Prior(grid, np.full(len(grid), 1 / len(grid)))
    return om.Problem(prior, loss, constraints=[om.MetricPrivacy(1.0, E), *extra])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("side", "loss", "optimum"),
    [
        (4, E, 1.088854),
        (4, H, 0.687335),
        (5, E, 1.228677),
        (5, H, 0.721744),
        (6, E, 1.324117),
        (6, H, 0.743956),
    ],
)
def test_published_optima_on_unit_grids(
    side: int, loss: om.distances.Distance, optimum: float, either: str
) -> None:
    recorder, result = run(grid_problem(side, side, loss))
    assert result.outcome is Outcome.SOLVED
    assert recorder.bound == pytest.approx(optimum, abs=6e-7)
    assert recorder.value == pytest.approx(optimum, abs=6e-7)


def test_proposed_matrix_satisfies_every_pair_without_repair(either: str) -> None:
    problem = grid_problem(6, 5, H)
    recorder, result = run(problem)
    P, d = recorder.matrix, E(problem.secrets, problem.secrets)
    excess = P[:, None, :] / (np.exp(d)[:, :, None] * P[None, :, :])
    assert excess.max() < 1 + 1e-12
    assert np.abs(P.sum(axis=1) - 1).max() < 1e-12
    short = 30 * (4 * 29 * 2)
    assert int(result.statistics["pair_rows"]) < short, "long pairs are held only where they bite"


def joint_6x6() -> om.Problem:
    grid = om.Grid(6, 6)
    prior = om.Prior(grid, np.random.default_rng(7).dirichlet(np.ones(36) * 0.5))
    return om.Problem(
        prior, H, constraints=[om.MetricPrivacy(1.3, E), om.DistortionPrivacy(1.577181262, E)]
    )


def test_joint_problem_of_36_cells(either: str) -> None:
    assert_solved(joint_6x6(), 0.510199270)


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 3.0])
def test_randomised_response_is_optimal_for_all_pairs(epsilon: float, either: str) -> None:
    n = 9
    prior = om.Prior(om.Domain.range(n), np.full(n, 1 / n))
    problem = om.Problem(prior, H, constraints=[om.DifferentialPrivacy(epsilon)])
    assert_solved(problem, (n - 1) / (np.exp(epsilon) + n - 1))


def _random_points(rng: np.random.Generator, n: int) -> tuple[om.Prior, Floats]:
    weights = rng.dirichlet(np.full(n, rng.choice([0.3, 1.0, 50.0])))
    domain = om.Domain(range(n), rng.uniform(0, rng.choice([0.3, 2.0]), (n, 2)))
    return om.Prior(domain, weights), E(domain, domain)


def _metric(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 14)
    return om.Problem(prior, E, constraints=[om.MetricPrivacy(rng.uniform(0.2, 4), E)])


def _matrix_metric(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 10)
    d = om.distances.matrix(rng.uniform(0.1, 2, (10, 10)))
    return om.Problem(prior, H, constraints=[om.MetricPrivacy(1.0, d)])


def _graph_metric(rng: np.random.Generator) -> om.Problem:
    steps = np.where(rng.random((12, 12)) < 0.25, rng.uniform(0.2, 1, (12, 12)), np.inf)
    steps = np.minimum(steps, steps.T)
    index = np.arange(11)
    steps[index, index + 1] = steps[index + 1, index] = 0.5
    np.fill_diagonal(steps, 0)
    for k in range(12):
        steps = np.minimum(steps, steps[:, k, None] + steps[None, k])
    prior = om.Prior(om.Domain.range(12), rng.dirichlet(np.ones(12)))
    d = om.distances.matrix(steps)
    return om.Problem(prior, d, constraints=[om.MetricPrivacy(1.5, d)])


def _adjacency(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 8)
    pairs = [(0, 1), (1, 2), (4, 5), (5, 6), (4, 6)]
    return om.Problem(prior, E, constraints=[om.DifferentialPrivacy(0.7, pairs)])


def _other_observables(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 8)
    count = int(rng.choice([3, 17]))
    return om.Problem(
        prior,
        rng.random((8, count)),
        observables=om.Domain.range(count),
        constraints=[om.MetricPrivacy(1.0, E)],
    )


def _duplicates(rng: np.random.Generator) -> om.Problem:
    xy = rng.uniform(0, 2, (9, 2))
    xy[[3, 5]], xy[8] = xy[0], xy[7]
    weights = rng.dirichlet(np.ones(9))
    weights[[0, 4]] = 0.0
    prior = om.Prior(om.Domain(range(9), xy), weights / weights.sum())
    return om.Problem(
        prior,
        rng.random((9, 9)),
        constraints=[om.MetricPrivacy(1.0, E), om.DistortionPrivacy(0.2 * _blind(prior), E)],
    )


def _blind(prior: om.Prior) -> float:
    return float((E(prior.domain, prior.domain) * prior.weights).sum(axis=1).min())


def _distortion(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 18)
    level = rng.uniform(0.2, 0.95) * _blind(prior)
    return om.Problem(prior, E, constraints=[om.DistortionPrivacy(level, E)])


def _joint(rng: np.random.Generator) -> om.Problem:
    problem = _distortion(rng)
    constraints = [*problem.constraints, om.MetricPrivacy(rng.uniform(0.3, 3), E)]
    return om.Problem(problem.prior, H, constraints=constraints)


def _lifted(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 10)
    pairs = [(rng.dirichlet(np.ones(10)), rng.dirichlet(np.ones(10))) for _ in range(3)]
    constraints: list[om.Constraint] = [om.DistributionPrivacy(0.3, pairs)]
    if rng.random() < 0.5:
        constraints.append(om.MetricPrivacy(1.5, E))
    return om.Problem(prior, H, constraints=constraints)


def _loss_limits(rng: np.random.Generator) -> om.Problem:
    prior, d = _random_points(rng, 9)
    centre = d.max(axis=0).argmin()
    return om.Problem(
        prior,
        H,
        constraints=[
            om.MetricPrivacy(1.0, E),
            om.LossBound(1.01 * float(prior.weights @ d[:, centre]), loss=E),
            om.LossBound(1.02 * float(d[:, centre].max()), worst_case=True, loss=E),
        ],
    )


def _worst_loss(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 9)
    return om.Problem(
        prior, E, objective="worst_loss", constraints=[om.MetricPrivacy(rng.uniform(0.5, 3), E)]
    )


def _target(rng: np.random.Generator) -> om.Problem:
    prior, d = _random_points(rng, 18)
    constant = float((prior.weights[:, None] * d).sum(axis=0).min())
    return om.Problem(
        prior,
        E,
        objective=om.MaximizeDistortion(E),
        constraints=[om.LossBound(rng.uniform(0.3, 0.9) * constant)],
    )


def _support(rng: np.random.Generator) -> om.Problem:
    prior, _ = _random_points(rng, 7)
    mask = rng.random((7, 7)) < 0.8
    mask[:, 0] = True
    pairs = [(0, 1), (1, 2), (3, 4)]
    return om.Problem(prior, E, constraints=[om.DifferentialPrivacy(1.0, pairs), om.Support(mask)])


KINDS = [
    _metric,
    _matrix_metric,
    _graph_metric,
    _adjacency,
    _other_observables,
    _duplicates,
    _distortion,
    _joint,
    _lifted,
    _loss_limits,
    _worst_loss,
    _target,
    _support,
]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("make", KINDS, ids=lambda make: make.__name__)
def test_agrees_with_highs_on_the_whole_program(make: Make, seed: int, either: str) -> None:
    problem = make(np.random.default_rng([seed, 1729]))
    assert_solved(problem, reference(problem))


@pytest.mark.parametrize("diameter", [0.01, 40.0])
def test_small_and_large_diameters(diameter: float) -> None:
    rng = np.random.default_rng(5)
    domain = om.Domain(range(10), rng.uniform(0, 1, (10, 2)))
    d = E(domain, domain)
    prior = om.Prior(domain, rng.dirichlet(np.ones(10)))
    problem = om.Problem(
        prior, rng.random((10, 10)), constraints=[om.MetricPrivacy(diameter / d.max(), E)]
    )
    assert_solved(problem, reference(problem))


def test_one_secret_takes_its_cheapest_observable() -> None:
    problem = om.Problem(
        om.Prior(om.Domain.range(1), [1.0]),
        np.array([[0.7, 0.25, 0.9]]),
        observables=om.Domain.range(3),
        constraints=[om.MetricPrivacy(1.0, om.distances.matrix([[0.0]]))],
    )
    assert_solved(problem, 0.25)


def test_two_secrets_by_hand() -> None:
    # Hamming, prior (q, 1-q), ratio r: both columns tight gives loss 1/(1+r) while q is near 1/2
    problem = om.Problem(
        om.Prior(om.Domain.range(2), [0.45, 0.55]), H, constraints=[om.DifferentialPrivacy("ln 3")]
    )
    assert_solved(problem, 0.25)


def test_bounds_come_from_the_first_iterations_on_and_are_always_valid() -> None:
    recorder, result = run(grid_problem(6, 6, E))
    assert int(result.statistics["iterations"]) >= 5
    assert len(recorder.bounds) >= 3
    assert all(bound <= 1.3241172 for bound in recorder.bounds)


@pytest.mark.parametrize("moment", [0, 3, 7])
def test_stops_when_told_to(moment: int) -> None:
    recorder, result = run(grid_problem(6, 6, E), gap=1e-12, stop_after=moment)
    assert result.outcome is Outcome.STOPPED
    assert recorder.asked == moment + 1


def test_entries_that_pairs_and_support_rule_out_entirely() -> None:
    # 0 may only report 0, 1 may only report 1, and neither may be ruled out by the other
    problem = om.Problem(
        om.Prior(om.Domain.range(2), [0.5, 0.5]),
        H,
        constraints=[om.DifferentialPrivacy(1.0), om.Support(np.eye(2, dtype=bool))],
    )
    _, result = run(problem)
    assert result.outcome is Outcome.INFEASIBLE
    assert "secret" in result.message


def test_a_distortion_beyond_reach_is_recognised_from_the_bound() -> None:
    rng = np.random.default_rng(0)
    prior, _ = _random_points(rng, 7)
    level = 1.2 * _blind(prior)
    problem = om.Problem(
        prior, E, constraints=[om.MetricPrivacy(1.0, E), om.DistortionPrivacy(level, E)]
    )
    _, result = run(problem)
    assert result.outcome is Outcome.INFEASIBLE


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        (om.DifferentialPrivacy(1.0, delta=0.1), "bound at zero matters"),
        (om.MetricPrivacy(1.0, E, observable_threshold=1.0), "some blocks"),
    ],
)
def test_refuses_what_it_does_not_support(constraint: om.Constraint, words: str) -> None:
    grid = om.Grid(2, 3)
    prior = om.Prior(grid, np.full(6, 1 / 6))
    lp = compile_lp(Inequalities.of(om.Problem(prior, E, constraints=[constraint]).statement)).lp
    assert words in StructuredEngine().refusal(lp)


def test_refuses_before_starting_what_does_not_fit_in_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statement = grid_problem(4, 4, E).statement
    compiled = compile_lp(Inequalities.of(statement))
    monkeypatch.setattr(memory, "available_bytes", lambda: 10_000)
    with pytest.raises(om.errors.TooLargeError, match="structured engine"):
        StructuredEngine().run(compiled.lp, Options(), Recorder(compiled, statement))


def test_factors_solve_the_dense_normal_equations_with_long_pairs(either: str) -> None:
    problem = grid_problem(5, 6, E)
    model = build(compile_lp(Inequalities.of(problem.statement)).lp)
    cone = make_cone(model)
    rng = np.random.default_rng(3)
    P = np.full((30, 31), 1 / 30)
    P[:, -1] = 0
    far = np.array([[0, 0, 29], [0, 29, 0], [4, 3, 28], [29, 12, 0]])
    rows = add_rows(first_rows(model, cone), cone, P, (far[:, 0], far[:, 1], far[:, 2]), 0.1)
    rows.s, rows.z = rng.uniform(0.1, 2, (2, len(rows)))
    blocks = make_backend(model, cone, 2)
    blocks.structure(rows, np.arange(30))
    schur = blocks.factor(rows)
    assert schur is not None
    right = rng.normal(size=(30, 2, 31))
    right[:, :, -1] = 0
    solved = right.copy()
    blocks.solve(solved)
    total = np.zeros((30, 30))
    for o in range(30):
        matrix = np.zeros((30, 30))
        for k in range(rows.offset[o], rows.offset[o + 1]):
            g = np.zeros(31)
            g[rows.j[k]] += rows.e[k]
            g[rows.i[k]] -= 1
            matrix += rows.z[k] / rows.s[k] * np.outer(g[:30], g[:30])
        total += np.linalg.inv(matrix)
        expected = np.linalg.solve(matrix, right[o, :, :30].T).T
        np.testing.assert_allclose(solved[o, :, :30], expected, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(schur.sums, total, rtol=1e-9)


def test_memory_is_that_of_what_will_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPTMECH_KERNELS", raising=False)
    either = program_bytes(1000, 200)
    monkeypatch.setenv("OPTMECH_KERNELS", "numpy")
    forbidden = program_bytes(1000, 200)
    monkeypatch.undo()
    assert forbidden > either if has_kernels() else forbidden == either
