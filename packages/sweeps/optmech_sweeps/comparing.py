"""The optimum of a problem beside what people use in its place, at several ε."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from optmech.analysis import measures
from optmech.base.machine import needed
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.number import Number
from optmech.pipeline.solve import solve
from optmech.problem import Constraint, Problem
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism
from optmech_sweeps.baselines import KNOWN, known, require_name
from optmech_sweeps.templates import ObjectTemplate

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

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
