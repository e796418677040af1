"""Known mechanisms by name, as a problem asks for them: of its secrets, its distance and an ε;
those that a file states in its ``[[mechanisms]]`` tables, tupling among them: made, and measured
by what the problem promises; and the optimum beside what people use in its place, at several ε.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from optmech.analysis import measures
from optmech.base.machine import needed
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, inside
from optmech.exact.number import Number
from optmech.files.load import ProblemFile
from optmech.files.validate import checked
from optmech.mechanisms.discrete import (
    exponential,
    geometric,
    randomized_response,
    restricted_laplace,
)
from optmech.mechanisms.planar import planar_gaussian, planar_geometric, planar_laplace
from optmech.mechanisms.tupling import Tupling, tupling
from optmech.pipeline.solve import solve
from optmech.problem import Constraint, DistributionPrivacy, Problem, Pufferfish
from optmech.reading.errors import Collector
from optmech.show.figures import measure_constraints
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech_sweeps.files import Known, KnownTables
from optmech_sweeps.templates import ObjectTemplate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


KNOWN: dict[str, Callable[[Any, Number, Any], Mechanism]] = {
    "exponential": lambda p, e, d: exponential(p.secrets, e, distance=d, observables=p.observables),
    "geometric": lambda p, e, d: geometric(p.secrets, e),
    "planar_geometric": lambda p, e, d: planar_geometric(p.secrets, e),
    "planar_laplace": lambda p, e, d: planar_laplace(p.secrets, e),
    "randomized_response": lambda p, e, d: randomized_response(p.secrets, e),
}
"""What makes each of a problem, an ε and a distance."""


def require_name(name: str) -> None:
    """Raise ProblemError unless a mechanism is called so."""
    if name not in KNOWN:
        raise ProblemError(
            f"{name!r} is unknown", where="mechanism", remedy=f"Use one of {', '.join(KNOWN)}"
        )


def distance_of(problem: Problem) -> Any:
    """The distance that the problem measures privacy by, or else its loss where that is one; None
    where there is none."""
    found = (getattr(stated, "distance", None) for stated in problem.constraints)
    own = next((distance for distance in found if distance is not None), None)
    if own is not None:
        return own
    return problem.loss if callable(problem.loss) else None


@checked_arguments
def known(name: str, problem: Problem, epsilon: Number) -> Mechanism:
    """A known mechanism over the secrets of a problem: "exponential", "planar_laplace",
    "planar_geometric", "geometric" or "randomized_response".

    ``epsilon`` is per unit of the distance that the problem measures privacy by; that of randomised
    response is the same for all pairs.

    Raises
    ------
    ProblemError
        On an unknown name, and where the mechanism does not exist for these secrets or has other
        reports than the problem.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming())
    >>> om.mechanisms.known("randomized_response", problem, "ln 3").matrix.tolist()
    [[0.75, 0.25], [0.25, 0.75]]
    """
    require_name(name)
    found = KNOWN[name](problem, epsilon, distance_of(problem))
    if found.observables.labels != problem.observables.labels:
        raise ProblemError(
            f"{name} reports secrets, and the problem has other observables",
            where="mechanism",
            remedy="Use exponential, or leave the observables out",
        )
    return found


def made(own: Known, problem: Problem) -> Mechanism:
    """The mechanism, over the secrets of a problem."""
    needs = {"restricted_laplace": ("epsilon", "radius"), "planar_gaussian": ("sigma",)}
    asked = needs.get(own.name, ("epsilon",))
    for key in ("epsilon", "radius", "sigma"):
        if (getattr(own, key) is None) == (key in asked):
            remedy = "Give a number" if key in asked else "Leave it out"
            raise ProblemError(f"of {own.name}", where=key, remedy=remedy)
    cells: Any = problem.secrets
    if own.name == "planar_gaussian":
        return planar_gaussian(cells, float(own.sigma or 0))
    epsilon: Any = own.epsilon
    if own.name == "restricted_laplace":
        apart, seen = distance_of(problem), problem.observables
        radius = float(own.radius or 0)
        return restricted_laplace(
            problem.secrets, epsilon, radius, distance=apart, observables=seen
        )
    return known(own.name, problem, epsilon)


def stated_in(file: ProblemFile) -> list[Known]:
    """The mechanisms that a file states. Raises ProblemError, with every error, where a table does
    not fit, and where there is none."""
    if not file.mechanisms:
        raise ProblemError(
            "states no mechanisms", where=file.path, remedy="Name one, such as exponential"
        )
    tables = {"mechanisms": list(file.mechanisms)}
    return checked(KnownTables, tables, Collector(), file.path).mechanisms


def beside_optimum(file: ProblemFile) -> dict[str, Any]:
    """The row of the design of least loss."""
    design = solve(file.problem, profile=file.profile or "auto")
    row = _matrix_figures(file.problem, design.mechanism)
    return {"mechanism": f"optimum ({design.status})", **row}


def measured(problem: Problem, stated: Sequence[Known]) -> list[dict[str, Any]]:
    """Of every mechanism its loss, and what it keeps of the problem's constraints; of tuples what
    is lost by the nearest, and ε at their δ of every pair of distributions, an upper bound."""
    rows = []
    for k, own in enumerate(stated):
        with inside(f"mechanisms[{k}]"):
            found = made(own, problem)
            rows.append({"mechanism": own.called, **_figures(problem, found, own)})
    return rows


def _figures(problem: Problem, made: Mechanism, own: Known) -> dict[str, Any]:
    if own.dummies is None:
        if own.delta is not None:
            raise ProblemError("belongs to dummies", where="delta", remedy="Leave it out")
        return _matrix_figures(problem, made)
    if not callable(problem.loss):
        raise ProblemError("needs a distance as loss", where="dummies", remedy="Leave it out")
    tuples = tupling(made, own.dummies)
    return {
        "loss": tuples.expected_loss(problem.prior, problem.loss),
        "worst_loss": None,
        **{
            f"constraints[{k}] epsilon": _epsilon(tuples, constraint.corners, own.delta or 0)
            for k, constraint in enumerate(problem.constraints)
            if isinstance(constraint, DistributionPrivacy | Pufferfish)
        },
    }


def _matrix_figures(problem: Problem, made: Mechanism) -> dict[str, Any]:
    kept = measure_constraints(problem, made)
    return {
        "loss": measures.expected_loss(made, problem.prior, problem.loss_matrix),
        "worst_loss": measures.worst_loss(made, problem.loss_matrix),
        **{f"constraints[{row.constraint}] {row.quantity}": row.measured for row in kept},
    }


def _epsilon(tuples: Tupling, pairs: Any, delta: Number) -> float:
    return max(tuples.epsilon(a, b, delta).upper for a, b in pairs)


OPTIMUM = "optimum"


@record
class Comparison(Shown):
    """``rows`` have ε, the mechanism, its loss, how far that is above the optimum, as a share, and
    the largest share of what the constraints allow that it uses.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin), om.distances.hamming(), constraints=[om.DifferentialPrivacy(1)]
    ... )
    >>> table = om.compare(problem, epsilons=["ln 3"])
    >>> [row["mechanism"] for row in table.rows]
    ['optimum', 'exponential', 'randomized_response']
    >>> print(table.frame().loss.round(4).tolist())
    [0.25, 0.366, 0.25]
    >>> print(table)
           ε  mechanism                   loss    above    uses
       1.099  optimum                     0.25     0.0%    100%
       1.099  exponential             0.366025    46.4%     50%
       1.099  randomized_response         0.25     0.0%    100%
    >>> figure = table.plot()
    """

    rows: tuple[dict[str, Any], ...]

    def frame(self) -> pd.DataFrame:
        """The rows as a table of pandas."""
        pandas = needed("pandas", "parquet", where="frame")
        return pandas.DataFrame(list(self.rows))

    def __repr__(self) -> str:
        """A line for every row, as a table."""
        lines = [f"{'ε':>8}  {'mechanism':<20}{'loss':>12}{'above':>9}{'uses':>8}"]
        for row in self.rows:
            shares = f"{row['above']:>9.1%}{row['uses']:>8.0%}".replace("nan%", "    ")
            lines.append(
                f"{row['epsilon']:>8.4g}  {row['mechanism']:<20}{row['loss']:>12.6g}{shares}"
            )
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return str(self.frame()._repr_html_())

    def plot(self) -> Figure:
        """Loss against ε, a line for every mechanism."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6, 4), layout="constrained")
        axes = figure.subplots()
        for name in dict.fromkeys(row["mechanism"] for row in self.rows):
            own = [row for row in self.rows if row["mechanism"] == name]
            axes.plot(
                [row["epsilon"] for row in own], [row["loss"] for row in own], "o-", label=name
            )
        axes.set_xlabel("ε")
        axes.set_ylabel("loss")
        axes.legend(frameon=False)
        return figure


