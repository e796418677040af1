"""``solve`` from end to end: published optima, closed forms, refusals, limits and interrupts."""

from __future__ import annotations

import os
import signal
import threading

import numpy as np
import pytest
from conformance.problems import blind, prior
from hypothesis import given, settings, strategies as st

import optmech as om
from optmech.base import memory
from optmech.engines import select
from optmech.errors import ProblemError, SolverError, TooLargeError
from optmech.lp.flatten import flatten
from optmech.lp.inequalities import Inequalities, compile_lp
from optmech.pipeline.profiles import Profile

E, H = om.distances.euclidean(), om.distances.hamming()
REFERENCE = [
    (4, E, 1.088854),
    (4, H, 0.687335),
    (5, E, 1.228677),
    (5, H, 0.721744),
    (6, E, 1.324117),
    (6, H, 0.743956),
]


@pytest.mark.parametrize(("side", "loss", "expected"), REFERENCE)
def test_reference_optima_on_unit_grids(side: int, loss: object, expected: float) -> None:
    """Euclidean metric privacy, uniform prior, ε = 1 (laboratory values, to six decimals)."""
    problem = om.Problem(
        om.Prior.uniform(om.Grid(side, side)), loss, constraints=[om.MetricPrivacy(1.0, E)]
    )
    design = om.solve(problem)
    assert design.status == "optimal"
    assert design.loss == pytest.approx(expected, abs=6e-7)
    assert design.lower_bound <= design.loss
    assert design.gap <= 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1, 2, 4, 5, 6, 8])
@pytest.mark.parametrize("loss", [E, H])
def test_large_epsilon_stays_private_and_certified(epsilon: float, loss: object) -> None:
    grid = om.Grid(5, 5)
    design = om.solve(
        om.Problem(om.Prior.uniform(grid), loss, constraints=[om.MetricPrivacy(epsilon, E)])
    )
    matrix, d = design.mechanism.matrix, E(grid, grid)
    np.fill_diagonal(d, np.inf)
    for column in matrix.T:
        assert column.min() > 0 or column.max() == 0
        if column.max() > 0:
            logs = np.log(column)
            assert ((logs[:, None] - logs[None, :]) / d).max() <= epsilon * (1 + 1e-12)
    assert np.abs(matrix.sum(axis=1) - 1).max() < 1e-14
    assert design.gap <= 1e-6
    if loss is E and epsilon == 5:
        assert design.loss == pytest.approx(0.02436, abs=5e-6)


@given(st.integers(2, 9), st.floats(0.05, 6))
@settings(max_examples=15)
def test_randomised_response_is_optimal_for_hamming_loss(n: int, epsilon: float) -> None:
    problem = om.Problem(
        om.Prior.uniform(om.Domain(range(n))), H, constraints=[om.DifferentialPrivacy(epsilon)]
    )
    assert om.solve(problem).loss == pytest.approx((n - 1) / (np.exp(epsilon) + n - 1), rel=1e-6)


@given(st.integers(2, 10), st.floats(0.1, 3), st.integers(0, 2**32 - 1))
@settings(max_examples=15)
def test_geometric_mechanism_with_remap_is_optimal_on_the_line(
    n: int, epsilon: float, seed: int
) -> None:
    """Ghosh, Roughgarden and Sundararajan: for every prior and loss |s - o| the truncated
    geometric mechanism, followed by the best remap, is optimal."""
    weights = np.random.default_rng(seed).dirichlet(np.ones(n))
    line = om.Domain.range(n)
    a = np.exp(-epsilon)
    d = np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
    geometric = (1 - a) / (1 + a) * a**d
    geometric[:, [0, -1]] = a ** d[:, [0, -1]] / (1 + a)
    assert geometric.sum(axis=1) == pytest.approx(1)
    best = sum(min((weights * geometric[:, o]) @ d[:, r] for r in range(n)) for o in range(n))
    problem = om.Problem(om.Prior(line, weights), E, constraints=[om.MetricPrivacy(epsilon, E)])
    assert om.solve(problem).loss == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("epsilon", [15, 20, 25, 30, 40, 300])
