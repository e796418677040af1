"""Problems, released numbers, multipliers and claims as plain JSON values, and back: what design
files are made of."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optmech.base.arrays import Floats, finite_array
from optmech.certificate import Multipliers
from optmech.certificate.bound import pairs_of
from optmech.certificate.families import known
from optmech.certificate.families.base import WHERE, dense, indices, numbers, sparse
from optmech.certificate.families.ratio import decode_pairs, everywhere, shared_out
from optmech.certificate.statement import Statement
from optmech.certificate.variance import PieceProof, VarianceProof
from optmech.designs.promise import Approximation
from optmech.errors import ProblemError, described
from optmech.exact.arguments import require_keys, text
from optmech.exact.codec import Codec, is_same, listing, one_of, record, within
from optmech.exact.numerators import Numerators, decode_rows, encode_rows
from optmech.problem import MaximizeDistortion, MinimizeLeakage, MinimizeVariance, Problem
from optmech.problem.constraint import load_constraint, write_constraint
from optmech.problem.fields import Plain
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.labels import decode_label, encode_label
from optmech.spaces.prior import Prior
from optmech.spaces.tables import LOSSES, table

if TYPE_CHECKING:
    from optmech.designs.design import OuterProof


def encode_numerators(released: Numerators) -> Plain:
    """``{"bits": k, "rows": [[[o, ...], ["1f", ...]], ...]}``."""
    return {"bits": released.bits, "rows": encode_rows(released.rows)}


def decode_numerators(plain: Plain, statement: Statement) -> Numerators:
    """Read ``encode_numerators``; raises ProblemError unless they are the rows of a mechanism."""
    require_keys(plain, {"bits", "rows"}, "mechanism")
    if type(plain["bits"]) is not int or len(plain["rows"]) != statement.rows:
        raise ProblemError(f"needs whole bits and {statement.rows} rows", where="mechanism")
    rows = decode_rows(plain["rows"], statement.observables, "mechanism")
    return Numerators(plain["bits"], rows)


def encode_problem(problem: Problem) -> Plain:
    """The problem with every distance written out as matrices."""
    objective: Plain = problem.objective
    if not isinstance(problem.objective, str):
        objective = problem.objective.plain(problem.space)
    loss_name = problem.space.loss_name(problem.loss)
    return {
        "title": problem.title,
        "secrets": encode_domain(problem.secrets),
        "observables": encode_domain(problem.observables),
        "prior": problem.prior.weights.tolist(),
        "loss": problem.loss_matrix.tolist(),
        **({} if loss_name is None else {"loss_name": loss_name}),
        "objective": objective,
        "constraints": [write_constraint(stated, problem.space) for stated in problem.constraints],
    }


def decode_problem(plain: Plain) -> Problem:
    """Read what ``encode_problem`` wrote; raises ProblemError or KeyError on anything else.

    What ``encode_problem`` would write differently is refused: every reader of the file then
    sees the same numbers.
    """
    problem = _decoded(plain)
    if not is_same(encode_problem(problem), _with_units(plain, problem)):
        raise ProblemError("is not written the way a design's problem is", where="problem")
    return problem


def _with_units(plain: Plain, problem: Problem) -> Plain:
    """Longitudes and latitudes may be written without a unit: km are meant."""
    out = dict(plain)
    for side, domain in (("secrets", problem.secrets), ("observables", problem.observables)):
        if plain[side].get("coordinates") == "lonlat":
            out[side] = {**plain[side], "unit": domain.unit}
    return out


def _decoded(plain: Plain) -> Problem:
    # before a few bytes become millions of cells
    for side, count in (("secrets", len(plain["prior"])), ("observables", len(plain["loss"][0]))):
        rows, columns = plain[side].get("grid", (count, 1))
        if rows * columns != count:
            raise ProblemError(f"a grid of {rows} x {columns} is not of {count}", where=side)
    secrets = decode_domain(plain["secrets"])
    observables = decode_domain(plain["observables"])
    prior = Prior(secrets, plain["prior"])
    values = finite_array(plain["loss"], where="loss", ndim=2)
    space = Space(prior, observables, values)
    objective = plain["objective"]
    if isinstance(objective, dict):
        objective = _goal_of(objective).load(objective, space)
    loss: Distance | Floats = values
    if "loss_name" in plain:
        if plain["loss_name"] not in LOSSES:
            raise ProblemError(f"{plain['loss_name']!r} cannot be computed again", where="loss")
        loss = table(plain["loss_name"], [(secrets, observables, values)], LOSSES)
    return Problem(
        prior=prior,
        loss=loss,
        observables=observables,
        objective=objective,
        constraints=[load_constraint(item, space) for item in plain["constraints"]],
        title=str(plain["title"]),
    )


def _goal_of(plain: Plain) -> type[MaximizeDistortion | MinimizeLeakage | MinimizeVariance]:
    """The objective that has these entries."""
    if "statistic" in plain:
        return MinimizeVariance
    return MinimizeLeakage if "gain" in plain else MaximizeDistortion


def encode_domain(domain: Domain) -> Plain:
    if type(domain) is Grid:
        return {
            "grid": [domain.rows, domain.columns],
            "cell": list(domain.cell),
            "origin": list(domain.origin),
            "unit": domain.unit,
            "bounds": None if domain.bounds is None else list(domain.bounds),
        }
    out: Plain = {
        "labels": [encode_label(label) for label in domain.labels],
        "points": None if domain.points is None else domain.points.tolist(),
        "unit": domain.unit,
        "coordinates": domain.coordinates,
    }
    if domain.outlines is not None:
        out["outlines"] = [[ring.tolist() for ring in rings] for rings in domain.outlines]
    return out


def decode_domain(plain: Plain) -> Domain:
    """The domain; raises ProblemError where it is none, or cells are not those of its bounds."""
    if type(plain["unit"]) is not str:
        raise ProblemError(f"{plain['unit']!r} is not a text", where="unit")
    if plain.get("coordinates") == "lonlat" and plain["unit"] not in ("", "km"):
        raise ProblemError("distances on the globe are in km", where="unit")
    if "grid" in plain:
        rows, columns = plain["grid"]
        box = plain["bounds"]
        if box is not None:
            proper = Grid.geographic(rows, columns, box)
            same = np.allclose(proper.cell, plain["cell"], rtol=1e-12, atol=0)
            if not same or (plain["unit"], plain["origin"]) != ("km", [0.0, 0.0]):
                raise ProblemError(
                    f"a grid over these degrees has cells of {proper.cell} km", where="bounds"
                )
        return Grid(
            rows, columns, plain["cell"], unit=plain["unit"], origin=plain["origin"], bounds=box
        )
    return Domain(
        [decode_label(label) for label in plain["labels"]],
        plain["points"],
        plain["unit"],
        coordinates=plain["coordinates"],
        outlines=plain.get("outlines"),
    )


_LISTS = ("windowed", "lifted", "approximate", "divergence", "distortion", "loss_limits")
_JOINT = "ratio"


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
    if multipliers.variance is not None:
        return {**out, "objective": encode_variance(multipliers.variance)}
    return {**out, "objective": None if objective is None else sparse(np.atleast_2d(objective))}


def encode_outer(outer: OuterProof) -> Plain:
    """The proof of a bound from a coarser problem: the cells that make it, its multipliers, and
    what proves its numbers."""
    return {
        "cells": None if outer.cells is None else outer.cells.tolist(),
        "multipliers": encode_multipliers(outer.multipliers, outer.statement),
        **({} if outer.witness is None else outer.witness.plain()),
    }


def decode_multipliers(plain: Plain, statement: Statement) -> Multipliers:
    """Read ``encode_multipliers``; indices and shapes are checked against the statement."""
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
    own = tuple(found.get(place) for place in range(len(families)))
    if statement.survey is not None and plain["objective"] is not None:
        return Multipliers(own, variance=decode_variance(plain["objective"], statement))
    return Multipliers(own, _objective(plain, statement))


def encode_variance(proof: VarianceProof) -> Plain:
    """How reports are counted, and what bounds the variance of every mechanism."""
    return {
        **{name: getattr(proof, name).tolist() for name in _PROOF},
        "pairs": proof.pairs.ravel().tolist(),
        "pieces": [
            {
                "form": piece.form,
                "rows": piece.rows.ravel().tolist(),
                "weight": piece.weight.tolist(),
                **{k: own for k in _OF if (own := getattr(piece, k)) is not None},
            }
            for piece in proof.pieces
        ],
        **({"charges": proof.charges.tolist()} if len(proof.charges) else {}),
    }


_PROOF = ("estimate", "population", "inverse", "prices")
_OF = ("label", "guess")
_FORMS = ("cone", "levels", "rays", "empty")


def decode_variance(plain: Plain, statement: Statement) -> VarianceProof:
    """Read what ``encode_variance`` wrote. Raises ProblemError where shapes or types do not fit."""
    require_keys(plain, {*_PROOF, "pairs", "pieces"}, WHERE, optional="charges")
    n, m = statement.secrets, statement.observables
    found: dict[str, Any] = {name: numbers(plain[name], n) for name in ("population", "prices")}
    for name, columns in (("estimate", m), ("inverse", n)):
        if type(plain[name]) is not list or len(plain[name]) != n:
            raise ProblemError(f"{name} has not a row for every secret", where=WHERE)
        found[name] = np.array([numbers(row, columns) for row in plain[name]])
    pairs = indices(plain["pairs"], n)
    if type(plain["pieces"]) is not list or len(pairs) % 2:
        raise ProblemError("pieces are no list, or a pair is incomplete", where=WHERE)
    found["pairs"] = pairs.reshape(-1, 2)
    if "charges" in plain:
        found["charges"] = numbers(plain["charges"])
    return VarianceProof(**found, pieces=tuple(_piece(part, n, m) for part in plain["pieces"]))


def _piece(part: Plain, n: int, m: int) -> PieceProof:
    own = [key for key in _OF if type(part) is dict and key in part]
    require_keys(part, {"form", "rows", "weight", *own}, WHERE)
    of = {key: int(indices([part[key]], m if key == "label" else n)[0]) for key in own}
    form = part["form"]
    if form not in _FORMS:
        raise ProblemError("a piece is of no known form", where=WHERE)
    rows = indices(part["rows"], n + (n if "guess" in of else form == "levels"))
    weight = numbers(part["weight"])
    if len(rows) != 4 * len(weight):
        raise ProblemError("lists of a piece have different lengths", where=WHERE)
    return PieceProof(form, rows.reshape(-1, 4), weight, **of)


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
        return dense(given, (1, statement.loss_terms))[0]
    assert statement.target is not None
    return dense(given, (statement.observables, len(statement.target)))


class StatedResult(NamedTuple):
    """The claims of a file; figures are nan where they are null, as nothing is feasible."""

    status: str
    objective: float
    bound: float
    loss: float
    lower_bound: float
    engine: str
    engine_reason: str
    seconds: float
    rounding_cost: float
    reason: str
    notes: tuple[str, ...]
    approximations: tuple[Approximation, ...]

    @property
    def figures(self) -> tuple[float, float, float, float]:
        """All of ``Figures`` but for the gap."""
        return self.objective, self.bound, self.loss, self.lower_bound


def _number(
    name: str, kinds: tuple[type, ...] = (int, float), empty: float | None = None
) -> Codec[float]:
    """A finite number of these types; null for one that is not finite, where ``empty`` is that."""

    def read(plain: Plain) -> float:
        if plain is None and empty is not None:
            return empty
        if type(plain) not in kinds or not math.isfinite(plain):
            raise ProblemError(
                f"{name} is {described(plain)} and not a finite number", where="result"
            )
        return float(plain)

    return Codec(lambda value: float(value) if math.isfinite(value) else None, read)


_FIGURE = partial(_number, kinds=(float,), empty=math.nan)
_TEXT = Codec(str, partial(text, where="result"))
_APPROXIMATION = record(
    partial(Approximation, repaired=None),
    "approximations",
    constraint=within("constraint"),
    promised_epsilon=_number("promised_epsilon"),
    epsilon=_number("epsilon", empty=math.inf),
    repaired_loss=_number("repaired_loss", empty=math.nan),
)
_RESULT = record(
    StatedResult,
    "result",
    status=one_of("status", ("optimal", "feasible", "infeasible")),
    objective=_FIGURE("objective"),
    bound=_FIGURE("bound"),
    loss=_FIGURE("loss"),
    lower_bound=_FIGURE("lower_bound"),
    engine=_TEXT,
    engine_reason=_TEXT,
    seconds=_number("seconds"),
    rounding_cost=_number("rounding_cost"),
    reason=_TEXT,
    notes=listing(_TEXT),
    approximations=listing(_APPROXIMATION),
)
encode_result = _RESULT.write


def decode_result(plain: Plain, released: bool) -> StatedResult:
    """The claims of a file with a mechanism (``released``) or without one. Raises ProblemError
    where an entry is missing, unknown, of a wrong type or out of range."""
    found: StatedResult = _RESULT.read(plain)
    fits = (
        released == (found.status != "infeasible")
        and found.seconds >= 0
        and (released or not found.approximations)
        and (not released or (found.lower_bound >= 0 and not any(map(math.isnan, found.figures))))
    )
    if not fits:
        raise ProblemError("does not fit the mechanism, or has numbers below 0", where="result")
    return found
