"""A problem in words."""

from __future__ import annotations

from optmech.exact.number import Exact
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
from optmech.reading.errors import printable
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.labels import label_text
from optmech.spaces.observables import Subsets, Suppressible
from optmech.spaces.tabulated import distance_words

_KINDS = {
    MetricPrivacy: "metric privacy",
    DifferentialPrivacy: "differential privacy",
    DistortionPrivacy: "distortion privacy",
    DistributionPrivacy: "distribution privacy",
    LossBound: "loss bound",
    Support: "support",
}

_DIVERGENCES = {
    "kl": "KL divergence at most",
    "reverse_kl": "reverse KL divergence at most",
    "tv": "total variation at most",
    "chi2": "χ² divergence at most",
    "hellinger": "squared Hellinger distance at most",
}


def describe(problem: Problem, loss: str = "") -> list[tuple[str, str]]:
    """Names and values that say what is wanted; ``loss`` is its name, where it is known better
    than the problem knows it."""
    rows = [("secrets", domain(problem.secrets))]
    if problem.observables is not problem.secrets and problem.observables != problem.secrets:
        rows.append(("observables", domain(problem.observables)))
    rows += [
        ("prior", f"entropy {problem.prior.entropy:.3f} bits"),
        ("minimise", _objective(problem, loss)),
    ]
    for k, constraint in enumerate(problem.constraints):
        rows.append((f"constraint {k}", f"{kind(constraint)}: {promise(constraint, problem)}"))
    return rows


def domain(value: Domain) -> str:
    """What a domain is, in a few words."""
    if isinstance(value, Suppressible):
        return f"{domain(value.inner)}, and {value.labels[-1]!s}"
    if isinstance(value, Subsets):
        return f"{len(value)} sets of secrets"
    if isinstance(value, Grid):
        width, height = value.cell
        return (
            f"{len(value)} cells, {value.rows} rows x {value.columns} columns of "
            f"{width:.4g} x {height:.4g}{after(value.unit)}"
        )
    if value.points is None:
        return f"{len(value)} labels"
    where = "on the globe" if value.coordinates == "lonlat" else "in the plane"
    if value.points.shape[1] == 1:
        where = "on a line"
    return f"{len(value)} points {where}"


def unit_of(problem: Problem, distance: str) -> str:
    """The unit of a distance with a space before it; empty where it has none."""
    if distance == "haversine":
        return " km"
    lengths = ("euclidean", "manhattan", "graph")
    unit = problem.secrets.unit if distance in lengths else ""
    return after(unit)


def after(unit: str) -> str:
    """A unit behind a number; empty where there is none."""
    return f" {unit}" if unit else ""


def in_brackets(unit: str) -> str:
    """A unit behind the name of a quantity; empty where there is none."""
    return f" ({unit})" if unit else ""


def label(value: object) -> str:
    """A label on one printable line."""
    return printable(label_text(value))


def kind(constraint: Constraint) -> str:
    """The name of a constraint's kind."""
    return _KINDS[type(constraint)]


def promise(constraint: Constraint, problem: Problem) -> str:
    """What a constraint asks for."""
    match constraint:
        case MetricPrivacy():
            text = f"ε = {exact(constraint.epsilon)} per {per(problem, constraint.distance)}"
            if constraint.threshold is not None:
                text += f", for secrets up to {constraint.threshold:g} apart"
            if constraint.observable_threshold is not None:
                text += f", where observables are up to {constraint.observable_threshold:g} away"
            return text + _delta(constraint.delta)
        case DifferentialPrivacy():
            return (
                f"ε = {exact(constraint.epsilon)}, {_adjacency(constraint)}"
                f"{_delta(constraint.delta)}"
            )
        case DistortionPrivacy():
            against = "the prior" if constraint.prior is None else "another prior"
            return (
                f"error of the best attack with {against} at least "
                f"{exact(constraint.minimum)} ({distance_words(constraint.distance)})"
            )
        case DistributionPrivacy():
            count = len(constraint.pairs)
            pairs = "one pair" if count == 1 else f"{count} pairs"
            scaled = "" if constraint.scale is None else ", scaled"
            measure = (
                "ε =" if constraint.divergence == "max" else _DIVERGENCES[constraint.divergence]
            )
            return (
                f"{measure} {exact(constraint.epsilon)} for {pairs} of distributions{scaled}"
                f"{_delta(constraint.delta)}"
            )
        case LossBound():
            which = "loss of every secret" if constraint.worst_case else "expected loss"
            own = "" if constraint.loss is None else " (its own loss)"
            return f"{which} at most {exact(constraint.maximum)}{own}"
        case Support():
            if constraint.radius is not None:
                return f"observables within {constraint.radius:g} only"
            return "observables of a given mask only"


def exact(value: Exact) -> str:
    """A number as it was written."""
    text = value.text
    return text if isinstance(text, str) else f"{text:g}"


def per(problem: Problem, distance: object) -> str:
    """The unit that ε is per."""
    name = distance_words(distance)
    unit = unit_of(problem, name).strip()
    if unit or name.startswith("given"):
        return f"{unit or 'unit of distance'} ({name})"
    return f"unit of {name} distance"


def _objective(problem: Problem, loss: str) -> str:
    objective = problem.objective
    if isinstance(objective, MaximizeDistortion):
        name = distance_words(objective.distance)
        return f"nothing: the error of the best attack ({name}) is maximised"
    which = "worst-case" if objective == "worst_loss" else "expected"
    named = distance_words(problem.loss) if callable(problem.loss) else "given as a matrix"
    return f"{which} loss ({loss or named})"


def _delta(delta: Exact) -> str:
    return f", δ = {exact(delta)}" if delta > 0 else ""


def _adjacency(constraint: DifferentialPrivacy) -> str:
    if constraint.adjacency == "all":
        return "all pairs"
    if callable(constraint.adjacency[0]):
        return f"pairs up to {constraint.adjacency[1]:g} apart"
    return f"{len(constraint.adjacency)} pairs"
