"""The design problem: frozen data that says what is wanted, never how to find it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optmech.base import memory
from optmech.base.arrays import Floats
from optmech.base.edges import Edges
from optmech.base.read_only import Converted, ReadOnly, checked, converted, read_only, record
from optmech.base.shown import SameFields, card, short
from optmech.certificate.families import Gradient, Ratio, known
from optmech.certificate.statement import Family, Objective, Statement
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import text
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Record, idle_notes, kinds
from optmech.problem.gains import PRIOR_FREE, Gain, as_goal, gain_matrix
from optmech.problem.ratios import mesh_of, require_joint
from optmech.problem.segments import segments_of
from optmech.problem.space import Space
from optmech.problem.statistics import MinimizeVariance
from optmech.spaces.arguments import checked_arguments, kind
from optmech.spaces.distances import Distance, DistanceLike
from optmech.spaces.domain import Domain
from optmech.spaces.losses import as_loss, loss_matrix
from optmech.spaces.mesh import Mesh
from optmech.spaces.prior import Prior
from optmech.spaces.tables import distance_words


@record
class MaximizeDistortion(Record):
    """Objective: the largest error of the best attack, under a LossBound (Shokri et al., CCS
    2012). ``prior`` is the adversary's, by default the problem's.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> d = om.distances.hamming()
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin),
    ...     d,
    ...     objective=om.MaximizeDistortion(d),
    ...     constraints=[om.LossBound(0.1)],
    ... )
    >>> print(round(om.solve(problem).objective, 6))
    0.1
    >>> apart, prior = problem.objective.factors(problem.space)
    >>> print(apart.tolist(), prior)
    [[0.0, 1.0], [1.0, 0.0]] [0.5 0.5]
    """

    kind: ClassVar[Literal["maximize_distortion"]] = "maximize_distortion"

    distance: Converted[DistanceLike, Distance] = converted(fields.distance)
    prior: Prior | None = checked(fields.adversary, default=None)

    def factors(self, space: Space) -> tuple[Floats, Floats]:
        """d(t,s), shape (S, S), and the adversary's π(s). Raises ProblemError where they do not fit
        the secrets."""
        return space.apart(self.distance), space.adversary(self.prior).weights


@record
class MinimizeLeakage(Record):
    """Objective: the least that the best guess gains by the report, Σ_o max_w Σ_s π(s) g(w,s)
    p(o|s), under a LossBound.

    ``gain`` is as in ``GainLeakage``, or one of two measures that have no prior: "maximal", the
    exponential Σ_o max_s p(o|s) of the maximal leakage, and "additive", 1 - Σ_o min_s p(o|s).
    ``prior`` is the adversary's, by default the problem's.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin),
    ...     om.distances.hamming(),
    ...     objective=om.MinimizeLeakage(),
    ...     constraints=[om.LossBound(0.1)],
    ... )
    >>> print(round(om.solve(problem).objective, 6))  # right in 90 % of guesses
    0.9
    >>> gain, prior = problem.objective.factors(problem.space)
    >>> print(gain.tolist(), prior)
    [[1.0, 0.0], [0.0, 1.0]] [0.5 0.5]
    """

    kind: ClassVar[Literal["minimize_leakage"]] = "minimize_leakage"

    gain: Converted[ArrayLike | Distance, Gain] = converted(as_goal, default="identity")
    prior: Prior | None = checked(fields.adversary, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        free = isinstance(self.gain, str) and self.gain in PRIOR_FREE
        if free and self.prior is not None:
            raise ProblemError(
                f"{self.gain!r} is the same for every prior", where="prior", remedy="Leave it out"
            )

    def factors(self, space: Space) -> tuple[Floats, Floats]:
        """g(w,s), shape (W, S), and the weights of the secrets. Raises ProblemError where they do
        not fit the secrets."""
        if isinstance(self.gain, str) and self.gain in PRIOR_FREE:
            gain = PRIOR_FREE[self.gain](len(space.secrets))
            return gain, np.ones(len(space.secrets))
        return gain_matrix(self.gain, space), space.adversary(self.prior).weights


Asked = Constraint | Callable[[Space], Any] | Sequence[Any]
"""A constraint, a function that states some when the domains are known, or a list of these."""
Goal = MaximizeDistortion | MinimizeLeakage | MinimizeVariance
"""Objectives other than the loss."""
_WITHOUT_LOSS = {
    "maximize_distortion": "maximising distortion",
    "minimize_leakage": "minimising leakage",
}
_TOLD_APART = 14.0
"""A log-ratio, of a million to one, that even the best hidden pair of secrets may have."""
_NEAR, _ALIKE = 0.01, 0.05
"""Of a region's extent: points that are near; and a log-ratio within which all are alike."""
_DIFFERENT = 0.75
"""Of the secrets: fewer different places are rows of a table, and not a list of places."""


