"""Every kind of constraint is known wherever kinds are listed by hand, and is tried out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracle
import pytest
from optmech_audit import statements

import optmech as om
import problems
from optmech.certificate.families import known
from optmech.files import find_problem, problem_schema
from optmech.files.gallery import gallery_names
from optmech.problem.constraint import kinds
from optmech.reading.source import read_document

STATED = set(kinds())


def test_the_audit_and_the_oracle_know_every_kind() -> None:
    assert set(statements.KINDS) == STATED
    assert set(oracle.KINDS) == STATED


def test_every_kind_is_in_the_conformance_suite_and_in_the_gallery() -> None:
    made = [make(np.random.default_rng(0)) for make in problems.KINDS]
    assert {stated.kind for problem in made for stated in problem.constraints} == STATED
    listed = [read_document(find_problem(name)).get("constraints", []) for name in gallery_names()]
    assert {item["kind"] for items in listed for item in items} == STATED


def test_every_kind_is_public_and_has_a_table_in_problem_files() -> None:
    tables = problem_schema()["$defs"]
    for name, kind in kinds().items():
        assert getattr(om, kind.__name__) is kind
        assert tables[kind.__name__]["properties"]["kind"]["const"] == name


def test_what_is_no_family_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    stated = om.DifferentialPrivacy(1)
    monkeypatch.setattr(om.DifferentialPrivacy, "families", lambda *_: iter(["a promise"]))
    secrets = om.Prior.uniform(om.Domain("ab"))
    with pytest.raises(om.ProblemError, match=r"constraints\[0\]: .* leads to a str"):
        om.Problem(secrets, om.distances.hamming(), constraints=[stated])
    statement = om.Problem(secrets, om.distances.hamming()).statement
    with pytest.raises(om.VerificationError, match="does not know str"):
        known(replace(statement, families=("a promise",)))


def test_a_class_derived_from_a_kind_is_no_kind() -> None:
    """A file would say that its loss is at most 0.01, and no reader would find that it is."""

    class Looser(om.LossBound):
        def families(self, index: int, space: object) -> object:
            return om.LossBound(100).families(index, space)

    secrets = om.Prior.uniform(om.Domain("ab"))
    stated = [Looser(0.01), om.DifferentialPrivacy(1)]
    with pytest.raises(om.ProblemError, match=r"constraints\[0\]: Looser is not a registered kind"):
        om.Problem(secrets, om.distances.hamming(), constraints=stated)
