"""Problems as plain JSON values, and back."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError
from optmech.problem.constraints import (
    Constraint,
    DifferentialPrivacy,
    DistortionPrivacy,
    DistributionPrivacy,
    LossBound,
    MaximizeDistortion,
    MetricPrivacy,
    Support,
)
from optmech.problem.problem import Problem
from optmech.spaces.distances import Distance, distance_name, evaluate
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.losses import loss_matrix
from optmech.spaces.prior import Prior
from optmech.spaces.tabulated import NAMED, misnamed, table

Plain = Any


def encode_problem(problem: Problem) -> Plain:
    """The problem with every distance written out as matrices."""
    coder = _Encoder(problem)
    objective: Plain = problem.objective
    if isinstance(problem.objective, MaximizeDistortion):
        objective = {
            "distance": coder.distance(problem.objective.distance),
            "prior": coder.prior(problem.objective.prior),
        }
    return {
        "title": problem.title,
        "secrets": encode_domain(problem.secrets),
        "observables": encode_domain(problem.observables),
        "prior": problem.prior.weights.tolist(),
        "loss": problem.loss_matrix.tolist(),
        **coder.loss_name(problem.loss, problem.loss_matrix),
        "objective": objective,
        "constraints": [coder.constraint(constraint) for constraint in problem.constraints],
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
    decoder = _Decoder(secrets, observables, prior)
    objective = plain["objective"]
    if isinstance(objective, dict):
        objective = MaximizeDistortion(
            decoder.distance(objective["distance"]), decoder.prior_of(objective["prior"])
        )
    values = finite_array(plain["loss"], where="loss", ndim=2)
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
        constraints=[decoder.constraint(item) for item in plain["constraints"]],
        title=str(plain["title"]),
    )


class _Encoder:
    def __init__(self, problem: Problem) -> None:
        self.secrets, self.observables = problem.secrets, problem.observables

    def distance(self, distance: Distance, reach: bool = False) -> Plain:
        values = evaluate(distance, self.secrets, self.secrets, where="distance")
        tables = [(self.secrets, values)]
        out: Plain = {"name": "", "secrets": values.tolist()}
        if reach:
            across = evaluate(distance, self.secrets, self.observables, where="distance")
            out["observables"] = across.tolist()
            tables.append((self.observables, across))
        out["name"] = self._name(distance, tables)
        return out

    def _name(self, distance: object, tables: list[tuple[Domain, Floats]]) -> str:
        """The name to write: never that of another distance."""
        name = distance_name(distance)
        try:
            wrong = any(misnamed(name, self.secrets, to, values) for to, values in tables)
        except ProblemError:
            wrong = True
        return "given" if wrong else name

    def loss_name(self, loss: Distance | Floats, values: Floats) -> dict[str, str]:
        """The loss's name, where it is a distance that a reader can compute again."""
        name = self._name(loss, [(self.observables, values)]) if callable(loss) else ""
        return {"loss_name": name} if name in NAMED else {}

    def prior(self, prior: Prior | None) -> Plain:
        return None if prior is None else prior.weights.tolist()

    def constraint(self, constraint: Constraint) -> Plain:
        match constraint:
            case MetricPrivacy():
                return {
                    "kind": "metric_privacy",
                    "epsilon": constraint.epsilon.text,
                    "distance": self.distance(
                        constraint.distance, constraint.observable_threshold is not None
                    ),
                    "threshold": constraint.threshold,
                    "observable_threshold": constraint.observable_threshold,
                    "delta": constraint.delta.text,
                }
            case DifferentialPrivacy():
                return {
                    "kind": "differential_privacy",
                    "epsilon": constraint.epsilon.text,
                    "adjacency": self._adjacency(constraint),
                    "delta": constraint.delta.text,
                }
            case DistortionPrivacy():
                return {
                    "kind": "distortion_privacy",
                    "minimum": constraint.minimum.text,
                    "distance": self.distance(constraint.distance),
                    "prior": self.prior(constraint.prior),
                }
            case DistributionPrivacy():
                return {
                    "kind": "distribution_privacy",
                    "epsilon": constraint.epsilon.text,
                    "pairs": [[a.tolist(), b.tolist()] for a, b in constraint.pairs],
                    "delta": constraint.delta.text,
                    "divergence": constraint.divergence,
                    "scale": None if constraint.scale is None else list(constraint.scale),
                }
            case LossBound():
                loss = None
                if constraint.loss is not None:
                    loss = loss_matrix(
                        constraint.loss, self.secrets, self.observables, where="loss"
                    ).tolist()
                return {
                    "kind": "loss_bound",
                    "maximum": constraint.maximum.text,
                    "worst_case": constraint.worst_case,
                    "loss": loss,
                }
            case Support():
                mask = constraint.mask
                if mask is None:
                    assert constraint.distance is not None
                    reach = evaluate(
                        constraint.distance, self.secrets, self.observables, where="distance"
                    )
                    mask = reach <= (constraint.radius or 0.0)
                return {"kind": "support", "mask": mask.astype(int).tolist()}
            case _:
                raise ProblemError(
                    f"a {type(constraint).__name__} cannot be written to a file",
                    where="constraints",
                    remedy="Use the constraints of optmech",
                )

    def _adjacency(self, constraint: DifferentialPrivacy) -> Plain:
        adjacency = constraint.adjacency
        if adjacency == "all":
            return "all"
        if callable(adjacency[0]):
            distance, radius = adjacency
            return {"distance": self.distance(distance), "radius": radius}
        return [list(pair) for pair in adjacency]


