"""Linear inequalities in the text for the proved checker, judged by the fractions of ``plain``."""

from __future__ import annotations

import numpy as np
import plain
import pytest
from optmech_verified.file import checked_text

import optmech as om
from optmech.errors import ProblemError

SOME = np.random.default_rng(0).normal(size=(2, 3, 3))
COVERED = {
    "weights": om.Linear(SOME, upper=[0.5, 1], lower=[-1, -1.5]),
    "fractions": om.Linear([[["1/3", 0, "-1/7"], [1, 0, 0], [0, 0, 0]]], upper="1/10"),
    "equal": om.Linear([[0, 1, 0], [0, 0, 0], [0, 0, 0]], equal="1/10", tolerance="1/1000"),
    "impossible": om.Linear(np.stack([np.eye(3), -np.eye(3)]), upper=[0.5, -1]),
    "mixtures": om.Ratios([0.2], of=[[1, 1, 0]], to=[[0, 0, 1]]),
}


def text_of(stated: om.Constraint) -> str:
    prior = om.Prior(om.Domain("abc"), [0.5, 0.3, 0.2])
    both = [stated, om.DifferentialPrivacy(1)]
    problem = om.Problem(prior, om.distances.hamming(), constraints=both)
    return checked_text(om.solve(problem), "sha256:0")


@pytest.mark.parametrize("name", COVERED)
def test_what_is_covered_is_proved(name: str) -> None:
    assert plain.accepted(text_of(COVERED[name]))


def test_a_tighter_limit_is_refused() -> None:
    text = text_of(COVERED["fractions"])
    assert text.count("most 21 10\n") == 1  # 21 times 1/10
    assert plain.accepted(text.replace("most 21 10\n", "most -21 10\n")) is False


@pytest.mark.parametrize(
    ("stated", "what"),
    [
        (om.Linear([["ln 2", 0, 0]], upper=1, per="secret"), "ln 2"),
        (om.Ratios([0.2], of=[[1, 1, 0]], to=[[0, 0, 1]], reports=["a"]), "some reports"),
    ],
)
def test_what_is_not_covered_is_named(stated: om.Constraint, what: str) -> None:
    with pytest.raises(ProblemError, match=what):
        text_of(stated)