@checked_arguments
def compare(
    problem: Problem,
    epsilons: Sequence[Number],
    mechanisms: Sequence[str] | None = None,
    *,
    gap: float | None = None,
) -> Comparison:
    """The optimum and known mechanisms at several ε: losses, and by how much they are larger.

    Parameters
    ----------
    epsilons:
        Each takes the place of the ε of the problem's one constraint that has one.
    mechanisms:
        "optimum" and the names of ``om.mechanisms.known``; unless given, all that exist for the
        problem.

    Raises
    ------
    ProblemError
        On an unknown name, a problem with no ε or several, and where a mechanism that is named
        does not exist for its secrets.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(line), km, constraints=[om.MetricPrivacy(1, km)])
    >>> table = om.compare(problem, epsilons=["ln 2"], mechanisms=["optimum", "geometric"])
    >>> [round(row["loss"], 4) for row in table.rows]  # geometric noise is optimal here
    [0.5556, 0.5556]
    """
    having = [k for k, stated in enumerate(problem.constraints) if hasattr(stated, "epsilon")]
    if len(having) != 1:
        raise ProblemError(
            f"has {len(having)} constraints with an ε",
            where="problem",
            remedy="Compare a problem with one constraint that has an ε",
        )
    if not len(epsilons):
        raise ProblemError("is empty", where="epsilons", remedy="Give one or more")
    names = [OPTIMUM, *KNOWN] if mechanisms is None else list(mechanisms)
    for name in names:
        if name != OPTIMUM:
            require_name(name)
    rows: list[dict[str, Any]] = []
    template = ObjectTemplate(problem)
    for epsilon in epsilons:
        asked = template.source([(f"constraints[{having[0]}].epsilon", epsilon)]).build()
        own: Any = asked.constraints[having[0]]
        design = solve(asked, gap=gap)
        for name in names:
            try:
                found = design.mechanism if name == OPTIMUM else known(name, asked, epsilon)
            except ProblemError:
                if mechanisms is None:
                    continue
                raise
            lost = _loss(found, asked)
            rows.append(
                {
                    "epsilon": float(own.epsilon),
                    "mechanism": name,
                    "loss": lost,
                    "above": max(lost / design.loss - 1, 0.0) if design.loss else float("nan"),
                    "uses": _share(found, own, asked),
                }
            )
    return Comparison(tuple(rows))


def _loss(found: Mechanism, problem: Problem) -> float:
    if problem.objective == "worst_loss":
        return float(measures.worst_loss(found, problem.loss_matrix))
    return float(measures.expected_loss(found, problem.prior, problem.loss_matrix))


def _share(found: Mechanism, stated: Constraint, problem: Problem) -> float:
    kept = stated.measured(found, problem.space)
    if kept is None or not kept.promised:
        return float("nan")
    return kept.measured / kept.promised
