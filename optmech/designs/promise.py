"""What a problem or a design promises about *points*, in sentences that people read; what
thresholds leave out, and the price of keeping the promise.

Constraints speak of secrets: centres of cells, places, labels. Users have positions, and several
reports. What holds between positions is said here in one way, for every place that states it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from optmech.analysis import measures
from optmech.analysis.measures import bayes_vulnerability
from optmech.analysis.positions import everywhere
from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.certificate.objective import objective_value
from optmech.certificate.proved import Claim
from optmech.problem import Constraint, MetricPrivacy, Problem
from optmech.spaces.distances import evaluate
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.prior import Prior
from optmech.spaces.regions import Regions, grid_boxes
from optmech.spaces.tabulated import distance_words

Scope = Literal["every point", "cells", "places", "secrets", "nothing"]
METRES = (100, 1_000, 10_000)
"""Distances for which a promise is said in odds."""
_IN_METRES = {"km": 1000.0, "m": 1.0}
MOST = 1e6
"""Times as likely: beyond it nothing is hidden that is worth a number."""
_LARGEST = 700
"""Of a log ratio whose exponential is a float."""
_MEASURED = 400
"""Cells up to which what holds between positions is measured, and not only bounded."""
_PAIRS = 20_000
_DIGITS = 3
_REPEATS = (
    "Every fresh report spends it again: n independent reports promise n times ε. Repeat a report "
    "for as long as the {} is the same (sticky reports)."
)


@record
class Promise(Shown):
    """What is promised about two positions: of every point, or between centres or places only."""

    scope: Scope
    sentence: str
    """What holds, and between what."""
    epsilon: float | None = None
    """Per ``unit`` of distance; None where the promise is of no such form."""
    unit: str = ""
    slack: float = 0.0
    """Of distance, in ``unit``, that counts on top of that of two positions: the diagonal of a
    cell."""
    step: float | None = None
    """The largest log ratio of two positions at distance 0, measured; None where it was not."""
    violated: float | None = None
    """Share of pairs of positions whose log ratio exceeds ε times their distance, measured."""

    def factor(self, metres: float) -> float:
        """How many times as likely a report may be from one of two positions so far apart as from
        the other; inf where nothing is promised of it, nan where the unit is no length."""
        scale = _IN_METRES.get(self.unit)
        if scale is None or self.epsilon is None:
            return math.nan
        log_ratio = self.epsilon * (metres / scale + self.slack)
        return math.exp(log_ratio) if log_ratio < _LARGEST else math.inf

    def snapped(self, slack: float) -> Promise:
        """Of positions that are moved first, so that the distance of two grows by up to ``slack``,
        in ``unit``."""
        if not slack or self.epsilon is None:
            return self
        per = f" {self.unit}" if self.unit else ""
        more = (
            f" Positions are moved to a lattice first, so that reports repeat: that counts as up "
            f"to {slack:.3g}{per} more of distance, a factor of at most "
            f"{at_most(self.epsilon * slack)}."
        )
        return replace(self, sentence=self.sentence + more, slack=self.slack + slack)

    @property
    def odds(self) -> dict[int, float]:
        """``factor`` at 100 m, 1 km and 10 km; empty where ε is per no length."""
        if self.epsilon is None or self.unit not in _IN_METRES:
            return {}
        return {metres: self.factor(metres) for metres in METRES}

    @property
    def odds_words(self) -> str:
        """The odds in words; empty without any."""
        who = {"every point": "points", "cells": "positions"}.get(self.scope, "places")
        said = (
            f"{length_words(metres)} apart at most {times(factor)} times as likely"
            if factor <= MOST
            else f"{length_words(metres)} apart over a million times: not hidden"
            for metres, factor in self.odds.items()
        )
        return f"a report from {who} " + "; ".join(said) if self.odds else ""

    @property
    def repeats(self) -> str:
        """What several reports do to it."""
        placed = self.scope in ("every point", "cells", "places")
        return _REPEATS.format("place" if placed else "secret")

    @property
    def sticky(self) -> str:
        """What a report that is made once and repeated spends."""
        return "The same report again spends nothing: reports of n places promise n times ε."

    @property
    def brief(self) -> str:
        """The promise in a few words: ε with its unit, in odds, and of several reports."""
        where = {"every point": "at every point", "cells": "between centres of cells",
                 "places": "between places", "secrets": "between secrets"}  # fmt: skip
        if self.epsilon is None:
            told = "at every point" if self.scope == "every point" else "between secrets"
            return "no promise" if self.scope == "nothing" else f"private {told}"
        per = f" per {self.unit[:40]!s}" if self.unit.isprintable() and self.unit else ""
        odds = ", ".join(
            f"{times(factor)} at {length_words(metres)}" for metres, factor in self.odds.items()
        )
        more = f", odds {odds}" if odds else ""
        return f"ε = {self.epsilon:.4g}{per} {where[self.scope]}{more}, n reports n ε"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Names and sentences: what is promised, in odds, and what repeats do."""
        odds = [("in odds", self.odds_words)] if self.odds else []
        return [("promised", self.sentence), *odds, ("repeats", self.repeats)]

    def plain(self) -> dict[str, Any]:
        """For JSON: the sentence, its scope, and the odds by metres."""
        return {
            "promise": self.sentence,
            "scope": self.scope,
            "odds": {str(metres): factor for metres, factor in self.odds.items()},
            "at_distance_0": self.step,
            "violated": self.violated,
            "repeats": self.repeats,
        }


