"""Multipliers as plain JSON values, and back.

Those of a family are a list, in the order of the statement; an end may be left out. All ratios
without a window have one entry together, or null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.certificate import Multipliers
from optmech.certificate.bound import pairs_of
from optmech.certificate.families import known
from optmech.certificate.families.base import WHERE, dense, sparse
from optmech.certificate.families.ratio import decode_pairs, everywhere, shared_out
from optmech.certificate.statement import Statement
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys, whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from optmech.base.arrays import Ints
    from optmech.designs.design import OuterProof
    from optmech.problem import Problem
    from optmech.reductions.witness import Witness

Plain = Any
_LISTS = ("windowed", "lifted", "approximate", "divergence", "distortion", "loss_limits")
_JOINT = "ratio"
OUTER, WITNESS = {"cells", "multipliers"}, {"plans", "costs"}
"""Entries of the proof of a bound from cells, and those that older files lack."""


def encode_multipliers(multipliers: Multipliers, statement: Statement) -> Plain:
    """Multipliers as plain lists; pairs as index lists. VerificationError where the certificate
    does not know a family of the statement."""
    given = list(multipliers.of(statement))
    joint = pairs_of(statement, multipliers)
    out: dict[str, Plain] = {_JOINT: None}
    if joint is not None:
        out[_JOINT] = given[everywhere(statement)[0]][0].encode(joint, statement)
    for name in _lists(statement):
        own = [pair for pair in given if pair[0].written == name]
        while own and own[-1][1] is None:
            own.pop()
        out[name] = [family.encode(part, statement) for family, part in own]
    objective = multipliers.objective
    return {**out, "objective": None if objective is None else sparse(np.atleast_2d(objective))}


def encode_outer(outer: OuterProof) -> Plain:
    """The proof of a bound from a coarser problem: the cells that make it, its multipliers, and
    what proves its numbers."""
    return {
        "cells": None if outer.cells is None else outer.cells.tolist(),
        "multipliers": encode_multipliers(outer.multipliers, outer.statement),
        **({} if outer.witness is None else outer.witness.plain()),
    }


def decode_outer(
    plain: Plain, problem: Problem, make: Callable[[Ints | None, Witness | None], Problem]
) -> OuterProof:
    """The inverse; ``make`` makes the coarser problem of cells (None for the secrets themselves),
    from what proves its numbers where the file has that."""
    from optmech.designs.design import OuterProof
    from optmech.reductions.witness import read_witness

    witness, more = None, WITNESS & plain.keys()
    require_keys(plain, OUTER | WITNESS if more else OUTER, "outer")
    cells, count = None, len(problem.secrets)
    if plain["cells"] is not None:
        cells = np.array([whole(cell, "outer", 0, count - 1) for cell in plain["cells"]])
        if len(cells) != count:
            raise ProblemError(f"{len(cells)} cells of {count} secrets", where="outer")
    if more:
        if cells is None:
            raise ProblemError("proves numbers of cells that there are not", where="outer")
        witness = read_witness(plain, problem.prior, cells, len(problem.observables))
    statement = make(cells, witness).statement
    multipliers = decode_multipliers(plain["multipliers"], statement)
    return OuterProof(cells, statement, multipliers, witness)


def decode_multipliers(plain: Plain, statement: Statement) -> Multipliers:
    """The inverse; indices and shapes are checked against the statement."""
    # the divergences are absent from files written before there were any
    names = {_JOINT, *_lists(statement), "objective"} - {"divergence"}
    require_keys(plain, names, WHERE, optional="divergence")
    families = known(statement)
    found: dict[int, Any] = {}
    if plain[_JOINT] is not None:
        found.update(shared_out(statement, decode_pairs(plain[_JOINT], statement)))
    for name in _lists(statement):
        places = [k for k, family in enumerate(families) if family.written == name]
        parts = plain.get(name, [])
        if type(parts) is not list or len(parts) > len(places):
            raise ProblemError(f"{name} has too many entries", where=WHERE)
        for place, part in zip(places, parts, strict=False):
            found[place] = families[place].decode(part, statement)
    return Multipliers(
        tuple(found.get(place) for place in range(len(families))), _objective(plain, statement)
    )


def _lists(statement: Statement) -> list[str]:
    """Entries that every file has, and those of the statement's families."""
    own = (family.written for family in known(statement))
    return [name for name in dict.fromkeys([*_LISTS, *own]) if name not in ("", _JOINT)]


def _objective(plain: Plain, statement: Statement) -> Any:
    given = plain["objective"]
    if given is None:
        return None
    if statement.objective == "expected_loss":
        raise ProblemError("an expected loss has no objective weights", where=WHERE)
    if statement.objective == "worst_loss":
        return dense(given, (1, statement.secrets))[0]
    assert statement.target is not None
    return dense(given, (statement.observables, len(statement.target)))