@kind(
    "Make one with om.Problem(prior, loss, constraints=[...]), or om.load_problem(path)",
    {"Design": "Give design.problem", "str": "Read it with om.load_problem(path)"},
)
@record
class Problem(SameFields, ReadOnly):
    """Find p(o|s) that minimises ``objective`` under ``constraints`` (Shokri, PETS 2015, sections 4
    to 8).

    Parameters
    ----------
    prior:
        π(s); its domain is the set of secrets.
    loss:
        c(s, o): a distance, or an array of shape (secrets, observables), non-negative.
    observables:
        Domain of o; default the secrets.
    objective:
        ``"expected_loss"`` (Shokri, PETS 2015, eq. 11), ``"worst_loss"`` (eq. 12; with a promise
        for every point of a line that of all its points), ``MaximizeDistortion``,
        ``MinimizeLeakage`` or ``MinimizeVariance``.
    constraints:
        Any combination of the classes of ``optmech.problem.constraints``; lists of these; and
        functions that return such, called with a ``Space`` that has the ``prior``, the ``secrets``,
        the ``observables`` and the ``loss``: a kind of one's own. What they return is kept, and
        written to files.
    title:
        A name for reports.

    Raises
    ------
    ProblemError
        When anything does not fit; ``TooLargeError`` when the matrices alone exceed memory.

    Examples
    --------
    >>> cells = om.Grid(rows=2, columns=2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(
    ...     prior=om.Prior.from_counts(cells, [4, 1, 0, 3]),
    ...     loss=km,
    ...     constraints=[om.MetricPrivacy(0.5, km)],
    ...     title="four cells",
    ... )
    >>> len(problem.secrets), problem.loss_matrix.shape
    (4, (4, 4))
    """

    prior: Prior
    loss: Distance | Floats
    observables: Domain
    objective: Objective | Goal
    constraints: tuple[Constraint, ...]
    title: str
    space: Space
    statement: Statement

    @checked_arguments
    def __init__(
        self,
        prior: Prior,
        loss: Distance | ArrayLike,
        observables: Domain | None = None,
        *,
        objective: Objective | Goal = "expected_loss",
        constraints: Sequence[Asked] = (),
        title: str = "",
    ) -> None:
        if not isinstance(objective, Goal) and objective not in ("expected_loss", "worst_loss"):
            raise ProblemError(
                f"{objective!r} is unknown",
                where="objective",
                remedy='Use "expected_loss", "worst_loss", MaximizeDistortion(distance), '
                "MinimizeLeakage(gain) or MinimizeVariance(statistic)",
            )
        outputs = prior.domain if observables is None else observables
        if not isinstance(constraints, Iterable):
            raise ProblemError(
                f"{type(constraints).__name__} is not a list of constraints",
                where="constraints",
                remedy="Give a list, of one constraint too",
            )

        def made() -> Space:
            """What functions that state constraints are called with."""
            matrix = read_only(loss_matrix(given, prior.domain, outputs))
            return Space(prior, outputs, matrix, distance_words(given) if callable(given) else "")

        given = as_loss(loss, "loss")
        stated = tuple(_stated(constraints, made))
        mesh = mesh_of(stated)
        # what is promised for the vertices of a mesh, or for edges, has no table of pairs of places
        tables = any(
            not getattr(c, "limits_loss", True)
            and (getattr(c, "everywhere", None) is None or c.kind != "metric_privacy")
            for c in stated
        )
        rows = 1 if mesh is not None and not tables else len(prior)
        places = 64.0 * len(prior) * len(outputs) if mesh is not None else 0.0
        memory.require(
            # its matrices; what a search needs comes on top
            8.0 * rows * max(rows, len(outputs)) * (4 + 3 * len(stated)) + places,
            what=f"a problem of {len(prior):,} secrets and {len(outputs):,} observables",
            where="problem",
            remedy="Use a coarser domain",
        )
        if isinstance(objective, MaximizeDistortion | MinimizeLeakage) and not any(
            isinstance(c, Constraint) and c.limits_loss for c in stated
        ):
            raise ProblemError(
                f"{_WITHOUT_LOSS[objective.kind]} needs a limit on the loss",
                where="objective",
                remedy="Add a LossBound; without one, reporting a constant is optimal",
            )
        space = made()
        statement = make_statement(space, objective, stated, given)
        require_joint(statement, [c.kind for c in stated], mesh)
        vars(self).update(
            prior=prior,
            loss=given,
            observables=outputs,
            objective=objective,
            constraints=stated,
            title=text(title, "title"),
            space=space,
            statement=statement,
        )

    def __repr__(self) -> str:
        title = f"{self.title[:60]!r}, " if self.title else ""
        parts = [
            f"Problem({title}minimise {short(self.objective)} of {short(self.loss)}",
            f"prior={self.prior!r}",
        ]
        if self.observables != self.secrets:
            parts.append(f"observables={self.observables!r}")
        shown = [repr(constraint) for constraint in self.constraints[:5]]
        if len(self.constraints) > 5:
            shown.append(f"<{len(self.constraints) - 5} more constraints>")
        return ",\n        ".join([*parts, *shown]) + ")"

    def __hash__(self) -> int:
        return hash((self.prior, self.observables, (self.loss_matrix + 0.0).tobytes()))

    def _compared(self) -> Iterator[object]:
        """What makes it one problem exactly: prior, observables, losses, objective and constraints,
        with every distance as its numbers. Titles do not count, nor do names of distances."""
        goal = self.objective
        yield from (self.prior, self.observables, self.loss_matrix)
        yield None if self.statement.segments is None else self.statement.segments.bends
        yield (goal.kind, goal.plain(self.space)) if isinstance(goal, Goal) else goal
        yield [(c.kind, c.plain(self.space)) for c in self.constraints]

    def _repr_html_(self) -> str:
        stated = [(f"constraints[{k}]", stated) for k, stated in enumerate(self.constraints[:8])]
        facts = [
            ("minimise", f"{short(self.objective)} of {short(self.loss)}"),
            ("secrets", self.secrets),
            ("observables", self.observables),
            *stated,
            *([("", f"{len(self.constraints) - 8} more")] if len(self.constraints) > 8 else []),
        ]
        title = f"Problem: {self.title}" if self.title else "Problem"
        return card(title, facts)

    @property
    def secrets(self) -> Domain:
        """The domain of the secrets."""
        return self.prior.domain

    @cached_property
    def mesh(self) -> Mesh | None:
        """The region, line or network at every point of which something is promised; None where
        all promises are about the secrets."""
        return mesh_of(self.constraints)

    @property
    def loss_matrix(self) -> Floats:
        """c(s, o), shape (secrets, observables)."""
        return self.statement.loss

    @cached_property
    def notes(self) -> tuple[str, ...]:
        """Facts about the input that a user should know and that are not errors."""
        found = []
        if self.prior.binning is not None and self.prior.binning.left_out > 0:
            found.append(f"prior: {self.prior.binning}")
        for k, constraint in enumerate(self.constraints):
            found += [f"constraints[{k}]{at}: {note}" for at, note in constraint.notes(self.space)]
        return (*found, *idle_notes(self.constraints, self.space, self.statement.families))

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """What can hardly be meant, and is no error: to be said before a search."""
        found = []
        points = self.secrets.points
        places = None if points is None else len(np.unique(points, axis=0))
        if places is not None and places < _DIFFERENT * len(self.secrets):
            found.append(
                f"secrets: {len(self.secrets):,} secrets lie at {places:,} different places. Write "
                "distinct = true in the file, for one secret of each, or give the places alone"
            )
        binning = self.prior.binning
        if binning is not None and binning.left_out > binning.inside:
            found.append(
                f"prior: {binning}: most of them are not used. Check the bounds (west, south, "
                "east, north), the order of the coordinates and their unit"
            )
        found += [
            f"constraints[{family.index}]: {said}"
            for family in self.statement.families
            if (said := _doubt_of(family))
        ]
        return tuple(found)


