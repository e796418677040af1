"""A design that is private at every point of a region, as the values that its page displays."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.designs.design import Design
from optmech.designs.notes import about_bounds
from optmech.problem.regions import gradient_in
from optmech.show import figures, words
from optmech.show.figures import measure_constraints
from optmech.show.lattice import border, lattice_of, plane_of_mesh
from optmech.show.reports.payload import (
    Store,
    constraints,
    domain_payload,
    heading,
    number,
    sampler,
)
from optmech.show.words import within_least

Plain = Any

_STEPS = 2**16 - 1
_PLACES = 2000
_TRIANGLES = 20_000


def region_payload(design: Design, name: str, store: Store) -> Plain:
    """Everything that the page says about one design for every point."""
    problem = design.problem
    lead = _lead(design, figures.loss_name(problem))
    alone = len(problem.constraints) == 1
    measured = [] if alone else measure_constraints(problem, design.mechanism)
    out = heading(design, name, lead, about_bounds(design), design.certificate.checks) | {
        "rounding_cost": None,
        "mechanism": None,
        "pairs": [],
        "attack": None,
        "constraints": constraints(problem, measured, []),
        "unproved": design.certificate.outer is None,
        "value": number(design.loss),
    }  # fmt: skip
    for key in ("loss", "bound", "lower_bound", "gap", "total_gap"):
        out[key] = number(getattr(design, key))
    drawn = None if store.light else sampler(design)
    return out | {"region": _region(design, store), "sampler": drawn}


def _lead(design: Design, loss: str) -> str:
    problem, mesh = design.problem, design.region.mesh
    own = gradient_in(problem.statement).index
    promise = problem.constraints[own].promise(problem.space)
    start = (
        f"What is reported is a random one of {words.domain(problem.observables)}, from any point "
        f"of a region of {len(mesh.triangles):,} triangles: {promise}. "
    )
    beside = [
        f"{stated.title}: {stated.promise(problem.space)}"
        for k, stated in enumerate(problem.constraints)
        if k != own
    ]
    if beside:
        start += f"At the places of the prior it also keeps {'; '.join(beside)}. "
    best = f"this one has the least expected loss ({loss})"
    if design.status != "optimal":
        best = f"its expected loss ({loss}) is {within_least(design.loss, design.bound)}"
    outer = "how far that is from the best of all mechanisms is not known"
    if design.certificate.outer is not None:
        outer = (
            f"of all that keep {'these promises' if beside else 'this promise'}, on whatever "
            f"mesh or none, it is {within_least(design.loss, design.lower_bound)}"
        )
    return f"{start}Of all mechanisms on this mesh{' that do' if beside else ''}, {best}; {outer}."


def _region(design: Design, store: Store) -> Plain:
    mesh, problem = design.region.mesh, design.problem
    plane = plane_of_mesh(mesh, problem.prior)
    lattice = lattice_of(design.region)
    low, high = plane.into(np.array([(lattice.x[k], lattice.y[k]) for k in (0, -1)]))
    size = float((high - low).max())
    top = float(lattice.values.max())
    coded = np.rint(np.sqrt(lattice.values / top) * _STEPS)

    def placed(points: Floats) -> str:
        # places of the prior and reports may lie outside of the region, and are then left out
        return store.put(np.rint((plane.into(points) - low) / size * _STEPS), "u16")

    places = problem.secrets.require_points("draw them")
    weights = problem.prior.weights
    heaviest = np.argsort(-weights, kind="stable")[:_PLACES]
    drawn = np.sort(heaviest[weights[heaviest] > 0])
    triangles = mesh.triangles if len(mesh.triangles) <= _TRIANGLES else mesh.triangles[:0]
    return {
        "origin": [float(low[0]), float(low[1])],
        "width": float(high[0] - low[0]),
        "height": float(high[1] - low[1]),
        "size": size,
        "unit": plane.unit,
        "degrees": plane.degrees,
        "stretch": list(plane.stretch),
        "border": placed(border(mesh)),
        "vertices": placed(mesh.vertices) if len(triangles) else None,
        "triangles": store.put(triangles, "u32") if len(triangles) else None,
        "places": placed(places[drawn]),
        "weights": store.put(weights[drawn], "f32"),
        "placesLeftOut": int(np.count_nonzero(weights) - len(drawn)),
        "reports": domain_payload(problem.observables, store),
        "start": plane.into(places[[_telling(places, weights)]])[0].tolist(),
        "field": {
            # square roots of the shares of the largest probability, report by report
            "values": store.put(np.moveaxis(coded, 2, 0), "u16"),
            "columns": len(lattice.x),
            "rows": len(lattice.y),
            "top": top,
            "error": replace(lattice, values=(coded / _STEPS) ** 2 * top).error(design.region),
        },
    }


def _telling(places: Floats, weights: Floats) -> int:
    """The heaviest place; of equal ones that nearest to the middle."""
    away = np.linalg.norm(places - weights @ places / weights.sum(), axis=1)
    return int(np.lexsort((away, -weights))[0])
