"""How many people a survey takes, by the designed mechanism and by those in use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from optmech.analysis.surveys import confidence, variances
from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.designs.design import Design
from optmech.errors import OptmechError, ProblemError
from optmech.exact.arguments import positive
from optmech.lp.inequalities import Inequalities
from optmech.mechanisms.discrete import (
    exponential,
    geometric,
    randomized_response,
    subset_selection,
)
from optmech.mechanisms.planar import planar_laplace
from optmech.pipeline.solve import solve
from optmech.problem import MinimizeVariance, Problem
from optmech.repair import Cone
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech_surveys.peers import hadamard, unary_encoding


@record
class Row(Shown):
    """One mechanism: what its best unbiased estimate is worth.

    Examples
    --------
    >>> from optmech_surveys import Row
    >>> Row("designed", 95.3, 16.0, 100, 0.78).people
    100
    """

    name: str
    variance: float
    """N times the variance of all numbers together; inf where reports do not tell them."""
    largest: float
    """The same of the number that is known least."""
    people: float
    """With which every number is known to ``error``."""
    error: float
    """The largest half-width of the intervals, with so many people."""
    why: str = ""
    """Why there is nothing to say; mostly empty."""


@record
class Plan(Shown):
    """The mechanisms of a survey, the designed one first.

    Examples
    --------
    >>> from optmech_surveys import plan_survey
    >>> line, d = om.Domain.range(4), om.distances.euclidean()
    >>> goal = om.MinimizeVariance("histogram")
    >>> promise = om.MetricPrivacy(1.0, d)
    >>> survey = om.Problem(om.Prior.uniform(line), d, objective=goal, constraints=[promise])
    >>> found = plan_survey(survey, error=0.01, gap=0.01)
    >>> found.rows[0].name, found.bound <= found.rows[0].variance
    ('designed', True)
    >>> found.rows[0].people == min(row.people for row in found.rows)
    True
    """

    rows: tuple[Row, ...]
    bound: float
    """What the variance of every mechanism with this promise is at least, proved."""
    level: float
    design: Design


def _peers(problem: Problem, shared: Floats) -> Iterator[tuple[str, Callable[[], Mechanism]]]:
    """Mechanisms in use that keep the promise, of the limits ``shared`` of pairs, (S, S)."""
    secrets, n = problem.secrets, len(problem.secrets)
    least = float(shared[~np.eye(n, dtype=bool)].min())
    yield "k-ary randomised response", lambda: randomized_response(secrets, least)
    yield "subset selection", lambda: subset_selection(secrets, least)
    yield "unary encoding, optimised", lambda: unary_encoding(secrets, least)
    yield "unary encoding, symmetric", lambda: unary_encoding(secrets, least, optimised=False)
    yield "Hadamard response", lambda: hadamard(secrets, least)
    table = np.where(np.eye(n, dtype=bool), 0.0, shared)
    yield "exponential", lambda: exponential(secrets, 1.0, table)
    if secrets.points is not None:
        apart = np.linalg.norm(secrets.points[:, None] - secrets.points[None], axis=2)
        far = apart > 0
        rate = float((shared[far] / apart[far]).min()) if far.any() else 0.0
        if secrets.points.shape[1] == 1 and rate > 0:
            yield "truncated geometric", lambda: geometric(secrets, rate)
        if isinstance(secrets, Grid) and rate > 0:
            yield "planar Laplace", lambda: planar_laplace(secrets, rate)

    def for_single_reports() -> Mechanism:
        stated = Problem(
            problem.prior, problem.loss, problem.observables, constraints=problem.constraints
        )
        return solve(stated, gap=1e-3).mechanism

    yield "least loss", for_single_reports


@checked_arguments
def plan_survey(
    problem: Problem,
    *,
    people: float | None = None,
    error: float | None = None,
    level: float = 0.95,
    gap: float = 1e-2,
) -> Plan:
    """How good a survey will be, by the mechanism designed for it and by those in use.

    Every mechanism keeps the promise of the problem, and gets its best unbiased estimate, so that
    the comparison is fair. Those of local privacy take the smallest limit of all pairs.

    Parameters
    ----------
    problem:
        With the objective ``om.MinimizeVariance``.
    people:
        How many will report; or
    error:
        the half-width that the interval of every number is to have.
    level:
        Of the intervals, which hold one by one, by a normal law.
    gap:
        Of the design to its bound.

    Raises
    ------
    ProblemError
        Where neither or both are given, or another objective.

    Examples
    --------
    >>> from optmech_surveys import plan_survey
    >>> coin, d = om.Domain(["yes", "no"]), om.distances.hamming()
    >>> goal, promise = om.MinimizeVariance(), om.DifferentialPrivacy("ln 3")
    >>> survey = om.Problem(om.Prior.uniform(coin), d, objective=goal, constraints=[promise])
    >>> plan_survey(survey, people=38415).rows[0].error < 0.0101
    True
    """
    goal = problem.objective
    if not isinstance(goal, MinimizeVariance):
        raise ProblemError(
            "states no statistic", where="objective", remedy="Use om.MinimizeVariance(statistic)"
        )
    if (people is None) == (error is None):
        raise ProblemError(
            "people or an error, and not both, have to be given",
            remedy="Give people=10_000, or error=0.01",
        )
    share, wide = confidence(level)
    count = None if people is None else positive(people, "people")
    half = None if error is None else positive(error, "error")
    at: Prior | str = problem.prior if goal.population is None else goal.population

    def row(name: str, make: Callable[[], Mechanism]) -> Row:
        try:
            each = variances(make(), goal.statistic, at)
        except OptmechError as problem_met:
            return Row(name, math.inf, math.inf, math.inf, math.inf, problem_met.message)
        largest = float(each.max())
        weights = np.ones(len(each)) if goal.weights is None else goal.weights
        needed = math.ceil(largest * (wide / half) ** 2) if half else (count or math.nan)
        reached = wide * math.sqrt(largest / count) if count else (half or math.nan)
        return Row(name, float(weights @ each), largest, needed, reached)

    design = solve(problem, gap=gap)
    shared = Cone.of(Inequalities.of(problem.statement)).log_ratio
    rows = [row("designed", lambda: design.mechanism)]
    rows += [row(name, make) for name, make in _peers(problem, shared)]
    return Plan(tuple(rows), design.variance_bound, share, design)
