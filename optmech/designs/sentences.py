"""How good a design is proved to be, in sentences that people read, made of its ``facts``: among
which mechanisms, and of which number. They never say more than was proved."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from optmech.designs.design import Design, OuterProof, unit_after
from optmech.designs.facts import Aim, Among, Facts, facts_of, infeasible_among
from optmech.designs.promise import Promise
from optmech.exact.number import from_above, from_below
from optmech.problem import Problem

_DIGITS = 2
_REPORTS = "with these reports"
"""The observables of the problem: others may lose less."""
_COUNTED = "losses between vertices count as linear"
_FINER = "on a finer mesh there may be one"
_NONE_FINER = "no finer mesh helps"
UNKNOWN = "no lower bound was looked for that holds for every mechanism"


class AimWords(NamedTuple):
    """What a problem asks to be largest or least, in words."""

    asked: str
    reached: str
    superlative: str
    none: str
    """That no mechanism is beyond the bound of it."""


def aim_words(aim: Aim, loss: str = "") -> AimWords:
    """The words of an aim; ``loss`` is the name of the loss, where it is known better."""
    name = loss or aim.of or "given as a matrix"
    if aim.objective == "maximize_distortion":
        return AimWords(
            f"nothing: {aim.quantity} ({aim.of}) is maximised",
            f"the error that it leaves the best attack ({aim.of})",
            f"leaves the best attack the largest error ({aim.of})",
            "can leave the best attack more",
        )
    if aim.objective == "minimize_leakage":
        gained = f"{aim.quantity} ({aim.of})"
        superlative = f"leaves the best guess the least to gain ({aim.of})"
        return AimWords(gained, gained, superlative, "can leave the best guess less")
    if aim.objective == "minimize_variance":
        spread = f"{aim.quantity} ({aim.of})"
        return AimWords(spread, spread, f"has the least {spread[4:]}", "can have less")
    lost = f"{aim.quantity} ({name}{f'; {_COUNTED}' if aim.counted else ''})"
    none = "can have less of what counts" if aim.counted else "can have less"
    return AimWords(lost, f"its {lost}", f"has the least {lost}", none)


def form_words(among: Among) -> str:
    """What mechanisms are, among which something is proved; empty of all."""
    where = {"segments": "on every segment", "triangles": "in every triangle", "": ""}
    here = f"{where[among.pieces]} of this mesh"
    match among.form:
        case "all":
            return ""
        case "linear":
            return f"linear {here}"
        case "coefficients":
            what = "linear" if among.degree == 1 else f"polynomials of degree {among.degree}"
            return f"{what} {here}, with Bernstein coefficients that meet the condition checked"


def all_words(among: Among, all_kept: bool = True) -> str:
    """All mechanisms of the form; that keep the other constraints too, where they do."""
    form = form_words(among)
    found = f"all mechanisms {_REPORTS} that are {form}" if form else f"all mechanisms {_REPORTS}"
    if not all_kept or len(among.keeps) < 2 or not form:
        return found
    return f"{found} and keep all {len(among.keeps)} constraints"


def none_words(among: Among, private: bool = False) -> str:
    """No mechanism of the form that keeps the constraints, or that is ``private`` at every point
    where it need not keep others."""
    form, count = form_words(among).replace("polynomials", "a polynomial"), len(among.keeps)
    kept = "keeps the constraint" if count == 1 else f"keeps all {count} constraints"
    parts = [kept] * bool(count) + [f"is {form}"] * bool(form)
    if private:
        parts = ["is private at every point"]
    none = f"no mechanism {_REPORTS}"
    return f"{none} that {' and '.join(parts)}" if parts else none


def infeasible_words(problem: Problem, reason: str, outer: OuterProof | None) -> str:
    """Why nothing is feasible, and of which mechanisms that is proved."""
    among = infeasible_among(problem, outer)
    if among.form == "all":
        return reason if problem.mesh is None else f"{reason}; {_NONE_FINER}"
    return f"among {all_words(among, all_kept=False)}: {reason}; {_FINER}"


def _nothing(design: Design, among: Among) -> str:
    count = len(design.problem.constraints)
    kept = {0: "every probability", 1: "the constraint"}.get(count, f"all {count} constraints")
    form = form_words(among).replace("polynomials", "a polynomial")
    none, finer = (f" that is {form}", f"; {_FINER}") if form else ("", "")
    return f"No mechanism {_REPORTS}{none} keeps {kept}{finer}."


def nearness(design: Design) -> str:
    """ "the least possible", "within 13 % of the least", or that nothing is known, of what is
    optimised; for a design at every point with the mechanisms that are compared: those that are
    linear on its mesh, and all there are. The words of a design with a mechanism."""
    facts = facts_of(design.problem, design)
    near = _nearness(design, facts.aim)
    if facts.among.form == "all":
        return near
    counted = f" ({_COUNTED})" if facts.aim.counted else ""
    return f"{near} of {all_words(facts.among)}{counted}; {beyond_words(design, facts)}"


def beyond_words(design: Design, facts: Facts) -> str:
    """How near a design on a mesh is to the best of all mechanisms."""
    if facts.every is None or facts.aim.counted:
        return f"how far that is from the best of all mechanisms {_REPORTS} is not known"
    return f"{within_least(design.loss, design.lower_bound)} of all mechanisms {_REPORTS}"


def _nearness(design: Design, aim: Aim) -> str:
    best, maximised = aim.sense, aim.sense == "largest"
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


def from_best(design: Design) -> str:
    """How far a design on a mesh is from the best of all mechanisms, after a comma; empty where
    that is not known."""
    if not design.lower_bound > 0:
        return ""
    above = Fraction(design.loss) / Fraction(design.lower_bound) - 1
    return f", at most {percent(above)} from the best possible" if above > 0 else ""


def planar_laplace(design: Design) -> float | None:
    """The mean distance of a report by planar Laplace noise, whose density falls as e^(-ε d), with
    the promise of a design at every point of a region: 2/ε. None where the loss of the design is
    no such distance."""
    return laplace_of(design.problem, design.promise)


def laplace_of(problem: Problem, promise: Promise) -> float | None:
    """As ``planar_laplace``, of a problem before it is solved, and what designs for it promise."""
    measure, mesh = promise.measure, problem.mesh
    if promise.scope != "every point" or not promise.epsilon or measure is None or mesh is None:
        return None
    plain = measure.course in ("straight", "great circle") and problem.objective == "expected_loss"
    same = getattr(problem.loss, "name", None) == measure.name
    return 2 / promise.epsilon if plain and same and mesh.is_region else None


def percent(share: Fraction) -> str:
    """A share > 0 with two digits, rounded up."""
    return f"{_up(100 * share)} %"


def _up(value: Fraction) -> str:
    place = _DIGITS - 1 - math.floor(math.log10(value))
    scaled = math.ceil(value * Fraction(10) ** place)
    return f"{Decimal(scaled).scaleb(-place).normalize():f}"


def reached_words(design: Design, loss: str) -> str:
    """How good a design is proved to be, in a sentence; ``loss`` is the name of its loss."""
    facts = facts_of(design.problem, design)
    if design.status == "infeasible":
        return _nothing(design, facts.among)
    words, count = aim_words(facts.aim, loss), len(facts.promises)
    limits = {0: "", 1: " under one constraint"}.get(count, f" under {count} constraints")
    form = form_words(facts.among)
    among = f"all mechanisms {_REPORTS}{f' that are {form}' if form else ''}{limits}"
    more = f"; {beyond_words(design, facts)}" if form else ""
    if design.status == "optimal":
        return f"Of {among}, this one {words.superlative}{more}."
    found = _nearness(design, facts.aim)
    if found.startswith("nothing"):
        best = f"the {facts.aim.sense} of {among}"
        return f"Nothing is known about how far {words.reached} is from {best}{more}."
    return f"Among {among}, {words.reached} is {found}{more}."


class Figure(NamedTuple):
    """A number of a design, and what it is of."""

    name: str
    field: str
    """Of the design."""
    value: float
    unit: str
    why: str
    """What it is a bound of; empty where it is none."""
    known: bool = True
    """False where no such number was proved."""

    @property
    def shown(self) -> str:
        """The number, a bound on its side."""
        if self.name == "upper bound":
            return from_above(self.value)
        bound = self.field in ("bound", "lower_bound")
        return from_below(self.value) if bound else f"{self.value:.6g}"


def figures(design: Design) -> Iterator[Figure]:
    """The loss, what is optimised, and what was proved of both. A bound says of which mechanisms,
    and of which number."""
    problem = design.problem
    facts, lost = facts_of(problem, design), unit_after(problem, problem.loss).strip()
    aim, among = facts.aim, facts.among
    none = f"{none_words(among)} {aim_words(aim).none}"
    yield Figure("loss", "loss", design.loss, lost, _COUNTED if aim.counted else "")
    if aim.objective == "minimize_variance":
        yield Figure("variance", "objective", design.objective, "", "")
        # its bound is of all reports that there may be
        any_reports = none.replace(f" {_REPORTS}", "")
        yield Figure("least variance", "bound", design.bound, "", any_reports)
        return
    if aim.lower != "objective":
        least, known = design.lower_bound, design.lower_bound > 0
        unit = unit_after(problem, getattr(problem.objective, "distance", None)).strip()
        yield Figure("lower bound", "lower_bound", least, lost, f"on the {aim.lower}", known)
        largest = aim.sense == "largest"
        name, bound = ("distortion", "upper bound") if largest else ("leakage", "least leakage")
        yield Figure(name, "objective", design.objective, unit, "")
        yield Figure(bound, "bound", design.bound, unit, none)
        return
    known = facts.every is not None
    if among.form != "all":
        yield Figure("bound on this mesh", "bound", design.bound, lost, none)
        none = UNKNOWN
        if facts.every is not None:
            fewer = facts.every.keeps != among.keeps
            none = f"{none_words(facts.every, private=fewer)} can have less"
    yield Figure("lower bound", "lower_bound", design.lower_bound, lost, none, known)


def figure_words(figure: Figure) -> str:
    """A number with its unit, and what it is a bound of in brackets."""
    if not figure.known:
        return f"unknown ({figure.why})"
    unit = f" {figure.unit}" if figure.unit else ""
    return f"{figure.shown}{unit}{f' ({figure.why})' if figure.why else ''}"


def figures_words(design: Design) -> str:
    """All figures that are known, in a line."""
    known = (f"{own.name} {own.shown}" for own in figures(design) if own.known)
    return ", ".join(known)
