"""What every sentence about a problem or a design rests on, as plain data.

Which distance and unit, between what, what several reports promise, among which mechanisms an
optimum or the lack of one is proved, and what the numbers are of. Whatever people read is rendered
from this (``designs/promise``, ``designs/notes``, ``show/words``, packed files), and what has no
ground here is not said.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.certificate.bound import infeasibility_margin, support_reason
from optmech.certificate.families import Fixed, known
from optmech.designs.stated import Stated, promises_of
from optmech.problem import MaximizeDistortion, MinimizeLeakage, MinimizeVariance, Problem
from optmech.problem.gains import gain_words
from optmech.problem.segments import is_known_between
from optmech.spaces.tables import distance_words

if TYPE_CHECKING:
    from optmech.designs.design import Design, OuterProof

Form = Literal["all", "linear", "coefficients"]
"""Mechanisms of every form; those that are linear on every segment or triangle of a mesh; the
polynomials of a degree on its triangles whose Bernstein coefficients meet the condition that is
checked (Theorem 6, and on the globe Theorem 5), which are fewer than the private ones."""
VARIANCE = "the variance of the estimate, times the number of people"
Bounded = Literal["objective", "loss at this distortion", "loss at this leakage", "nothing"]


@record
class Aim(Shown):
    """What is optimised, and what the numbers ``objective``, ``bound`` and ``lower_bound`` are of.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> aim = facts_of(om.Problem(om.Prior.uniform(coin), om.distances.hamming())).aim
    >>> aim.objective, aim.sense, aim.lower
    ('expected_loss', 'least', 'objective')
    """

    objective: str
    """ "expected_loss", "worst_loss", "maximize_distortion", "minimize_leakage" or
    "minimize_variance"."""
    sense: Literal["least", "largest"]
    quantity: str
    """Of ``objective`` and ``bound``: what is to be least or largest, in words."""
    of: str
    """The loss, distance or gain that it is measured by; "" for a loss given as a matrix."""
    unit: str
    lower: Bounded
    """What ``lower_bound`` is a bound of: the objective, or the loss that mechanisms have at least
    which reach the objective of this design; of nothing where a variance is least."""
    counted: bool = False
    """Whether losses between the vertices of a line count as linear: the objective is then another
    number than the largest expected loss of all points."""

    def plain(self) -> dict[str, str]:
        """For JSON."""
        return {name: getattr(self, name) for name in _AIM}


_AIM = ("objective", "sense", "quantity", "of", "unit", "lower", "counted")


@record
class Among(Shown):
    """The mechanisms among which something is proved.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> facts_of(om.Problem(om.Prior.uniform(coin), om.distances.hamming())).among.form
    'all'
    """

    form: Form
    pieces: Literal["", "segments", "triangles"] = ""
    count: int = 0
    """How many pieces the mesh has."""
    degree: int = 1
    keeps: tuple[int, ...] = ()
    """The constraints that they keep, by their places in the problem."""

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        own = {name: getattr(self, name) for name in ("form", "pieces", "count", "degree")}
        return own | {"keeps": list(self.keeps)}


@record
class Facts(Shown):
    """What is known of a problem, and of its design where there is one.

    ``among`` belongs to ``status``, ``bound``, ``gap`` and to the proof that nothing is feasible;
    ``every`` to ``lower_bound`` and ``total_gap``, and is None where no such bound was proved.
    ``cells`` says that it comes from cells of so many, and not from the places themselves.
    """

    promises: tuple[Stated, ...]
    aim: Aim
    among: Among
    every: Among | None = None
    cells: int | None = None

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "promises": [stated.plain() for stated in self.promises],
            "aim": self.aim.plain(),
            "among": self.among.plain(),
            "every": None if self.every is None else self.every.plain(),
            "cells": self.cells,
        }


def facts_of(problem: Problem, design: Design | None = None) -> Facts:
    """The facts of a problem; with its ``design`` also those of the bound for every mechanism."""
    among = _among(problem)
    every, cells = (None, None) if design is None else _every(design, among)
    if design is not None and design.exact is None:
        among = infeasible_among(problem, design.certificate.outer)
    return Facts(promises_of(problem), _aim(problem), among, every, cells)


def infeasible_among(problem: Problem, outer: OuterProof | None) -> Among:
    """The mechanisms none of which keeps all constraints of an infeasible problem: of every form
    where arithmetic alone shows it, or what every mechanism keeps at the vertices; ratios between
    rows held fixed are those of a mesh."""
    among, statement = _among(problem), problem.statement
    if among.form == "all":
        return among
    free = (part for part in known(statement) if not isinstance(part, Fixed))
    sure = any(part.impossible(statement) for part in free) or bool(support_reason(statement))
    return Among("all", keeps=among.keeps) if sure or refuted(problem, outer) else among


def refuted(problem: Problem, outer: OuterProof | None) -> bool:
    """Whether no mechanism of any form keeps the constraints of an infeasible problem on a mesh: by
    a proof at its vertices alone, or where the program of a line or roads is itself one of these
    (promises that do not depend on the form between vertices)."""
    from optmech.designs.outer import is_own

    if problem.mesh is None or (outer is not None and outer.cells is not None):
        return False
    if is_own(problem):
        return outer is None
    return outer is not None and infeasibility_margin(outer.statement, outer.multipliers) > 0


def _aim(problem: Problem) -> Aim:
    goal, space = problem.objective, problem.space
    if isinstance(goal, MaximizeDistortion):
        name = distance_words(goal.distance)
        what = "the error of the best attack"
        unit = space.unit_of(name)
        return Aim("maximize_distortion", "largest", what, name, unit, "loss at this distortion")
    if isinstance(goal, MinimizeLeakage):
        name, what = gain_words(goal.gain), "what the best guess gains"
        return Aim("minimize_leakage", "least", what, name, "", "loss at this leakage")
    if isinstance(goal, MinimizeVariance):
        name = goal.statistic if isinstance(goal.statistic, str) else "a given statistic"
        return Aim("minimize_variance", "least", VARIANCE, name, "", "nothing")
    name = distance_words(problem.loss) if callable(problem.loss) else ""
    what = "worst-case loss" if goal == "worst_loss" else "expected loss"
    counted = counts_as_linear(problem)
    return Aim(goal, "least", what, name, space.unit_of(name), "objective", counted)


def counts_as_linear(problem: Problem) -> bool:
    """Whether the worst loss is one of losses that are taken for linear between vertices of a line:
    another number than the largest expected loss of all points."""
    stated = problem.objective == "worst_loss" and problem.statement.segments is not None
    return stated and not is_known_between(problem.space, problem.loss)


def _among(problem: Problem) -> Among:
    mesh, keeps = problem.mesh, tuple(range(len(problem.constraints)))
    if mesh is None:
        return Among("all", keeps=keeps)
    form: Form = "linear" if mesh.is_linear else "coefficients"
    return Among(form, mesh.pieces, len(mesh.triangles), mesh.degree, keeps)


def _every(design: Design, among: Among) -> tuple[Among | None, int | None]:
    """The mechanisms that ``lower_bound`` is proved for, and from how many cells."""
    if among.form == "all":
        return among, None
    outer, gradient = design.certificate.outer, design.gradient
    if gradient is None:
        return (Among("all", keeps=among.keeps) if design.lower_bound else None), None
    if outer is None:
        return None, None
    if outer.cells is None:
        return Among("all", keeps=among.keeps), None
    return Among("all", keeps=(gradient.index,)), len(np.unique(outer.cells))
