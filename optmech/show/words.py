"""A problem in words, and how near a design is to the best possible, in words that never say more
than was proved."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from optmech.designs.design import Design, unit_after
from optmech.problem import MaximizeDistortion, MinimizeLeakage, Problem
from optmech.problem.gains import gain_words
from optmech.reading.errors import printable
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.labels import label_text
from optmech.spaces.observables import Subsets, Suppressible
from optmech.spaces.tables import distance_words


def describe(problem: Problem, loss: str = "") -> list[tuple[str, str]]:
    """Names and values that say what is wanted; ``loss`` is its name, where it is known better
    than the problem knows it."""
    rows = [("secrets", domain(problem.secrets))]
    if problem.observables is not problem.secrets and problem.observables != problem.secrets:
        rows.append(("observables", domain(problem.observables)))
    rows += [
        ("prior", f"entropy {problem.prior.entropy:.3f} bits"),
        ("minimise", _aim(problem, loss).asked),
    ]
    for k, constraint in enumerate(problem.constraints):
        promise = constraint.promise(problem.space)
        rows.append((f"constraint {k}", f"{constraint.title}: {promise}"))
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


def increase_words(share: float) -> str:
    """By how much a loss is above or below another."""
    return f"{100 * abs(share):.2g} % {'below' if share < 0 else 'above'}"


def after(unit: str) -> str:
    """A unit behind a number; empty where there is none."""
    return f" {unit}" if unit else ""


def in_brackets(unit: str) -> str:
    """A unit behind the name of a quantity; empty where there is none."""
    return f" ({unit})" if unit else ""


def label(value: object) -> str:
    """A label on one printable line."""
    return printable(label_text(value))


class _Aim(NamedTuple):
    """What a problem asks to be largest or least, in words."""

    best: str
    """ "largest" or "least"."""
    asked: str
    reached: str
    superlative: str


def _aim(problem: Problem, loss: str = "") -> _Aim:
    objective = problem.objective
    if isinstance(objective, MaximizeDistortion):
        name = distance_words(objective.distance)
        return _Aim(
            "largest",
            f"nothing: the error of the best attack ({name}) is maximised",
            f"the error that it leaves the best attack ({name})",
            f"leaves the best attack the largest error ({name})",
        )
    if isinstance(objective, MinimizeLeakage):
        name = gain_words(objective.gain)
        gained = f"what the best guess gains ({name})"
        superlative = f"leaves the best guess the least to gain ({name})"
        return _Aim("least", gained, gained, superlative)
    which = "worst-case" if objective == "worst_loss" else "expected"
    named = distance_words(problem.loss) if callable(problem.loss) else "given as a matrix"
    lost = f"{which} loss ({loss or named})"
    return _Aim("least", lost, f"its {lost}", f"has the least {lost}")


_DIGITS = 2


def nearness(design: Design) -> str:
    """ "the least possible", "within 13 % of the least", or that nothing is known; of the largest
    where the attack's error is maximised. The words of a design with a mechanism; for one at every
    point they say what is compared: other mechanisms on its mesh, and all there are."""
    if design.mesh is None:
        return _nearness(design)
    every = within_least(design.loss, design.lower_bound)
    return f"{_nearness(design)} on this mesh; {every} of all mechanisms"


def _nearness(design: Design) -> str:
    best = _aim(design.problem).best
    maximised = best == "largest"
    if design.status == "optimal":
        return f"the {best} possible"
    high, low = (design.bound, design.objective) if maximised else (design.objective, design.bound)
    if not (math.isfinite(high) and low > 0):
        return f"nothing is known about how far from the {best}"
    if maximised:
        return f"within {percent(1 - Fraction(low) / Fraction(high))} of the {best}"
    above = Fraction(high) / Fraction(low) - 1
    if above > 1:
        return f"at most {_up(above + 1)} times the {best}"
    return f"within {percent(above)} of the {best}"


def within_least(value: float, bound: float) -> str:
    """How near a value >= 0 is to the least, of which ``bound`` is a lower bound."""
    if bound <= 0:
        return "nothing is known about how far from the least" if value else "the least possible"
    above = Fraction(value) / Fraction(bound) - 1
    return f"within {percent(above)} of the least" if above > 0 else "the least possible"


def percent(share: Fraction) -> str:
    """A share > 0 with two digits, rounded up."""
    return f"{_up(100 * share)} %"


def _up(value: Fraction) -> str:
    place = _DIGITS - 1 - math.floor(math.log10(value))
    scaled = math.ceil(value * Fraction(10) ** place)
    return f"{Decimal(scaled).scaleb(-place).normalize():f}"


def lead(design: Design, loss: str) -> str:
    """What the mechanism does and how good it is proved to be, in two sentences or three."""
    problem = design.problem
    if design.gradient is not None:
        return _lead_everywhere(design, design.gradient.index, loss)
    secrets = domain(problem.secrets)
    if problem.observables == problem.secrets:
        reports = "one of them, chosen at random"
    else:
        reports = f"a random one of {domain(problem.observables)}"
    return (
        f"The secret is one of {secrets}; what is reported is {reports}. {_reached(design, loss)}"
    )


def _lead_everywhere(design: Design, own: int, loss: str) -> str:
    """What a mechanism for every point of a region does, which constraint ``own`` promises, and how
    good it is proved to be."""
    problem, triangles = design.problem, design.region.mesh.triangles
    promise = problem.constraints[own].promise(problem.space)
    start = (
        f"What is reported is a random one of {domain(problem.observables)}, from any point "
        f"of a region of {len(triangles):,} triangles: {promise}. "
    )
    beside = [
        f"{stated.title}: {stated.promise(problem.space)}"
        for k, stated in enumerate(problem.constraints)
        if k != own
    ]
    if beside:
        start += f"At the places of the prior it also keeps {'; '.join(beside)}. "
    best = f"this one has the least expected loss ({loss})"
    if design.status != "optimal":
        best = f"its expected loss ({loss}) is {within_least(design.loss, design.bound)}"
    outer = "how far that is from the best of all mechanisms is not known"
    if design.certificate.outer is not None:
        outer = (
            f"of all that keep {'these promises' if beside else 'this promise'}, on whatever "
            f"mesh or none, it is {within_least(design.loss, design.lower_bound)}"
        )
    return f"{start}Of all mechanisms on this mesh{' that do' if beside else ''}, {best}; {outer}."


def _reached(design: Design, loss: str) -> str:
    problem = design.problem
    count = len(problem.constraints)
    limits = {0: "", 1: " under one constraint"}.get(count, f" under {count} constraints")
    if design.status == "infeasible":
        kept = {1: "the constraint"}.get(count, f"all {count} constraints")
        return f"No mechanism keeps {kept}."
    aim = _aim(problem, loss)
    if design.status == "optimal":
        return f"Of all mechanisms{limits}, this one {aim.superlative}."
    found = nearness(design)
    if found.startswith("nothing"):
        return f"Nothing is known about how far {aim.reached} is from the {aim.best}{limits}."
    return f"Among all mechanisms{limits}, {aim.reached} is {found}."
