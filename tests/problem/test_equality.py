"""Problems are equal where they ask the same, exactly; modules show what is public."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_read_only import RESULTS
from test_reference import MODULES

import optmech as om

KM = om.distances.euclidean()


def problem(**changes: Any) -> om.Problem:
    grid = om.Grid(2, 3, unit="km")
    given: dict[str, Any] = {
        "prior": om.Prior(grid, [1, 2, 3, 4, 5, 6]),
        "loss": KM,
        "constraints": [om.MetricPrivacy("ln 2", KM), om.LossBound(5.0)],
    }
    given |= changes
    return om.Problem(given.pop("prior"), given.pop("loss"), **given)


def test_the_same_question_twice_is_one() -> None:
    one, other = problem(), problem()
    assert one == other
    assert hash(one) == hash(other)
    assert len({one, other}) == 1
    # a title asks nothing, and a matrix with the distance's numbers asks the same
    assert problem(title="another") == one
    grid = one.secrets
    assert problem(loss=KM(grid, grid)) == one
    kept = om.solve(problem(constraints=[om.MetricPrivacy("ln 2", KM)]))
    assert kept.problem == problem(constraints=[om.MetricPrivacy("ln 2", KM)])


@pytest.mark.parametrize(
    "changes",
    [
        {"prior": om.Prior.uniform(om.Grid(2, 3, unit="km"))},
        {"prior": om.Prior(om.Grid(2, 3), [1, 2, 3, 4, 5, 6])},
        {"loss": om.distances.manhattan()},
        {"objective": "worst_loss"},
        {"objective": om.MaximizeDistortion(KM)},
        {"constraints": []},
        {"constraints": [om.MetricPrivacy(np.log(2), KM), om.LossBound(5.0)]},
        {"constraints": [om.LossBound(5.0), om.MetricPrivacy("ln 2", KM)]},
        {"observables": om.observables.coarser(om.Grid(2, 3, unit="km"), 1, 3),
         "loss": om.losses.over_members(KM, "max")},
    ],
)  # fmt: skip
def test_another_question_is_another(changes: dict[str, Any]) -> None:
    assert problem(**changes) != problem()


def test_a_saved_problem_is_the_same_problem(tmp_path: Any) -> None:
    design = om.solve(problem(constraints=[om.MetricPrivacy("ln 2", KM)]))
    design.save(tmp_path / "d.json")
    assert om.Design.load(tmp_path / "d.json").problem == design.problem
    assert problem() != 1


@pytest.mark.parametrize("module", MODULES)
def test_modules_show_what_is_public(module: str) -> None:
    found = getattr(om, module)
    assert sorted(name for name in dir(found) if not name.startswith("_")) == sorted(found.__all__)


TWICE: dict[str, Callable[[], Any]] = {
    "gain leakage": lambda: om.constraints.GainLeakage(0.5, np.eye(6)),
    "worst loss": lambda: om.LossBound(2, np.ones((6, 6)), worst_case=True),
    "support": lambda: om.Support(np.eye(6)),
    "bias": lambda: om.constraints.Bias(1, [1, 2, 3, 4, 5, 6]),
    "linear": lambda: om.Linear(np.eye(6), upper=5, title="a"),
    "ratios": lambda: om.Ratios(np.ones((6, 6))),
    "rows": lambda: om.constraints.FixedRows({(0, 0): ["1/2", "1/2", 0, 0, 0, 0]}),
    "distributions": lambda: om.DistributionPrivacy(1, [(np.eye(6)[0], np.eye(6)[1])]),
    "beliefs": lambda: om.constraints.Pufferfish(1, [(np.eye(6)[0], np.eye(6)[1])]),
    "metric": lambda: om.MetricPrivacy(1, np.ones((6, 6)) - np.eye(6)),
    "capacity": lambda: om.constraints.AdditiveCapacity(0.5),
    "least leakage": lambda: om.MinimizeLeakage(np.eye(6)),
    "least named leakage": lambda: om.MinimizeLeakage("identity"),
    "most distortion": lambda: om.MaximizeDistortion(np.ones((6, 6)) - np.eye(6)),
    "matrix": lambda: om.distances.matrix(np.eye(6)),
}


@pytest.mark.parametrize("name", TWICE)
def test_what_is_stated_twice_is_equal(name: str) -> None:
    one, other = TWICE[name](), TWICE[name]()
    assert one == other
    assert hash(one) == hash(other)
    assert all(one != make() for key, make in TWICE.items() if key != name)


@pytest.mark.parametrize("goal", ["identity", "maximal", np.eye(6), KM])
def test_problems_with_an_objective_of_their_own_are_equal(goal: Any) -> None:
    asked = [problem(objective=om.MinimizeLeakage(goal)) for _ in range(2)]
    assert asked[0] == asked[1]
    assert asked[0] != problem(objective=om.MinimizeLeakage(2 * np.eye(6)))
    other = om.Prior(asked[0].secrets, [6, 5, 4, 3, 2, 1])
    if not isinstance(goal, str) or goal == "identity":
        assert asked[0] != problem(objective=om.MinimizeLeakage(goal, other))


@pytest.mark.parametrize("name", sorted(set(RESULTS) - {"sweep"}))
def test_the_same_answer_twice_is_one(name: str, tmp_path: Path) -> None:
    """How long it took, and which multipliers were found, is no part of an answer."""
    one, again = (RESULTS[name](tmp_path) for _ in range(2))
    read = pickle.loads(pickle.dumps(one))
    assert one == again == read
    assert hash(one) == hash(again) == hash(read)
    assert one != name


SAVED: dict[str, Callable[[float], Any]] = {
    "design": lambda epsilon: om.solve(problem(constraints=[om.DifferentialPrivacy(epsilon)])),
    "noise": lambda epsilon: om.noise.optimal(epsilon, sensitivity=1, gap=1e-2),
    "Rényi noise": lambda epsilon: om.noise.rdp((2, epsilon), sensitivity=1, gap=0.1),
    "noise of pairs": lambda epsilon: om.noise.for_pairs(epsilon, sensitivity=1, gap=0.3),
    "target": lambda epsilon: om.mechanisms.optimal_target([[1, 2], [2, 1]], KM_OF_TWO, epsilon),
}
KM_OF_TWO = np.array([[0.0, 1], [1, 0]])


@pytest.mark.parametrize("name", SAVED)
def test_what_is_saved_is_the_same_answer(name: str, tmp_path: Path) -> None:
    made, other = SAVED[name](0.5), SAVED[name](0.75)
    made.save(tmp_path / "made.json")
    read = om.load(tmp_path / "made.json")
    assert read == made
    assert hash(read) == hash(made)
    assert made != other


def test_infeasible_answers_to_one_question_are_equal(tmp_path: Path) -> None:
    impossible = [om.MetricPrivacy(0, KM), om.LossBound(0.1)]
    one, other = (om.solve(problem(constraints=impossible)) for _ in range(2))
    one.save(tmp_path / "one.json")
    assert one.status == "infeasible"
    assert one == other == om.load(tmp_path / "one.json")
    assert hash(one) == hash(other)