def _doubt_of(family: Family) -> str:
    """What can hardly be meant by a rate, for pairs or for the points of a region, in words; ""
    else."""
    if isinstance(family, Ratio):
        distance = family.distance.value if isinstance(family.distance, Edges) else family.distance
        apart = distance[np.isfinite(distance) & (distance > 0)]
        least = float(family.epsilon) * float(apart.min()) if apart.size else 0.0
        if least > _TOLD_APART:
            return (
                "ε hides next to nothing: reports of the two secrets that are hidden best may "
                f"differ by a factor of e^{least:.4g}. Use a smaller ε, or check its unit"
            )
    if not isinstance(family, Gradient):
        return ""
    sides = np.ptp(family.mesh.vertices, axis=0) * family.mesh.scale
    across = float(family.epsilon) * float(np.hypot(*sides))
    if across > _TOLD_APART / _NEAR:
        return (
            "ε hides next to nothing: two points a hundredth of the region apart may be told apart "
            f"by a factor of e^{across * _NEAR:.4g}. Use a smaller ε, or check its unit"
        )
    if across < _ALIKE:
        return (
            "reports tell next to nothing: from any two points of the region they may differ by a "
            f"factor of {math.exp(across):.4g} at most. Use a larger ε, or check its unit"
        )
    return ""


