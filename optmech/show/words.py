"""A problem and a design in words."""

from __future__ import annotations

from optmech.designs.design import Design, unit_after
from optmech.designs.facts import facts_of
from optmech.designs.sentences import aim_words, reached_words
from optmech.designs.stated import promises_of
from optmech.problem import Problem
from optmech.reading.errors import printable
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.labels import label_text
from optmech.spaces.observables import Subsets, Suppressible
from optmech.spaces.tables import distance_words


def describe(problem: Problem, loss: str = "") -> list[tuple[str, str]]:
    """Names and values that say what is wanted; ``loss`` is its name, where it is known better
    than the problem knows it."""
    rows = [("secrets", subject(problem))]
    if problem.mesh is not None:
        rows.append(("prior over", domain(problem.secrets)))
    if problem.observables is not problem.secrets and problem.observables != problem.secrets:
        rows.append(("observables", domain(problem.observables)))
    rows += [
        ("prior", f"entropy {problem.prior.entropy:.3f} bits"),
        ("minimise", aim_words(facts_of(problem).aim, loss).asked),
    ]
    for k, constraint in enumerate(problem.constraints):
        promise = constraint.promise(problem.space)
        rows.append((f"constraint {k}", f"{constraint.called}: {promise}"))
    return rows


def subject(problem: Problem) -> str:
    """What reports are about, in a few words."""
    mesh = problem.mesh
    return domain(problem.secrets) if mesh is None else f"every point of {mesh.words}"


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
    return after(problem.space.unit_of(distance))


def loss_unit(problem: Problem) -> str:
    """The unit of the loss with a space before it; empty where it has none."""
    return unit_after(problem, problem.loss)


def unit_of_promise(problem: Problem, index: int, quantity: str) -> str:
    """The unit of what a constraint promises: that of its distance, or per it; empty where it has
    none."""
    constraint = problem.constraints[index]
    if quantity == "loss":
        return loss_unit(problem).strip()
    distance = getattr(constraint, "distance", None)
    unit = "" if distance is None else problem.space.unit_of(distance_words(distance))
    if not unit or quantity not in ("epsilon", "distortion"):
        return ""
    return f"per {unit}" if quantity == "epsilon" else unit


def after(unit: str) -> str:
    """A unit behind a number; empty where there is none."""
    return f" {unit}" if unit else ""


def in_brackets(unit: str) -> str:
    """A unit behind the name of a quantity; empty where there is none."""
    return f" ({unit})" if unit else ""


def label(value: object) -> str:
    """A label on one printable line."""
    return printable(label_text(value))


def lead(design: Design, loss: str) -> str:
    """What the mechanism does and how good it is proved to be, in two sentences or three."""
    problem = design.problem
    reports = f"a random one of {domain(problem.observables)}"
    if problem.mesh is not None:
        start = _lead_everywhere(design, reports)
    else:
        if problem.observables == problem.secrets:
            reports = "one of them, chosen at random"
        start = f"The secret is one of {domain(problem.secrets)}; what is reported is {reports}."
    return f"{start} {reached_words(design, loss)}"


def _lead_everywhere(design: Design, reports: str) -> str:
    """What a mechanism for every point of a mesh does, and what it promises."""
    problem, mesh = design.problem, design.mesh
    assert mesh is not None
    stated = promises_of(problem)
    own = [part for part in stated if part.promised.scope == "every point"]
    promise = "; ".join(part.words for part in own)
    start = f"What is reported is {reports}, from any point: {promise}."
    beside = "; ".join(f"{part.title}: {part.words}" for part in stated if part not in own)
    places = "the places of the prior" if mesh.is_region else "the vertices"
    kept = "also keeps" if design.exact is not None else "is also to keep"
    return f"{start} At {places} it {kept} {beside}." if beside else start
