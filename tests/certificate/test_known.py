"""A statement with inequalities that the certificate does not know is refused, not half checked."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

import optmech as om
from optmech.certificate import (
    Multipliers,
    check_exact,
    check_matrix,
    infeasibility_margin,
    lower_bound,
)
from optmech.certificate.infeasible import closed_form_reason, support_reason
from optmech.designs.encoding import decode_multipliers, encode_multipliers, encode_problem
from optmech.exact.numerators import Numerators
from optmech.statement.statement import Ratio, Statement

H = om.distances.hamming()
STATED = om.Problem(
    om.Prior.uniform(om.Domain.range(3)), H, constraints=[om.DifferentialPrivacy(1.0)]
)


@dataclass(frozen=True, eq=False)
class More(Statement):
    """A statement with one family more."""

    cubes: tuple[Any, ...] = ()


class Cube(Ratio):
    """A ratio that promises more than its arrays say."""


def more() -> Statement:
    known = {f.name: getattr(STATED.statement, f.name) for f in fields(STATED.statement)}
    return More(**known, cubes=(1,))


def stranger() -> Statement:
    (ratio,) = STATED.statement.ratios
    cube = Cube(**{f.name: getattr(ratio, f.name) for f in fields(ratio)})
    return replace(STATED.statement, ratios=(cube,))


@pytest.mark.parametrize("make", [more, stranger])
def test_every_entrance_refuses_it(make: Any) -> None:
    statement, uniform = make(), np.full((3, 3), 1 / 3)
    for enter in (
        lambda: check_exact(statement, Numerators.rounded(uniform)),
        lambda: check_matrix(statement, uniform),
        lambda: lower_bound(statement, Multipliers()),
        lambda: infeasibility_margin(statement, Multipliers()),
        lambda: closed_form_reason(statement),
        lambda: support_reason(statement),
        lambda: decode_multipliers(encode_multipliers(Multipliers()), statement),
    ):
        with pytest.raises(om.VerificationError, match="does not know"):
            enter()


def test_a_constraint_that_has_no_words_is_not_written() -> None:
    problem = om.Problem(STATED.prior, H, constraints=[om.DifferentialPrivacy(1.0)])
    object.__setattr__(problem, "constraints", (object(),))
    with pytest.raises(om.ProblemError, match="cannot be written"):
        encode_problem(problem)
