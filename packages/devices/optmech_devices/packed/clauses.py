"""What a packed file has of the constraints and the prior of a problem, as data."""

from __future__ import annotations

from typing import Any

from optmech.analysis.measures import bayes_vulnerability
from optmech.errors import ProblemError
from optmech.exact.exponentials import stated_down, stated_up
from optmech.exact.number import Exact, rounded_up
from optmech.exact.ratios.generators import order_of
from optmech.problem import MetricPrivacy, MinimizeVariance, Problem
from optmech.problem.constraint import Constraint, load_constraint, write_constraint
from optmech.problem.gains import Adversary
from optmech.problem.problem import MaximizeDistortion, MinimizeLeakage
from optmech.problem.promised import Promised, Scope
from optmech.problem.space import Space
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.tables import distance_words
from optmech_devices.packed.header import Beliefs, Clause, Value

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