class _Decoder:
    def __init__(self, secrets: Domain, observables: Domain, prior: Prior) -> None:
        self.secrets, self.observables, self.prior = secrets, observables, prior

    def distance(self, plain: Plain) -> Distance:
        # the table of secrets comes first: it is the one meant where both domains are equal
        tables = [(self.secrets, self.secrets, plain["secrets"])]
        if "observables" in plain:
            tables.append((self.secrets, self.observables, plain["observables"]))
        return table(str(plain["name"]), tables)

    def prior_of(self, weights: Plain) -> Prior | None:
        return None if weights is None else Prior(self.secrets, weights)

    def constraint(self, plain: Plain) -> Constraint:
        make: dict[str, Callable[[Plain], Constraint]] = {
            "metric_privacy": lambda p: MetricPrivacy(
                p["epsilon"],
                self.distance(p["distance"]),
                p["threshold"],
                p["observable_threshold"],
                p["delta"],
            ),
            "differential_privacy": lambda p: DifferentialPrivacy(
                p["epsilon"], self._adjacency(p["adjacency"]), p["delta"]
            ),
            "distortion_privacy": lambda p: DistortionPrivacy(
                p["minimum"], self.distance(p["distance"]), self.prior_of(p["prior"])
            ),
            "distribution_privacy": lambda p: DistributionPrivacy(
                p["epsilon"],
                [(a, b) for a, b in p["pairs"]],
                p["delta"],
                p["divergence"],
                p["scale"],
            ),
            "loss_bound": lambda p: LossBound(p["maximum"], p["worst_case"], p["loss"]),
            "support": lambda p: Support(p["mask"]),
        }
        return make[plain["kind"]](plain)

    def _adjacency(self, plain: Plain) -> Any:
        if isinstance(plain, dict):
            return (self.distance(plain["distance"]), plain["radius"])
        return plain if plain == "all" else [tuple(pair) for pair in plain]


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
        "labels": [_encode_label(label) for label in domain.labels],
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
        return Grid(rows, columns, plain["cell"], plain["unit"], plain["origin"], box)
    return Domain(
        [_decode_label(label) for label in plain["labels"]],
        plain["points"],
        plain["unit"],
        plain["coordinates"],
        plain.get("outlines"),
    )


def _encode_label(label: Hashable) -> Plain:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [_encode_label(part) for part in label]
    if label is None or isinstance(label, str | int | float | bool):
        if isinstance(label, float) and not math.isfinite(label):
            raise ProblemError(f"label {label!r} is not finite", where="labels")
        return label
    raise ProblemError(
        f"label {label!r} cannot be written to a file",
        where="labels",
        remedy="Use strings, numbers, or tuples of them",
    )


def _decode_label(plain: Plain) -> Hashable:
    return tuple(_decode_label(part) for part in plain) if isinstance(plain, list) else plain
