"""What a packed file states of its design, as data: of its constraints and prior, of its numbers
and places; of one over places, and of one for every point."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np

from optmech.analysis.measures import bayes_vulnerability
from optmech.base.arrays import Floats, Ints
from optmech.certificate import check_exact, values
from optmech.designs.design import Design, mechanism_of
from optmech.designs.encoding import encode_numerators, encode_problem
from optmech.errors import ProblemError
from optmech.exact.exponentials import stated_down, stated_up
from optmech.exact.number import Exact, rounded_up
from optmech.exact.numerators import Numerators
from optmech.exact.ratios.generators import order_of
from optmech.pipeline.mesh_search import strictly_inside as inside_mesh
from optmech.pipeline.search import strictly_inside
from optmech.problem import MetricPrivacy, MinimizeVariance, Problem
from optmech.problem.constraint import Constraint, load_constraint, write_constraint
from optmech.problem.gains import Adversary
from optmech.problem.problem import MaximizeDistortion, MinimizeLeakage
from optmech.problem.promised import Promised, Scope
from optmech.problem.ratios import gradient_in, over_places
from optmech.problem.space import Space
from optmech.repair.mixing import constant_anchors
from optmech.spaces.domain import Domain, Grid, great_circle
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.tables import distance_words
from optmech_devices.packed.cbor import encode
from optmech_devices.packed.few_bits import few_bits, few_bits_inside
from optmech_devices.packed.file import Parts, Table
from optmech_devices.packed.header import Accuracy, Beliefs, Clause, Header, Loss, Value
from optmech_devices.packed.mechanism import PackedMechanism
from optmech_devices.packed.meshes import shape_of, weights_of
from optmech_devices.packed.places import encode_places, reach_of

_COUNTED = {
    "differential_privacy": ("listed", "adjacency"),
    "policy_graph": ("edges", "graph"),
    "distribution_privacy": ("listed", "pairs"),
    "pufferfish": ("listed", "pairs"),
}
"""Of kinds with a list of pairs, what their number is called, and where they are."""


def clauses_of(problem: Problem) -> tuple[Clause, ...]:
    """The constraints as a reader of the design's file has them."""
    return tuple(_clause(given, problem.space) for given in problem.constraints)


def _clause(given: Constraint, space: Space) -> Clause:
    # a distance is called as it is in the file
    stated: Any = load_constraint(write_constraint(given, space), space)
    promised = stated.promised(space)
    delta = getattr(stated, "delta", None)
    return Clause(
        kind=stated.kind,
        scope=_scope(promised, space.secrets),
        pairs=promised.pairs,
        limit=promised.limit,
        measure=promised.measure,
        epsilon=None if promised.epsilon is None else stated_up(promised.epsilon),
        delta=stated_up(delta) if delta is not None and delta > 0 else None,
        bound=None if promised.epsilon is not None else _bound(stated),
        repeats=promised.repeats,
        details=dict(sorted(_details(stated, promised, space).items())),
    )


def _scope(promised: Promised, secrets: Domain) -> Scope:
    """Cells of no grid are written as places."""
    cells = promised.scope == "cells" and not isinstance(secrets, Grid)
    return "places" if cells else promised.scope


def _bound(stated: Any) -> float | None:
    """What a constraint limits, rounded up; what is to be had at least, down."""
    least = getattr(stated, "minimum", None)
    if isinstance(least, Exact):
        return stated_down(least)
    most = getattr(stated, "maximum", getattr(stated, "epsilon", None))
    return stated_up(most) if isinstance(most, Exact) else None


def _details(stated: Any, promised: Promised, space: Space) -> dict[str, Value]:
    """Whatever else the sentence of a constraint needs."""
    found: dict[str, Value] = {}
    name, attribute = _COUNTED.get(stated.kind, ("", ""))
    if name and promised.pairs in ("joined", "listed"):
        found[name] = len(getattr(stated, attribute))
    if promised.pairs == "reached" and stated.threshold is not None:
        found["near"] = float(stated.threshold)
    if isinstance(stated, MetricPrivacy) and stated.leaves_out(space):
        found["finite"] = True
    if getattr(stated, "prior", None) is not None:
        found["other"] = True
    if isinstance(stated, Adversary) and stated.radius is not None:
        found["radius"] = stated_up(stated.radius)
        within = stated.within
        found["within"] = "total variation" if within is None else distance_words(within)
    if stated.kind == "distribution_privacy":
        order = order_of(stated.divergence)
        found["divergence"] = stated.divergence if order is None else "renyi"
        if order is not None:
            found["order"] = rounded_up(order)
        if stated.scale is not None:
            found["scaled"] = True
    elif stated.kind == "renyi_privacy":
        found["order"] = rounded_up(stated.order.factor)
    elif stated.kind == "distortion_privacy":
        found["distance"] = distance_words(stated.distance)
    elif stated.kind == "gain_leakage" and not isinstance(stated.gain, str):
        found["guesses"] = len(stated.gain)
    return found


