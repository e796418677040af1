"""A statement with inequalities that the certificate does not know is refused, not half checked;
and what it states cannot be changed behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from conformance.problems import KINDS, Make
from each import each

import optmech as om
from optmech.certificate import Multipliers, check_exact, infeasibility_margin, lower_bound
from optmech.certificate.bound import closed_form_reason, multiplier_reason, support_reason
from optmech.certificate.check import Check
from optmech.certificate.families import FAMILIES, Ratio, trusted
from optmech.certificate.statement import Statement
from optmech.designs.encoding import decode_multipliers, encode_multipliers, encode_problem
from optmech.exact.numerators import Numerators
from optmech.lp.inequalities import Inequalities

H = om.distances.hamming()
STATED = om.Problem(
    om.Prior.uniform(om.Domain.range(3)), H, constraints=[om.DifferentialPrivacy(1.0)]
)
PLAIN = encode_multipliers(Multipliers(), STATED.statement)


class Cube(Ratio):
    """A ratio that promises more than its arrays say, and lets everything pass."""

    def decide(self, statement: Statement, low: Numerators, high: Numerators) -> Check:
        return Check("ratio", self.index, 1, True, 0.0, "")


class Stranger:
    """A family without the certificate's side, under a name of its own."""

    kind = "stranger"
    index = 0

    def signature(self) -> str:
        return self.kind

    def forced_zeros(self, zero: np.ndarray) -> np.ndarray:
        return zero

    def pair_limits(self) -> None:
        return None


class Disguised(Stranger):
    """The same under the name of a family that is known."""

    kind = "ratio"


@dataclass(frozen=True, eq=False)
class More(Statement):
    """A statement with one part more."""

    cubes: tuple[Any, ...] = (1,)


def cube() -> Statement:
    (ratio,) = STATED.statement.families
    values = {field.name: getattr(ratio, field.name) for field in fields(ratio)}
    return replace(STATED.statement, families=(Cube(**values),))


def stranger() -> Statement:
    return replace(STATED.statement, families=(*STATED.statement.families, Stranger()))


def disguised() -> Statement:
    return replace(STATED.statement, families=(*STATED.statement.families, Disguised()))


def more() -> Statement:
    given = STATED.statement
    return More(given.prior, given.loss, given.objective, given.families)


def goal() -> Statement:
    return replace(STATED.statement, objective="least_squares")


ENTRANCES: dict[str, Callable[[Statement], object]] = {
    "check": lambda s: check_exact(s, Numerators.rounded(np.full((3, 3), 1 / 3))),
    "bound": lambda s: lower_bound(s, Multipliers()),
    "margin": lambda s: infeasibility_margin(s, Multipliers()),
    "closed form": closed_form_reason,
    "support": support_reason,
    "infeasible": lambda s: multiplier_reason(s, Multipliers()),
    "encode": lambda s: encode_multipliers(Multipliers(), s),
    "decode": lambda s: decode_multipliers(PLAIN, s),
    "search": Inequalities.of,
}


@each("enter", ENTRANCES.values(), ids=ENTRANCES)
@each(
    ("make", "words"),
    [
        (cube, "Cube"),
        (stranger, "Stranger"),
        (disguised, "Disguised"),
        (more, "statement: More"),
        (goal, "objective: 'least_squares'"),
    ],
)
def test_every_entrance_refuses_it(
    make: Callable[[], Statement], words: str, enter: Callable[[Statement], object]
) -> None:
    with pytest.raises(om.VerificationError, match=f"does not know {words}"):
        enter(make())


def test_a_family_that_lacks_a_method_is_not_registered() -> None:
    class Half(Stranger):
        __abstractmethods__ = frozenset({"decide", "charge"})

    with pytest.raises(TypeError, match="Half lacks charge, decide"):
        trusted(Half)
    assert "stranger" not in FAMILIES


def test_a_constraint_that_has_no_words_is_not_written() -> None:
    problem = om.Problem(STATED.prior, H, constraints=[om.DifferentialPrivacy(1.0)])
    object.__setattr__(problem, "constraints", (object(),))
    with pytest.raises(om.ProblemError, match="cannot be written"):
        encode_problem(problem)


def arrays(value: object) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, sp.csr_array):
        yield from (value.data, value.indices, value.indptr)
    elif isinstance(value, tuple):
        for part in value:
            yield from arrays(part)
    elif is_dataclass(value):
        for field in fields(value):
            yield from arrays(getattr(value, field.name))


@each("make", KINDS, ids=lambda make: make.__name__)
def test_nothing_stated_can_be_written_to(make: Make) -> None:
    statement = make(np.random.default_rng(3)).statement
    found = list(arrays(statement))
    assert len(found) >= 2
    found += [statement.allowed, statement.log_ratio, statement.cost]
    for family in statement.families:
        found += [*arrays(getattr(family, "factors", ())), *arrays(family.pair_limits())]
    for values in found:
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0


def test_a_callers_array_stays_the_callers() -> None:
    loss = np.ones((3, 3))
    problem = om.Problem(STATED.prior, loss, constraints=[om.DifferentialPrivacy(1.0)])
    loss[:] = 5.0
    assert problem.statement.loss.max() == 1.0
