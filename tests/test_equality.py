"""Problems are equal where they ask the same, exactly; modules show what is public."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
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
