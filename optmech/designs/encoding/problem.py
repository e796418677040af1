"""Problems as plain JSON values, and back."""

from __future__ import annotations

import json

import numpy as np

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError
from optmech.problem import MaximizeDistortion, MinimizeLeakage, Problem
from optmech.problem.constraint import load_constraint, write_constraint
from optmech.problem.fields import Plain
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.labels import decode_label, encode_label
from optmech.spaces.prior import Prior
from optmech.spaces.tabulated import NAMED, table


def encode_problem(problem: Problem) -> Plain:
    """The problem with every distance written out as matrices."""
    objective: Plain = problem.objective
    if isinstance(problem.objective, MaximizeDistortion | MinimizeLeakage):
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
    """The inverse of ``encode_problem``; raises ProblemError or KeyError on anything else.

    What ``encode_problem`` would write differently is refused: every reader of the file then
    sees the same numbers.
    """
    problem = _decoded(plain)
    # as text, where true is not 1
    if _text(encode_problem(problem)) != _text(_with_units(plain, problem)):
        raise ProblemError("is not written the way a design's problem is", where="problem")
    return problem


def _with_units(plain: Plain, problem: Problem) -> Plain:
    """Longitudes and latitudes may be written without a unit: km are meant."""
    out = dict(plain)
    for side, domain in (("secrets", problem.secrets), ("observables", problem.observables)):
        if plain[side].get("coordinates") == "lonlat":
            out[side] = {**plain[side], "unit": domain.unit}
    return out


def _text(plain: Plain) -> str:
    return json.dumps(plain, sort_keys=True, allow_nan=False)


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
        goal = MinimizeLeakage if "gain" in objective else MaximizeDistortion
        objective = goal.load(objective, space)
    loss: Distance | Floats = values
    if "loss_name" in plain:
        if plain["loss_name"] not in NAMED:
            raise ProblemError(f"{plain['loss_name']!r} cannot be computed again", where="loss")
        loss = table(plain["loss_name"], [(secrets, observables, values)])
    return Problem(
        prior=prior,
        loss=loss,
        observables=observables,
        objective=objective,
        constraints=[load_constraint(item, space) for item in plain["constraints"]],
        title=str(plain["title"]),
    )


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
