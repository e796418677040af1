"""Questions to many designs: Pareto fronts, the cheapest design for a wish, the least ε.

The rows are those of a sweep's table (``om.sweep(...).rows``). Every loss in them is that of a
verified matrix, so a front is attained as it stands; how far it lies from the best possible one
is bounded by the column ``lower_bound``.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from operator import ge, le
from pathlib import Path

from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.designs.design import Design
from optmech.designs.facts import facts_of
from optmech.designs.sentences import all_words
from optmech.errors import InfeasibleError, ProblemError
from optmech.exact.number import Number, float_of
from optmech.pipeline.profiles import Profile, load_profile
from optmech.pipeline.solve import solve
from optmech.problem import Problem
from optmech.problem.segments import is_known_between
from optmech.reading.columns import require_columns
from optmech.spaces.arguments import checked_arguments
from optmech_sweeps.templates import Cell, ObjectTemplate, parse_place

__all__ = ["LeastEpsilon", "cheapest", "least_epsilon", "pareto_front"]
__dir__ = __all__.copy


Row = Mapping[str, Cell]
_SHARPER = 0.01
_SHARPEST = 1e-9
_MOST_HALVINGS = 200
_UNDECIDED = "at ε = {:g} the optimal loss cannot be told from the limit"
"""Why a search ended early."""


@checked_arguments
def pareto_front(
    rows: Iterable[Row],
    minimise: Sequence[str] = ("epsilon", "loss"),
    maximise: Sequence[str] = (),
) -> list[Row]:
    """The rows that no other row beats: none is as good in every column and better in one.

    Rows without a design (failed, infeasible) or without a number in one of the columns are left
    out; of equal rows the first stays. Sorted by the columns.

    Raises
    ------
    ProblemError
        On an unknown column, or none.

    Examples
    --------
    >>> rows = [
    ...     {"status": "optimal", "epsilon": epsilon, "loss": loss}
    ...     for epsilon, loss in ((0.5, 2.0), (1.0, 1.2), (1.0, 3.0))
    ... ]
    >>> [row["loss"] for row in om.frontier.pareto_front(rows)]
    [2.0, 1.2]
    """
    signs = [(name, 1.0) for name in minimise] + [(name, -1.0) for name in maximise]
    if not signs:
        raise ProblemError("names no column", where="minimise", remedy="Name at least one")
    ranked: list[tuple[list[float], Row]] = []
    for row in rows:
        values = [(sign, _number(row, name)) for name, sign in signs]
        key = [sign * value for sign, value in values if value is not None]
        if _has_design(row) and len(key) == len(signs):
            ranked.append((key, row))
    front: list[tuple[list[float], Row]] = []
    # sorted: only rows before another can beat it
    for key, row in sorted(ranked, key=lambda pair: pair[0]):
        if not any(all(map(le, other, key)) for other, _ in front):
            front.append((key, row))
    return [row for _, row in front]


@checked_arguments
def cheapest(
    rows: Iterable[Row],
    at_most: Mapping[str, float] | None = None,
    at_least: Mapping[str, float] | None = None,
    *,
    minimise: str = "loss",
) -> Row:
    """The row with the least value of a column among those that meet the wishes.

    ``cheapest(rows, at_most={"epsilon": 0.5}, at_least={"d_m": 1.0})`` is the least loss at that
    privacy; ``cheapest(rows, at_most={"loss": 2.0}, minimise="epsilon")`` the most privacy at
    that loss.

    Raises
    ------
    InfeasibleError
        When no row meets them.
    ProblemError
        On an unknown column.

    Examples
    --------
    >>> rows = [
    ...     {"status": "optimal", "epsilon": 0.5, "loss": 2.0},
    ...     {"status": "optimal", "epsilon": 1.0, "loss": 1.2},
    ... ]
    >>> om.frontier.cheapest(rows, at_most={"epsilon": 0.5})["loss"]
    2.0
    >>> om.frontier.cheapest(rows, at_most={"loss": 1.5}, minimise="epsilon")["epsilon"]
    1.0
    """
    wishes = [(name, "<=", le, limit) for name, limit in (at_most or {}).items()]
    wishes += [(name, ">=", ge, limit) for name, limit in (at_least or {}).items()]

    def meets(row: Row) -> bool:
        values = [(_number(row, name), fits, limit) for name, _, fits, limit in wishes]
        return all(value is not None and fits(value, limit) for value, fits, limit in values)

    listed = list(rows)
    found = [
        (value, k)
        for k, row in enumerate(listed)
        if (value := _number(row, minimise)) is not None and _has_design(row) and meets(row)
    ]
    if not found:
        words = " and ".join(f"{name} {sign} {limit:g}" for name, sign, _, limit in wishes)
        raise InfeasibleError(
            f"none of {len(listed)} rows has a design with {words or 'a value'}",
            where=minimise,
            remedy="Widen the sweep or the wish",
        )
    return listed[min(found)[1]]


@record
class LeastEpsilon(Shown):
    """The least ε whose optimal loss stays under a limit lies in (``lower``, ``upper``].

    Both ends are proved: ``design`` is a verified mechanism at ``upper`` whose loss is within the
    limit, and at ``lower`` no mechanism has so little loss (``bound`` is the proved lower bound
    there; inf where no mechanism exists at all). For privacy at every point ``lower`` is proved for
    the mechanisms of its mesh and degree only: a finer mesh may need less. A worst loss on a line
    is what counts between vertices, as the design's notes say. ``lower`` equals ``upper`` where the
    search began at an ε that is already enough. ``reason`` says why the bracket is wider than
    asked.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy(1)
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> found = om.frontier.least_epsilon(problem, maximum_loss=0.25, low=0, high=3)
    >>> bool(found.lower < np.log(3) < found.upper), found.design.verified
    (True, True)
    """

    lower: float
    upper: float
    design: Design
    bound: float
    solves: int
    reason: str = ""


@checked_arguments
def least_epsilon(
    problem: Problem,
    maximum_loss: Number,
    low: Number,
    high: Number,
    *,
    place: str = "constraints[0].epsilon",
    tolerance: Number = 1e-3,
    profile: str | Path | Profile = "auto",
) -> LeastEpsilon:
    """Bisect for the least ε whose optimal loss is at most ``maximum_loss``.

    The optimal loss does not grow with ε or δ (docs/theory/lagrangian.md, "Frontiers"), so two
    designs prove a bracket. A step at which the gap does not tell is solved again more sharply.

    Parameters
    ----------
    problem:
        With expected or worst-case loss as objective; the value at ``place`` is replaced.
    maximum_loss:
        q, in units of the loss.
    low, high:
        Where to look, 0 <= low < high.
    place:
        The ε (or δ) that is searched.
    tolerance:
        Width of the bracket to reach, relative to its upper end.
    profile:
        As for ``solve``.

    Raises
    ------
    ProblemError
        On unusable arguments.
    InfeasibleError
        When even ``high`` is proved not to be enough.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy(1)
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> found = om.frontier.least_epsilon(problem, maximum_loss=0.25, low=0, high=3)
    >>> print(round(found.upper, 2), found.upper - found.lower < 0.002)  # ln 3
    1.1 True
    """
    search = _Bisection(problem, place, maximum_loss, load_profile(profile))
    low, high = float_of(low, "low"), float_of(high, "high")
    if not low < high:
        raise ProblemError(f"{low:g} is not below {high:g}", where="low", remedy="Give low < high")
    width = float_of(tolerance, "tolerance", positive=True)
    at_high = search.decide(high)
    if at_high is None or not at_high.loss <= search.limit:
        seen = "cannot be told from" if at_high is None else "is proved to exceed"
        facts = facts_of(problem, at_high)
        among = facts.among
        if facts.every and at_high is not None and at_high.lower_bound > search.limit:
            among = facts.every
        finer = "" if among.form == "all" else ", or a finer mesh"
        raise InfeasibleError(
            f"at ε = {high:g} the loss{search.counted} of {all_words(among)} {seen} the limit "
            f"{search.limit:g}",
            where="maximum_loss",
            remedy=f"Allow more loss or a larger ε{finer}",
        )
    at_low = search.decide(low)
    if at_low is None:
        return LeastEpsilon(0.0, high, at_high, 0.0, search.solves, _UNDECIDED.format(low))
    if at_low.loss <= search.limit:
        return LeastEpsilon(low, low, at_low, _bound(at_low), search.solves)
    reason = ""
    for _ in range(_MOST_HALVINGS):
        middle = 0.5 * (low + high)
        if high - low <= width * high or not low < middle < high:
            break
        design = search.decide(middle)
        if design is None:
            reason = _UNDECIDED.format(middle)
            break
        if design.loss <= search.limit:
            high, at_high = middle, design
        else:
            low, at_low = middle, design
    bound = math.inf if at_low.status == "infeasible" else _bound(at_low)
    return LeastEpsilon(low, high, at_high, bound, search.solves, reason)


class _Bisection:
    """Decides whether the optimal loss at an ε is within the limit, proof at hand."""

    def __init__(self, problem: Problem, place: str, limit: Number, profile: Profile) -> None:
        if not isinstance(problem.objective, str):
            raise ProblemError(
                "has no loss as objective",
                where="problem",
                remedy='Use objective = "expected_loss" or "worst_loss"',
            )
        if parse_place(place)[-1] not in ("epsilon", "delta"):
            raise ProblemError(
                f"the loss need not fall as {place} grows", where="place", remedy="Name an ε or a δ"
            )
        self._template, self._place, self._profile = ObjectTemplate(problem), place, profile
        self.limit = float_of(limit, "maximum_loss")
        self._nearest: dict[float, Design] = {}
        self.solves = 0
        along = problem.statement.segments is not None
        known = not along or is_known_between(problem.space, problem.loss)
        self.counted = "" if known else ", counted as linear between neighbouring vertices,"

    def decide(self, epsilon: float) -> Design | None:
        """A design whose loss is within the limit, or that proves that no loss is (its lower bound
        exceeds the limit, or it is infeasible and has a loss of NaN); None where not even the
        sharpest gap tells."""
        problem = self._template.source([(self._place, epsilon)]).build()
        gap = self._profile.gap
        known = sorted(self._nearest, key=lambda other: abs(other - epsilon))
        start = self._nearest[known[0]] if known else None
        while True:
            design = solve(problem, self._profile, gap=gap, start=start)
            self.solves += 1
            if design.status == "infeasible":
                return design
            if design.mesh is None:
                self._nearest[epsilon] = start = design
            if design.loss <= self.limit or _bound(design) > self.limit:
                return design
            if design.gap > gap or gap <= _SHARPEST:
                return None
            gap = max(_SHARPER * gap, _SHARPEST)


def _bound(design: Design) -> float:
    """The proved lower bound of the loss: on a mesh of the mechanisms there."""
    return design.lower_bound if design.mesh is None else design.bound


def _has_design(row: Row) -> bool:
    return row.get("status") in ("optimal", "feasible")


def _number(row: Row, name: str) -> float | None:
    require_columns("rows", [name], list(row))
    value = row[name]
    if isinstance(value, str):
        try:
            return float_of(value, name)
        except ProblemError:
            return None
    return float(value) if isinstance(value, int | float) else None