def guess_words(mechanism: Mechanism, prior: Prior) -> str:
    """How often the best guess of a place is right, from one report and from none, and among how
    many places."""
    seen, _, blind = guess_shares(mechanism, prior).partition(", without a report ")
    return (
        f"The best guess from one report, one of {len(prior.domain):,}, is right in {seen} of "
        f"cases, that without a report in {blind}."
    )


def guess_shares(mechanism: Mechanism, prior: Prior) -> str:
    """How often the best guess is right, from a report and from none, in a few words."""
    seen, blind = bayes_vulnerability(mechanism, prior), float(prior.weights.max())
    return f"{100 * seen:.3g} %, without a report {100 * blind:.3g} %"


def times(factor: float) -> str:
    """A factor with three digits, rounded up; in words beyond a million."""
    if factor > MOST:
        return "over a million"
    place = _DIGITS - 1 - math.floor(math.log10(factor))
    # what floats leave behind the last digit of a logarithm's exponential is no next digit
    return f"{math.ceil(factor * 10.0**place * (1 - 1e-9)) / 10.0**place:,.6g}"


def at_most(log_ratio: float) -> str:
    """How many times as likely a report may be that has this log ratio."""
    return times(math.exp(min(log_ratio, _LARGEST)))


def length_words(metres: float) -> str:
    """A length in metres, or in km from one on."""
    return f"{metres:g} m" if metres < 1000 else f"{metres / 1000:g} km"


def promise_of(problem: Problem, mechanism: Mechanism | None = None) -> Promise:
    """What a problem promises about positions.

    With a ``mechanism`` on cells it is measured what two positions on both sides of an edge reveal
    there; without one the bound is said that ε allows.
    """
    stated = next((c for c in problem.constraints if isinstance(c, MetricPrivacy)), None)
    if stated is None or stated.delta > 0:
        return _of_others(problem, problem.constraints[0] if problem.constraints else None)
    if stated.threshold is not None or stated.observable_threshold is not None:
        told = stated.promise(problem.space)
        return Promise("secrets", f"Between the secrets that thresholds keep: {told}.")
    name, epsilon = distance_words(stated.distance), float(stated.epsilon)
    unit = problem.space.unit_of(name)
    rate = f"ε = {stated.epsilon.words} per {unit or problem.space.per(stated.distance)}"
    if stated.epsilon.log_of is not None:
        rate += f", {epsilon:.4g}"
    if stated.everywhere is not None:
        return at_every_point(epsilon, rate, unit, mesh=stated.everywhere)
    return between(problem.secrets, name, (epsilon, rate, unit), mechanism)


def at_every_point(
    epsilon: float, rate: str, unit: str, slack: float = 0.0, mesh: Mesh | None = None
) -> Promise:
    """What holds of a region, a line or roads, ε in words being the ``rate``; ``slack`` counts on
    top of a distance."""
    more = f" + {slack:.2g}{f' {unit}' if unit else ''}" if slack else ""
    where, apart = "the region", "d apart"
    if mesh is not None and not mesh.is_region:
        where, apart = mesh.words, "d apart along it"
    sentence = (
        f"At every point of {where}: from any two points {apart} a report is at most "
        f"e^(ε (d{more})) times as likely from one as from the other ({rate})."
    )
    plain = sentence.replace("(ε (d))", "(ε d)")
    return Promise("every point", plain, epsilon, unit, slack)


def between(
    secrets: Domain, distance: str, stated: tuple[float, str, str], mechanism: Mechanism | None
) -> Promise:
    """What holds of secrets: of cells where ``distance`` is euclidean, of places, or of others;
    ``stated`` are ε, ε in words, and the unit it is per."""
    epsilon, rate, unit = stated
    if isinstance(secrets, Grid | Regions) and distance == "euclidean":
        return _of_cells(stated, secrets, mechanism)
    if secrets.points is None or distance not in ("euclidean", "haversine"):
        return Promise("secrets", f"Between the {len(secrets)} secrets: {rate}.", epsilon, unit)
    sentence = (
        f"Between the {len(secrets)} places only: {rate}. A position counts as the place that it "
        "is taken to, so that two positions next to each other may be told apart as two places."
    )
    return Promise("places", sentence, epsilon, unit)