def beliefs_of(problem: Problem, packed: Mechanism, date: str | None) -> Beliefs:
    """The prior, and how often the best guess of a secret is right."""
    prior = problem.prior
    seen, blind = bayes_vulnerability(packed, prior), float(prior.weights.max())
    return Beliefs(len(problem.secrets), abs(prior.entropy), seen, blind, date)


def objective_of(problem: Problem) -> str:
    """What is optimised."""
    goal = problem.objective
    if isinstance(goal, MinimizeLeakage):
        return "minimize_leakage"
    if isinstance(goal, MinimizeVariance):
        raise ProblemError(
            "is for statistics, which packed files have no word for",
            where="design",
            remedy="Draw reports from the design's own file",
        )
    return "maximize_distortion" if isinstance(goal, MaximizeDistortion) else goal


QUANTILE = 0.95
"""Of the accuracy that goes with a report; what the Geolocation API means by the word."""
_METRES = 1000.0
_MIXTURES = tuple(2.0**-k for k in range(40, 3, -4))
"""Shares of constant mechanisms that are tried where rounding leaves a constraint."""


class Packing:
    """A design that has a mechanism, over places or for every point of a mesh, and what its packed
    file has to say."""

    def __init__(self, design: Design) -> None:
        assert design.exact is not None
        self.design, self.problem, self.exact = design, design.problem, design.exact
        self.statement, self.mesh = design.problem.statement, design.mesh

    def rounded(self, bits: int) -> Numerators | None:
        """Whole numbers over 2^bits that keep every inequality; None where none were found."""
        if self.mesh is not None and self.mesh.is_region:
            return next(filter(self._is_kept, self._rounded_inside(bits)), None)
        released = few_bits(
            self.statement, self.exact.matrix, bits, partial(strictly_inside, self.statement)
        )
        return None if released is None else released.exact

    def _is_kept(self, released: Numerators) -> bool:
        """Whether rounding left what is said of the places beside the promise."""
        return all(check.passed for check in check_exact(self.statement, released))

    def _rounded_inside(self, bits: int) -> Iterator[Numerators]:
        """Whole numbers that keep the promise at every point."""
        promise = gradient_in(self.statement)
        kept = np.flatnonzero(self.statement.allowed.all(axis=0)).tolist()
        for candidate in self._mixed(self.exact.matrix[:, kept], kept):
            found = few_bits_inside(promise.mesh, promise.epsilon, candidate, bits, promise.index)
            if found is not None:
                rows = np.zeros((len(candidate), len(self.problem.observables)), dtype=np.int64)
                rows[:, kept] = found.rows
                yield Numerators(bits, tuple(map(tuple, rows.tolist())))

    def _mixed(self, matrix: Floats, kept: list[int]) -> Iterator[Floats]:
        """The matrix, and where constraints stand beside the promise more and more of constant
        ones in it, which also serve the place that loses most, and then of one that keeps all with
        room: no constant one may keep bounds of the loss beside a least distortion."""
        yield matrix
        places = over_places(self.statement)
        if not places.families:
            return
        anchors = [part[0, kept] for part in constant_anchors(places, self.design.mechanism.matrix)]
        anchors.append(np.eye(len(kept))[places.loss[:, kept].max(axis=0).argmin()])
        for share in _MIXTURES:
            for anchor in anchors:
                yield (1 - share) * matrix + share * anchor
        inside = inside_mesh(self.statement)
        if inside is not None:
            for share in _MIXTURES:
                yield (1 - share) * matrix + share * inside[:, kept]

    def value(self, released: Numerators) -> tuple[Fraction, Fraction]:
        """Bounds of the objective, with its sign."""
        return values.objective(self.statement, released)

    def expected(self, released: Numerators) -> Fraction:
        """Expected loss, or the worst where that is minimised, at most."""
        if self.statement.target_factors is None:
            return self.value(released)[1]
        losses = values.losses(self.statement.loss, released)
        return values.expected(self.statement.prior, losses)

    def increase(self, released: Numerators) -> float:
        """By how much the objective is worse than the design's, relatively, rounded up."""
        low, high = self._own
        change = self.value(released)[1] - low
        if low == 0:
            return 0.0 if change == 0 and high == 0 else math.copysign(math.inf, change)
        return values.rounded_up(change / abs(low if change > 0 else high))

    @cached_property
    def _own(self) -> tuple[Fraction, Fraction]:
        """Bounds of the design's objective."""
        return self.value(self.exact)

    def parts(self, released: Numerators, prior_date: str | None, outside: str) -> Parts:
        """All of the file."""
        table, row_of = table_of(released)
        header = self.header(released, table.columns, prior_date, outside)
        places = self.problem.secrets if self.mesh is None else weights_of(self.mesh)
        return Parts(header, places, self.problem.observables, row_of, table)

    def header(
        self, released: Numerators, columns: Ints, prior_date: str | None, outside: str
    ) -> Header:
        """All that follows from a design and its packed numbers."""
        problem, mesh = self.problem, self.mesh
        drawn = mechanism_of(problem, released)
        snap = None if mesh is None else weights_of(mesh).snap
        packed = self.statement.sign * values.rounded_up(self.value(released)[1])
        before = float(self.design.objective)
        return Header(
            title=problem.title,
            promises=clauses_of(problem),
            prior=beliefs_of(problem, drawn, prior_date),
            loss=Loss(objective_of(problem), before, packed, self.increase(released)),
            design=design_digest(self.design),
            outside=outside,
            reach=reach_of(problem.secrets) if mesh is None else None,
            accuracy=accuracy_of(problem, drawn.matrix[:, columns], columns),
            snap=snap,
        )

    def differs(self, packed: PackedMechanism) -> list[str]:
        """In what a file is about other places than the design."""
        mesh = packed._parts.mesh
        if mesh is None or self.mesh is None:
            if mesh is not self.mesh:
                of_file, of_design = ("places" if of is None else "every point of a mesh"
                                      for of in (mesh, self.mesh))  # fmt: skip
                return [f"the file is about {of_file}, the design about {of_design}"]
            same = same_places(packed.secrets, self.problem.secrets)
            faults = [] if same else ["the secrets are not those of the design"]
        else:
            same = encode(shape_of(mesh)) == encode(shape_of(self.mesh))
            faults = [] if same else ["the mesh is not that of the design"]
        if not same_places(packed.observables, self.problem.observables):
            faults.append("the reports are not those of the design")
        return faults