def test_losses_far_below_solver_tolerances_are_certified(epsilon: float) -> None:
    """Two secrets: 1/(e^ε + 1), down to 5e-131."""
    p = om.Prior.uniform(om.Domain.range(2))
    design = om.solve(om.Problem(p, H, constraints=[om.MetricPrivacy(epsilon, E)]))
    assert design.loss == pytest.approx(1 / (np.exp(epsilon) + 1), rel=1e-6)
    assert design.gap <= 1e-6
    assert design.mechanism.matrix.min() > 0


@pytest.mark.parametrize("n", [2, 3])
def test_tiny_problems_against_a_search_over_all_vertices(n: int) -> None:
    """Every vertex of the feasible set is enumerated; the best of them is the optimum."""
    from itertools import combinations

    rng = np.random.default_rng(n)
    p = prior(rng, om.Domain.range(n))
    outputs = om.Domain("xy")
    loss = rng.uniform(0, 1, (n, 2))
    epsilon = 0.8
    # with two observables the mechanism is one number p(x|s) per secret
    rows, rhs = [], []
    for s in range(n):
        unit = np.eye(n)[s]
        rows += [-unit, unit]
        rhs += [0.0, 1.0]
        for t in range(n):
            if s != t:
                factor = np.exp(epsilon * abs(s - t))
                other = np.eye(n)[t]
                rows += [unit - factor * other, factor * other - unit]
                rhs += [0.0, factor - 1.0]
    a, b = np.array(rows), np.array(rhs)
    best = np.inf
    for pick in combinations(range(len(a)), n):
        if abs(np.linalg.det(a[list(pick)])) < 1e-9:
            continue
        x = np.linalg.solve(a[list(pick)], b[list(pick)])
        if (a @ x <= b + 1e-9).all():
            best = min(best, float(p.weights @ (loss[:, 0] * x + loss[:, 1] * (1 - x))))
    design = om.solve(om.Problem(p, loss, outputs, constraints=[om.MetricPrivacy(epsilon, E)]))
    assert design.loss == pytest.approx(best, rel=1e-6)


def test_the_attack_its_lp_value_and_the_programs_x_agree() -> None:
    """x(o) of the solved program, the closed-form attack and the measured distortion agree."""
    import highspy

    rng = np.random.default_rng(0)
    p = prior(rng, om.Grid(2, 4))
    level = 0.8 * blind(p)
    problem = om.Problem(
        p, H, constraints=[om.MetricPrivacy(1.5, E), om.DistortionPrivacy(level, E)]
    )
    design = om.solve(problem)
    attack = om.attacks.optimal_attack(design.mechanism, p, E)
    assert attack.error == pytest.approx(level, rel=1e-6)
    assert om.measures.distortion(design.mechanism, p, E) == pytest.approx(attack.error)
    compiled = compile_lp(Inequalities.of(problem.statement))
    flat = flatten(compiled.lp)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    rows, columns = flat.matrix.shape
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_, lp.col_cost_ = columns, rows, flat.cost
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), flat.upper_x
    lp.row_lower_, lp.row_upper_ = flat.lower, flat.upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = flat.matrix.indptr, flat.matrix.indices
    lp.a_matrix_.value_ = flat.matrix.data
    highs.passModel(lp)
    highs.run()
    solution = highs.getSolution()
    point = flat.point(np.array(solution.col_value), np.array(solution.row_dual))
    matrix, multipliers = compiled.recover(point)
    x = point.z[len(p)]
    best_response = (p.weights[None, :] * E(p.domain, p.domain) @ matrix).min(axis=0)
    assert x.sum() == pytest.approx(level, rel=1e-6)
    assert (x <= best_response + 1e-7).all()
    # the dual of the distortion rows is an optimal attack: it charges the same error
    strategy = multipliers.families[1].strategy
    strategy = strategy / strategy.sum(axis=1, keepdims=True)
    assert om.attacks.evaluate(
        om.Mechanism(p.domain, p.domain, matrix / matrix.sum(axis=1, keepdims=True)),
        strategy, p, distance=E,
    ).error == pytest.approx(level, rel=1e-5)  # fmt: skip


def test_too_much_distortion_is_refused_with_both_numbers() -> None:
    p = om.Prior.uniform(om.Domain.range(3))
    design = om.solve(om.Problem(p, E, constraints=[om.DistortionPrivacy(0.7, E)]))
    assert design.status == "infeasible"
    assert "0.7" in design.reason
    assert "0.666666667" in design.reason
    with pytest.raises(om.InfeasibleError, match="d_max"):
        _ = design.mechanism