def make_statement(
    space: Space,
    objective: Objective | Goal,
    constraints: Sequence[Constraint],
    loss: Distance | Floats | None = None,
) -> Statement:
    """Evaluate every distance and put the families of all constraints together; ``loss`` is what
    the space has as numbers.

    Raises
    ------
    ProblemError
        Where an array does not fit the domains; the message has the constraint's index.
    VerificationError
        Where a kind of another package has families that the certificate does not know, or whose
        fields cannot be meant.
    """
    families: list[Family] = []
    for k, stated in enumerate(constraints):
        with inside(f"constraints[{k}]"):
            families += _families(k, _require(stated), space)
    name: Objective
    factors = survey = None
    if isinstance(objective, MinimizeVariance):
        with inside("objective"):
            name, survey = objective.kind, objective.survey(space)
    elif isinstance(objective, Goal):
        with inside("objective"):
            name, factors = objective.kind, objective.factors(space)
    else:
        name = objective
    segments, mesh = None, mesh_of(constraints)
    if mesh is not None and name == "worst_loss":
        segments = segments_of(mesh, space, loss)
    own = tuple(families)
    statement = Statement(space.prior.weights, space.loss, name, own, factors, segments, survey)
    if not statement.of_kind(Gradient):
        known(statement)
    return statement


def _stated(given: Iterable[Any], space: Callable[[], Space]) -> Iterator[Any]:
    """The constraints in lists, and those that functions state."""
    for k, own in enumerate(given):
        if callable(own) and not isinstance(own, Constraint | type):
            with inside(f"constraints[{k}]"):
                own = own(space())
        if isinstance(own, Iterable) and not isinstance(own, Constraint | str | type):
            yield from _stated(own, space)
        else:
            yield own


def _families(index: int, stated: Constraint, space: Space) -> Iterator[Family]:
    """Its families, if that is what a kind of any package yields."""
    given = stated.families(index, space)
    for family in given if isinstance(given, Iterable) else [given]:
        if not isinstance(getattr(family, "kind", None), str) or family.index != index:
            raise ProblemError(
                f"{type(stated).__name__} leads to a {type(family).__name__}, which is no family "
                "of inequalities of this constraint",
                remedy="Its method families(index, space) yields families with that index",
            )
        yield family


def _require(stated: object) -> Constraint:
    if isinstance(stated, Constraint):
        # a file names the kind, and its readers take the registered class for it
        if kinds().get(getattr(stated, "kind", "")) is type(stated):
            return stated
        raise ProblemError(
            f"{type(stated).__name__} is not a registered kind of constraint",
            remedy="Give it a name with optmech.problem.constraint.constraint",
        )
    names = [kind.__name__ for kind in kinds().values()]
    raise ProblemError(
        f"{type(stated).__name__} is not a constraint",
        remedy=f"Use {', '.join(names[:-1])} or {names[-1]}",
    )
