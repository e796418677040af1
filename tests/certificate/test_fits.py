"""Fields of families that state nothing of the kind: the certificate proves nothing of them."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from each import each

import optmech as om
from optmech.base.read_only import read_only
from optmech.certificate import Multipliers, check_exact, families, lower_bound
from optmech.certificate.families import known, trusted
from optmech.certificate.statement import Statement
from optmech.exact.number import Exact
from optmech.exact.numerators import Numerators

ONE, LESS = Exact(Fraction(1)), Exact(Fraction(-1))
ZERO = Fraction()
UNIT, ROWS = np.eye(3), np.full((1, 3), 1 / 3)
SPARSE = sp.csr_array(ROWS)
HAMMING = 1 - UNIT
PLAIN = om.Problem(om.Prior.uniform(om.Domain.range(3)), om.distances.hamming()).statement
SAME = Numerators(2, ((4, 0, 0),) * 3)

SOUND = [
    families.Ratio(0, ONE, HAMMING),
    families.Ratio(0, ONE, np.where(HAMMING > 0, 1.0, np.inf), HAMMING > 0),
    families.LiftedRatio(0, ROWS, ROWS, np.ones(1), ONE, np.ones(1)),
    families.Approximate(0, SPARSE, SPARSE, np.ones(1), ONE, ONE, np.ones(1)),
    families.Divergence(0, "kl", ROWS, ROWS, np.ones(1), ONE, np.ones(1)),
    families.Distortion(0, HAMMING / 3, Exact(Fraction(1, 9)), HAMMING, np.full(3, 1 / 3)),
    families.LossLimit(0, HAMMING * PLAIN.prior[:, None], ONE, False, HAMMING),
    families.LossLimit(0, HAMMING, ONE, True, HAMMING),
    families.Support(0, np.ones((3, 3), dtype=bool)),
    families.Leakage(0, UNIT / 3, ONE, False, UNIT, np.full(3, 1 / 3)),
    families.Information(0, np.full(3, 1 / 3), ONE),
    families.Bias(0, np.array([-1.0, 0.0, 2.0]), np.array([-1.0, 0.0, 2.0]), ONE),
    families.Fixed(0, np.array([0, 2]), Numerators(1, ((2, 0, 0), (1, 1, 0))), ("a", "c")),
    families.Linear(0, 3, sp.csr_array(np.ones((1, 9))), ((2, ONE),), (None,), (ONE,), (ZERO,)),
]  # fmt: skip
DOUBLED = sp.csr_array((np.ones(2) / 2, np.zeros(2, dtype=int), [0, 2]), shape=(1, 3))


def stating(family: object) -> Statement:
    return replace(PLAIN, families=(family,))


@pytest.mark.parametrize("family", SOUND, ids=lambda f: f.kind)
def test_families_of_constraints_fit(family: object) -> None:
    assert known(stating(family)) == (family,)


@each(
    ("place", "field", "value"),
    [
        (0, "distance", -HAMMING),  # equal rows satisfy any ratio of at least one, and no other
        (0, "distance", np.full((3, 3), np.nan)),  # not "without a limit"
        (0, "distance", np.full((3, 3), -np.inf)),
        (0, "distance", np.ones((2, 2))),
        (0, "distance", [[0.0] * 3] * 3),
        (0, "distance", np.ones((3, 3), dtype=int)),
        (0, "epsilon", 1.0),
        (0, "epsilon", LESS),
        (0, "epsilon", Exact(Fraction(1), Fraction(1, 2))),
        (1, "window", np.ones((3, 2), dtype=bool)),
        (1, "window", np.ones((3, 3))),
        (2, "left", -ROWS),
        (2, "right", 0 * ROWS),
        (2, "right", np.ones((1, 2))),
        (2, "left", np.full((1, 3), np.nan)),
        (2, "scale", np.full(1, -1.0)),
        (2, "scale", np.full(1, np.inf)),
        (2, "scale", np.ones(2)),
        (3, "delta", LESS),
        (3, "left", DOUBLED),
        (3, "left", sp.csr_array((1, 3))),
        (3, "scale", np.ones(2)),
        (4, "name", "renyi"),
        (4, "limit", np.zeros(1)),
        (5, "weighted", HAMMING),  # decided by one array and charged by another
        (5, "minimum", 0.1),
        (5, "prior", -np.ones(3)),
        (6, "weighted", HAMMING),
        (6, "loss", -HAMMING),
        (7, "weighted", 2 * HAMMING),
        (7, "maximum", LESS),
        (8, "allowed", np.full((3, 3), 0.5)),
        (8, "allowed", None),
        (9, "gain", np.full((3, 3), np.nan)),
        (9, "gain", np.zeros((0, 3))),
        (9, "weights", -np.ones(3)),
        (9, "weighted", UNIT),
        (9, "natural", 1),
        (9, "maximum", 0.5),
        (10, "maximum", Exact(Fraction(0))),
        (10, "prior", np.zeros(3)),
        (10, "prior", np.ones(2)),
        (11, "maximum", Exact(Fraction(0))),
        (11, "reported", np.ones(2)),
        (11, "meant", np.full(3, np.nan)),
        (12, "secrets", np.array([2, 0])),
        (12, "secrets", np.array([0, 0])),
        (12, "secrets", np.array([0, 3])),
        (12, "secrets", np.array([-1, 2])),
        (12, "secrets", np.array([0.0, 2.0])),
        (12, "secrets", np.array([0])),
        (12, "secrets", np.zeros(0, dtype=np.int64)),
        (12, "exact", Numerators(1, ((2, 0), (1, 1)))),
        (12, "exact", np.eye(2)),
        (12, "names", ("a",)),
    ],
)
def test_fields_that_cannot_be_meant_are_refused(place: int, field: str, value: object) -> None:
    statement = stating(replace(SOUND[place], **{field: value}))
    for use in (
        lambda: known(statement),
        lambda: check_exact(statement, SAME),
        lambda: lower_bound(statement, Multipliers()),
    ):
        with pytest.raises(om.VerificationError, match="states no inequalities"):
            use()


def test_a_family_cannot_take_the_name_of_another() -> None:
    class Mine(families.Ratio):
        pass

    with pytest.raises(TypeError, match="two families are called 'ratio'"):
        trusted(Mine)
    with pytest.raises(om.VerificationError, match="does not know Mine"):
        known(stating(Mine(0, ONE, HAMMING)))


def test_nobody_writes_to_a_statement_through_another_array() -> None:
    base = np.array(HAMMING)
    seen = base.view()
    seen.setflags(write=False)
    family = families.Ratio(0, ONE, seen)
    base[0, 1] = 9.0
    assert family.distance[0, 1] == 1.0
    kept = read_only(base)
    assert read_only(kept) is kept


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_are_read_only_too(copied: object) -> None:
    statement = copied(stating(SOUND[3]))
    family = statement.families[0]
    for array in (statement.prior, statement.loss, family.scale, family.left.data):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0