def test_conflicting_constraints_are_named_with_a_proof() -> None:
    p = prior(np.random.default_rng(1), om.Grid(3, 3))
    problem = om.Problem(
        p,
        H,
        constraints=[om.LossBound(0.2, loss=E), om.DistortionPrivacy(0.9 * blind(p), E)],
    )
    design = om.solve(problem)
    assert design.status == "infeasible"
    assert "constraints[0]" in design.reason
    assert "constraints[1]" in design.reason
    from optmech.certificate import infeasibility_margin

    assert infeasibility_margin(problem.statement, design.certificate.multipliers) > 0


def test_maximised_distortion_reports_the_price_of_its_loss() -> None:
    p = prior(np.random.default_rng(2), om.Grid(2, 3))
    private = om.MetricPrivacy(1.0, E)
    most = om.solve(
        om.Problem(
            p, H, objective=om.MaximizeDistortion(E), constraints=[om.LossBound(0.75), private]
        )
    )
    assert most.gap <= 1e-6
    assert most.loss <= 0.75 + 1e-12
    # the reverse problem: the least loss at that distortion is bracketed by loss and lower_bound
    level = most.objective * (1 - 1e-9)
    least = om.solve(om.Problem(p, H, constraints=[om.DistortionPrivacy(level, E), private]))
    assert most.lower_bound <= least.loss + 1e-6
    assert least.loss <= most.loss + 1e-6


def test_thresholded_designs_report_what_they_do_not_promise() -> None:
    p = prior(np.random.default_rng(3), om.Grid(3, 3))
    full = om.Problem(p, H, constraints=[om.MetricPrivacy(1.0, E)])
    problem = om.Problem(
        p, H, constraints=[om.MetricPrivacy(1.0, E, threshold=1.1, observable_threshold=1.1)]
    )
    design = om.solve(problem)
    approximation = design.approximation
    assert approximation is not None
    assert approximation.promised_epsilon == 1.0
    assert approximation.epsilon == om.measures.epsilon(design.mechanism, E)
    assert approximation.epsilon > 1.0
    assert approximation.repaired is not None
    assert om.measures.epsilon(approximation.repaired, E) <= 1 + 1e-12
    assert approximation.repaired_loss >= om.solve(full).lower_bound
    assert any("threshold" in note for note in design.notes)


def test_a_time_limit_returns_the_best_verified_pair() -> None:
    p = prior(np.random.default_rng(0), om.Grid(8, 8))
    problem = om.Problem(p, E, constraints=[om.MetricPrivacy(0.7, E)])
    design = om.solve(problem, profile="highs", time_limit=0.2)
    assert design.status == "feasible"
    assert design.verified
    assert design.lower_bound + 1e-9 > 0
    assert design.loss <= blind(p) * (1 + 1e-9)
    assert design.gap > 1e-6


def test_ctrl_c_returns_the_best_verified_pair() -> None:
    p = prior(np.random.default_rng(0), om.Grid(8, 8))
    problem = om.Problem(p, E, constraints=[om.MetricPrivacy(0.7, E)])
    said: list[str] = []
    timer = threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT))

    def progress(line: str) -> None:
        if not said:  # the search listens from here on, however slow the machine is
            timer.start()
        said.append(line)

    design = om.solve(problem, profile="highs", progress=progress)
    timer.join()
    assert design.status == "feasible"
    assert design.verified
    assert any("interrupted" in line for line in said)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_nothing_verified_is_an_error_that_says_so() -> None:
    """The loss bound is just above the least loss, and there is no time to search."""
    p = prior(np.random.default_rng(0), om.Grid(4, 5))
    private = om.MetricPrivacy(0.7, E)
    least = om.solve(om.Problem(p, E, constraints=[private])).loss
    problem = om.Problem(p, H, constraints=[om.LossBound(least * 1.001, loss=E), private])
    with pytest.raises(SolverError, match="no verified mechanism") as caught:
        om.solve(problem, profile="highs", time_limit=1e-3)
    assert caught.value.exit_status == 4