def table_of(released: Numerators) -> tuple[Table, Ints]:
    """The distinct rows of a matrix, and which one each of its rows is."""
    numbers: dict[tuple[int, ...], int] = {}
    row_of = np.array([numbers.setdefault(row, len(numbers)) for row in released.rows])
    rows = np.array(list(numbers), dtype=np.uint64)
    columns = np.flatnonzero(rows.any(axis=0))
    return Table(released.bits, columns, rows[:, columns]), row_of


def same_places(own: Domain, stated: Domain) -> bool:
    """Whether two domains are written as the same places."""
    return encode(encode_places(own)) == encode(encode_places(stated))


def design_digest(design: Design) -> str:
    """SHA-256 of a design's problem and mechanism, however its file is laid out."""
    assert design.exact is not None
    body = {
        "mechanism": encode_numerators(design.exact),
        "problem": encode_problem(design.problem),
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def accuracy_of(problem: Problem, matrix: Floats, columns: Ints) -> Accuracy | None:
    """Quantiles of the distance between secret and report under the posterior; ``matrix`` has a row
    for every secret and a column for each of ``columns``."""
    secrets, reports = problem.secrets, problem.observables
    if secrets.points is None or reports.points is None:
        return None
    if (secrets.coordinates, secrets.points.shape[1]) != (
        reports.coordinates,
        reports.points.shape[1],
    ):
        return None
    points, others = secrets.points[:, None], reports.points[None, columns]
    if secrets.coordinates == "lonlat":
        apart = _METRES * great_circle(points, others)
    else:
        apart = np.sqrt(((points - others) ** 2).sum(axis=2)) * _scale(secrets)
    order = np.argsort(apart, axis=0, kind="stable")
    joint = problem.prior.weights[:, None] * matrix
    reached = np.cumsum(np.take_along_axis(joint, order, 0), axis=0)
    short = (reached < QUANTILE * reached[-1]).sum(axis=0)
    # a report that no likely secret makes may come from any
    place = np.where(reached[-1] > 0, np.minimum(short, len(secrets) - 1), -1)
    radius = np.take_along_axis(apart, order, 0)[place, np.arange(len(columns))]
    return Accuracy(QUANTILE, tuple((radius + _half_diagonal(secrets)).tolist()))


def _scale(domain: Domain) -> float:
    return _METRES if isinstance(domain, Grid) and domain.bounds is not None else 1.0


def _half_diagonal(domain: Domain) -> float:
    """How far a position may be from the centre of its cell."""
    return math.hypot(*domain.cell) / 2 * _scale(domain) if isinstance(domain, Grid) else 0.0