def _of_others(problem: Problem, constraint: Constraint | None) -> Promise:
    if constraint is None:
        return Promise("nothing", "Nothing is promised: the problem states no constraint.")
    told = constraint.promise(problem.space)
    more = len(problem.constraints) - 1
    others = f", and {more} more" if more else ""
    where = "between the secrets"
    if getattr(constraint, "everywhere", None) is not None:
        return Promise("every point", f"{constraint.title}: {told}{others}.")
    if problem.secrets.points is not None:
        where += "; a position counts as the secret that it is taken to"
    return Promise("secrets", f"{constraint.title}: {told}{others}, {where}.")


def _of_cells(
    stated: tuple[float, str, str], secrets: Grid | Regions, mechanism: Mechanism | None
) -> Promise:
    epsilon, rate, unit = stated
    slack = diagonal(secrets)
    step = violated = None
    if mechanism is not None and len(secrets) <= _MEASURED:
        measured = everywhere(mechanism, epsilon, pairs=_PAIRS)
        step, violated = measured.step, measured.violated
    most = epsilon * slack if step is None else step
    sentence = (
        f"Between the centres of cells only: {rate}. Two positions next to each other, on both "
        f"sides of an edge between cells, are told apart by up to {at_most(most)} times (log ratio "
        f"{most:.3g} at distance 0)"
    )
    if violated is not None:
        sentence += f"; {100 * violated:.3g} % of random pairs of positions exceed ε"
    return Promise("cells", f"{sentence}.", epsilon, unit, slack, step, violated)


def diagonal(cells: Grid | Regions) -> float:
    """The largest distance of two centres less that of their cells, at most: the diagonal of the
    largest cell."""
    boxes: Floats = grid_boxes(cells) if isinstance(cells, Grid) else cells.boxes
    return float(np.hypot(*(boxes[:, 2:] - boxes[:, :2]).T).max())


_NEAR = 1e-9
"""What ε measured on another machine may differ by."""
_REPAIRED = 1e-6
"""What a repaired loss measured on another machine may differ by."""
MEASURED = ("constraint", "promised_epsilon", "epsilon", "repaired_loss")
"""What files and summaries have of an approximation."""


@record
class Approximation:
    """What a thresholded problem leaves out (Shokri, PETS 2015, Appendix C).

    ``epsilon`` is the least ε of metric privacy that the released matrix really has (possibly
    inf). ``repaired`` keeps the promised ε for all pairs; ``repaired_loss`` is its loss.
    """

    constraint: int
    promised_epsilon: float
    epsilon: float
    repaired: Mechanism | None
    repaired_loss: float


def measure_approximations(problem: Problem, matrix: Floats) -> tuple[Approximation, ...]:
    """One entry for every metric privacy constraint with a threshold and δ = 0."""
    found: list[Approximation] = []
    if problem.statement.spread is not None:
        # what thresholds leave out is promised at every point
        return ()
    for k, constraint in enumerate(problem.constraints):
        if not isinstance(constraint, MetricPrivacy) or constraint.delta > 0:
            continue
        if constraint.threshold is None and constraint.observable_threshold is None:
            continue
        mechanism = Mechanism(problem.secrets, problem.observables, matrix)
        epsilon = measures.epsilon(mechanism, constraint.distance)
        repaired = _repaired(problem, constraint, matrix)
        found.append(Approximation(k, float(constraint.epsilon), epsilon, *repaired))
    return tuple(found)


def claims_of(
    stated: Sequence[Approximation], found: Sequence[Approximation], sign: float
) -> Iterator[Claim]:
    """A file's entries beside those measured again: ε up to rounding, and a repaired loss no better
    than what repair attains here; ``sign`` is -1 where larger is better."""
    stated_of, found_of = ([part.constraint for part in parts] for parts in (stated, found))
    yield Claim("approximations: the list of constraints", stated_of, found_of)
    for said, proper in zip(stated, found, strict=False):
        where = f"approximations of constraints[{said.constraint}]"
        for name in ("promised_epsilon", "epsilon"):
            ours, theirs = getattr(proper, name), getattr(said, name)
            near = math.isclose(ours, theirs, rel_tol=_NEAR)
            yield Claim(f"{where}: {name}", theirs, ours, near)
        ours, theirs = proper.repaired_loss, said.repaired_loss
        attained = sign * ours <= sign * theirs or math.isclose(ours, theirs, rel_tol=_REPAIRED)
        yield Claim(f"{where}: repaired_loss", theirs, ours, math.isnan(theirs) or attained)


def _repaired(
    problem: Problem, constraint: MetricPrivacy, matrix: Floats
) -> tuple[Mechanism | None, float]:
    # reading and checking designs must not load what made them
    from optmech.lp.inequalities import Inequalities
    from optmech.repair import Cone, repair

    values = evaluate(constraint.distance, problem.secrets, problem.secrets, where="distance")
    full = float(constraint.epsilon) * values
    np.fill_diagonal(full, np.inf)
    stated = Inequalities.of(problem.statement)
    given = stated.with_ratios(np.minimum(stated.log_ratio, full))
    out = repair(given, Cone.of(given), matrix)
    if out is None or not given.hold(out):
        return None, float("nan")
    value = objective_value(problem.statement, out)
    return Mechanism(problem.secrets, problem.observables, out), abs(value)