def test_problems_beyond_memory_are_refused_with_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(TooLargeError, match=r"TiB.*available"):
        om.Problem(om.Prior.uniform(om.Domain(range(2_000_000))), H)
    p = om.Prior.uniform(om.Grid(5, 5))
    problem = om.Problem(p, H, constraints=[om.DifferentialPrivacy(1.0)])
    monkeypatch.setattr(memory, "available_bytes", lambda: 2_000_000)
    with pytest.raises(TooLargeError, match="engine highs") as caught:
        om.solve(problem, profile="highs")
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"gap": -1.0}, "gap"),
        ({"gap": float("nan")}, "gap"),
        ({"time_limit": 0}, "time_limit"),
        ({"profile": "nonsense"}, "profile"),
        ({"profile": "/does/not/exist.toml"}, "exist.toml"),
    ],
)
def test_unusable_arguments_are_refused(arguments: dict[str, object], where: str) -> None:
    problem = om.Problem(om.Prior.uniform(om.Domain("ab")), H)
    with pytest.raises(ProblemError, match=where):
        om.solve(problem, **arguments)
    with pytest.raises(ProblemError, match="not a Problem"):
        om.solve("montreal")


def test_the_default_is_as_many_threads_as_there_are_processors(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for processors, threads in ((1, 1), (3, 3), (64, 16)):
        monkeypatch.setattr(
            "os.sched_getaffinity", lambda _, n=processors: set(range(n)), raising=False
        )
        assert Profile().options().threads == threads
        assert Profile(threads=5).options().threads == 5


def test_auto_counts_rows_inside_blocks_as_well() -> None:
    for side, engine in ((5, "highs"), (17, "structured")):
        grid = om.Grid(side, side)
        far = om.DistortionPrivacy(1.0, om.distances.euclidean())
        problem = om.Problem(om.Prior.uniform(grid), om.distances.hamming(), constraints=[far])
        assert select(compile_lp(Inequalities.of(problem.statement)).lp)[0] == engine


def test_profiles_are_checked() -> None:
    for settings_ in (
        {"engine": "abacus"},
        {"reductions": ("magic",)},
        {"reductions": "implied-pairs"},
        {"threads": 0},
        {"gap": 0.0},
        {"parameters": 3},
    ):
        with pytest.raises(ProblemError):
            Profile(**settings_)
    for setting in ({"method": "quantum"}, {"parameters": {"no_such_option": 1}}):
        with pytest.raises(ProblemError, match="profile"):
            om.solve(
                om.Problem(
                    om.Prior.uniform(om.Domain("ab")),
                    H,
                    constraints=[om.DifferentialPrivacy(1.0)],
                ),
                Profile(engine="highs", **setting),
            )


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_distortion_that_is_left_out_first_holds_all_the_same(
    share: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that are large are first tried without it: where it does not bind, and where it
    does, as if every program were."""
    p = prior(np.random.default_rng(4), om.Grid(3, 4))
    level = share * blind(p)
    constraints = [om.DistortionPrivacy(level, E), om.MetricPrivacy(1.0, E)]
    problem = om.Problem(p, H, constraints=constraints)
    whole = om.solve(problem)
    monkeypatch.setattr("optmech.pipeline.search._SLACK_FIRST_ROWS", 0)
    said: list[str] = []
    design = om.solve(problem, progress=said.append)
    assert design.loss == pytest.approx(whole.loss, rel=2e-6)
    assert om.measures.distortion(design.mechanism, p, E) >= level * (1 - 1e-12)
    assert ("distortion constraints bind: solving with them" in said) == (share == 0.9)


LEAST_DELTA = 0.331582
"""Of 36 cells in a square whose neighbours, up to 1.5 apart, are told apart by e^{d/2} and δ at
most, with reports within 2: by a program of SciPy's own."""


@pytest.mark.parametrize("share", [0.97, 1.005])
def test_beside_the_least_delta_the_search_ends_with_a_proof(share: float) -> None:
    """Just below it the interior-point method alone went on for minutes."""
    cells = om.Grid(6, 6)
    near = om.MetricPrivacy(0.5, E, threshold=1.5, delta=share * LEAST_DELTA)
    within = om.Support(distance=E, radius=2)
    design = om.solve(om.Problem(om.Prior.uniform(cells), E, constraints=[near, within]))
    assert design.status == ("infeasible" if share < 1 else "optimal")
