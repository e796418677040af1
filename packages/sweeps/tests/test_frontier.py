"""Fronts by brute force, the least ε in closed form."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

import optmech as om
from optmech.errors import InfeasibleError, ProblemError

H = om.distances.hamming()


def row(epsilon: float, loss: float, status: str = "optimal", **more: object) -> dict[str, object]:
    return {"status": status, "epsilon": epsilon, "loss": loss, **more}


pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), max_size=14)


@given(pairs)
def test_the_front_is_what_nothing_beats(values: list[tuple[int, int]]) -> None:
    front = om.frontier.pareto_front([row(a, b) for a, b in values])
    beaten = {
        (a, b) for a, b in values if any((c, d) != (a, b) and c <= a and d <= b for c, d in values)
    }
    assert [(r["epsilon"], r["loss"]) for r in front] == sorted(set(values) - beaten)


def test_rows_without_designs_are_no_points() -> None:
    rows = [row(1, 0, "failed"), row(2, 0, "infeasible"), row(3, 5, "feasible"), row(1, 7)]
    assert om.frontier.pareto_front(rows) == [rows[3], rows[2]]
    assert om.frontier.pareto_front(rows, minimise=["loss"], maximise=["epsilon"]) == [rows[2]]
    with pytest.raises(ProblemError, match="no column 'speed'"):
        om.frontier.pareto_front(rows, minimise=["speed"])
    with pytest.raises(ProblemError, match="names no column"):
        om.frontier.pareto_front(rows, minimise=[])


def test_the_cheapest_row_for_a_wish() -> None:
    rows = [
        row(0.5, 3.0, d_m=1),
        row("ln 3", 2.0, d_m=2),
        row(2, 1.0, d_m=3),
        row(3, 0.5, "failed"),
    ]
    assert om.frontier.cheapest(rows, at_most={"epsilon": 1.5}) is rows[1]
    assert om.frontier.cheapest(rows, at_least={"d_m": 3}) is rows[2]
    assert om.frontier.cheapest(rows, at_most={"loss": 2}, minimise="epsilon") is rows[1]
    with pytest.raises(InfeasibleError, match=r"none of 4 rows .* loss <= 0.7 and d_m >= 3"):
        om.frontier.cheapest(rows, at_most={"loss": 0.7}, at_least={"d_m": 3})


def response(n: int) -> om.Problem:
    return om.Problem(
        om.Prior.uniform(om.Domain.range(n)), H, constraints=[om.DifferentialPrivacy(1.0)]
    )


@pytest.mark.parametrize(("n", "limit"), [(3, 0.4), (4, 0.2), (2, 0.01)])
def test_the_least_epsilon_of_randomised_response(n: int, limit: float) -> None:
    """loss (n - 1) / (e^ε + n - 1) <= q from ε = ln((n - 1)(1 - q) / q) on."""
    exact = math.log((n - 1) * (1 - limit) / limit)
    found = om.frontier.least_epsilon(response(n), limit, 0.01, 9.0, tolerance=1e-5)
    assert found.lower < exact <= found.upper
    assert found.upper - found.lower <= 1e-5 * found.upper
    assert found.design.verified
    assert found.design.loss <= limit < found.bound
    assert found.design.problem.constraints[0].epsilon == found.upper
    assert not found.reason


def test_the_ends_of_the_search() -> None:
    at_once = om.frontier.least_epsilon(response(2), 0.45, 1.0, 2.0)
    assert (at_once.lower, at_once.upper) == (1.0, 1.0)
    with pytest.raises(InfeasibleError, match="is proved to exceed the limit"):
        om.frontier.least_epsilon(response(2), 0.1, 0.1, 1.0)
    with pytest.raises(InfeasibleError, match=r"ε = 0\.693147 .* exceed the limit 0\.1"):
        om.frontier.least_epsilon(response(2), "1/10", "1/20", "ln 2")
    impossible = om.Problem(
        om.Prior.uniform(om.Domain.range(2)),
        H,
        constraints=[om.DifferentialPrivacy(1.0), om.LossBound(0.2)],
    )
    # ε = ln 4 is the least at which the bound of 0.2 can be kept at all
    found = om.frontier.least_epsilon(impossible, 0.5, 0.5, 4.0)
    assert found.lower < math.log(4) <= found.upper * (1 + 1e-9)
    assert found.bound == math.inf


def test_bad_arguments_are_refused() -> None:
    problem = response(2)
    for wanted, arguments, more in (
        ("place", (0.4, 0.1, 1.0), {"place": "constraints[0].adjacency"}),
        ("does not exist", (0.4, 0.1, 1.0), {"place": "constraints[3].epsilon"}),
        ("low", (0.4, 1.0, 1.0), {}),
        ("maximum_loss", (-1.0, 0.1, 1.0), {}),
        ("tolerance", (0.4, 0.1, 1.0), {"tolerance": 0}),
    ):
        with pytest.raises(ProblemError, match=wanted):
            om.frontier.least_epsilon(problem, *arguments, **more)
    game = om.Problem(
        problem.prior, H, objective=om.MaximizeDistortion(H), constraints=[om.LossBound(0.3)]
    )
    with pytest.raises(ProblemError, match="no loss as objective"):
        om.frontier.least_epsilon(game, 0.4, 0.1, 1.0)
