"""What a problem or a design promises about *points*, in sentences that people read, made of its
``facts``; what thresholds leave out, and the price of keeping the promise.

Constraints speak of secrets: centres of cells, places, labels. Users have positions, and several
reports. What holds between positions is said here in one way, for every place that states it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optmech.analysis import measures
from optmech.analysis.measures import bayes_vulnerability
from optmech.analysis.positions import everywhere
from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.certificate.objective import objective_value
from optmech.certificate.proved import Claim
from optmech.designs.stated import Stated, promises_of
from optmech.exact.number import from_above
from optmech.problem import MetricPrivacy, Problem
from optmech.problem.promised import EPSILON, Course, Measure, Pairs, Promised, Scope
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.observables import Regions, grid_boxes
from optmech.spaces.prior import Prior

METRES = (100, 1_000, 10_000)
"""Distances for which a promise is said in odds."""
MOST = 1e6
"""Times as likely: beyond it nothing is hidden that is worth a number."""
_LARGEST = 700
"""Of a log ratio whose exponential is a float."""
_MEASURED = 400
"""Cells up to which what holds between positions is measured, and not only bounded."""
_PAIRS = 20_000
_DIGITS = 3
_PAIRED = ("secrets", "places", "cells")
_WHO = {"every point": "points", "cells": "positions", "places": "places"}
_APART: dict[Course, str] = {
    "straight": "apart", "great circle": "apart", "flat": "apart on the flat map",
    "roads": "apart along the roads", "manhattan": "apart by the Manhattan distance",
}  # fmt: skip
_BRIEF: dict[Scope, str] = {
    "every point": "private at every point", "cells": "private between secrets",
    "places": "private between secrets", "secrets": "private between secrets",
    "distributions": "private between distributions",
    "answers": "private between secrets behind an answer",
    "guesses": "the best guess limited", "average": "information limited on average",
}  # fmt: skip


@record
class Promise(Shown):
    """What is promised about two positions: of every point, or between centres or places only."""

    scope: Scope
    """ "use" where nothing is promised."""
    sentence: str
    """What holds, and between what."""
    epsilon: float | None = None
    """Per unit of ``measure``; None where the promise is of no such form."""
    measure: Measure | None = None
    repeats: str = ""
    """What several independent reports do to it; empty where nothing is said of them."""
    sticky: str = ""
    """What a report that is made once and repeated spends."""
    slack: float = 0.0
    """Of distance, in the unit, that counts on top of that of two positions: the diagonal of a
    cell."""
    step: float | None = None
    """The largest log ratio of two positions at distance 0, measured; None where it was not."""
    violated: float | None = None
    """Share of pairs of positions whose log ratio exceeds ε times their distance, measured."""
    pairs: Pairs = "all"
    """Of what the first sentence holds."""

    @property
    def unit(self) -> str:
        """The unit of distance; empty where there is none."""
        return "" if self.measure is None else self.measure.unit

    def factor(self, metres: float) -> float:
        """How many times as likely a report may be from one of two positions so far apart, by
        ``measure``, as from the other; inf where nothing is promised of it, nan where it is no
        length."""
        scale = None if self.measure is None else self.measure.metres
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
            f"to {from_above(slack, 3)}{per} more of distance, a factor of at most "
            f"{at_most(self.epsilon * slack)}."
        )
        return replace(self, sentence=self.sentence + more, slack=self.slack + slack)

    @property
    def odds(self) -> dict[int, float]:
        """``factor`` at 100 m, 1 km and 10 km; empty where ε is per no length between positions."""
        if self.epsilon is None or self.measure is None or self.measure.metres is None:
            return {}
        return {metres: self.factor(metres) for metres in METRES}

    @property
    def apart(self) -> str:
        """How the distances of ``odds`` are measured, after a length: "apart", or along what."""
        return "" if self.measure is None else _APART.get(self.measure.course, "")

    @property
    def odds_words(self) -> str:
        """The odds in words; empty without any."""
        said = (
            f"{length_words(metres)} {self.apart} at most {times(factor)} times as likely"
            if factor <= MOST
            else f"{length_words(metres)} {self.apart} over a million times: not hidden"
            for metres, factor in self.odds.items()
        )
        who = _WHO.get(self.scope, "places")
        return f"a report from {who} " + "; ".join(said) if self.odds else ""

    @property
    def brief(self) -> str:
        """The promise in a few words: ε with its unit, in odds, and of several reports."""
        if self.epsilon is None:
            some = self.pairs != "all" and self.scope in _PAIRED
            return _BRIEF.get(self.scope, "no promise") + " of the pairs stated" * some
        where = {"every point": "at every point", "cells": "between centres of cells",
                 "places": "between places"}.get(self.scope, "between secrets")  # fmt: skip
        named = self.measure is not None and self.measure.name != "hamming"
        per = self.unit[:40] or (per_words(self.measure)[:80] if named and self.measure else "")
        per = f" per {per}" if per and per.isprintable() else ""
        odds = ", ".join(
            f"{times(factor)} at {length_words(metres)}" for metres, factor in self.odds.items()
        )
        along = self.apart.removeprefix("apart")
        more = f", odds {odds}{along}" if odds else ""
        return f"ε = {from_above(self.epsilon, 4)}{per} {where}{more}, n reports n ε"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """Names and sentences: what is promised, in odds, and what repeats do."""
        said = [
            ("promised", self.sentence), ("in odds", self.odds_words), ("repeats", self.repeats)
        ]  # fmt: skip
        return [(name, words) for name, words in said if words]

    def plain(self) -> dict[str, Any]:
        """For JSON: the sentence, its scope, and the odds by metres."""
        return {
            "promise": self.sentence,
            "scope": self.scope,
            "measure": None if self.measure is None else self.measure.plain(),
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
    """What a problem promises about positions: a sentence for every constraint that protects.

    With a ``mechanism`` on cells it is measured what two positions on both sides of an edge reveal
    there; without one the bound is said that ε allows.
    """
    stated = promises_of(problem)
    kept = [own for own in stated if own.promised.scope != "use"]
    if not kept:
        for_use = ", ".join(dict.fromkeys(own.title for own in stated))
        why = f"what is stated is for use ({for_use})" if stated else "no constraint is stated"
        return Promise("use", f"No privacy is promised: {why}.")
    first = min(kept, key=lambda o: (not _is_metric(o.promised), o.promised.scope == "unknown"))
    others = (_sentence(own, problem.secrets) for own in kept if own is not first)
    promise = _first(problem, first, mechanism)
    return replace(
        promise,
        sentence=" ".join([promise.sentence, *others]),
        pairs=first.promised.pairs,
        repeats=repeats_words(kept, promise.scope),
        sticky=sticky_words(kept),
    )


def _is_metric(promised: Promised) -> bool:
    return promised.ratio is not None and promised.measure is not None


def _first(problem: Problem, stated: Stated, mechanism: Mechanism | None) -> Promise:
    promised, secrets = stated.promised, problem.secrets
    if not _is_metric(promised):
        return Promise(promised.scope, _sentence(stated, secrets))
    assert promised.epsilon is not None
    assert promised.measure is not None
    epsilon, measure = float(promised.epsilon), promised.measure
    rate = f"ε = {promised.epsilon.words} per {per_words(measure)}"
    if promised.epsilon.log_of is not None:
        rate += f", {from_above(epsilon, 4)}"
    if promised.scope == "every point":
        return at_every_point(epsilon, rate, measure, mesh=problem.mesh)
    return between(secrets, (epsilon, rate, measure), mechanism)


def per_words(measure: Measure) -> str:
    """What ε is per, so that nobody takes another distance for it."""
    plain = measure.course in ("straight", "great circle", "roads")
    if measure.unit:
        return measure.unit if plain else f"{measure.unit} ({measure.name})"
    given = measure.name.startswith("given")
    return f"unit of distance ({measure.name})" if given else f"unit of {measure.name} distance"


def _sentence(stated: Stated, secrets: Domain) -> str:
    """What one constraint promises, and between what."""
    promised = stated.promised
    said = stated.words if stated.words.startswith(stated.title) else ""
    said = said or f"{stated.title}: {stated.words}"
    said = f"{said[:1].upper()}{said[1:]}"
    if promised.pairs in ("near", "reached"):
        return f"{said}, between the secrets that thresholds keep."
    if promised.scope not in _PAIRED:
        return f"{said}."
    taken = "; a position counts as the secret that it is taken to"
    return f"{said}, between the secrets{'' if secrets.points is None else taken}."


def repeats_words(stated: Sequence[Stated], scope: Scope) -> str:
    """What several independent reports about one secret promise, in words; empty where nothing
    is promised of one."""
    said = _composed(stated, "n independent reports", "Every fresh report spends it again: ")
    if not said:
        return ""
    place = "place" if scope in _WHO else "secret"
    return f"{said} Repeat a report for as long as the {place} is the same (sticky reports)."


def sticky_words(stated: Sequence[Stated]) -> str:
    """What a report that is made once and repeated spends, and reports of several places."""
    said = _composed(stated, "reports of n places")
    spent = "The same report again spends nothing"
    return f"{spent}. {said}" if said else f"{spent}."


def _composed(stated: Sequence[Stated], reports: str, spent: str = "") -> str:
    """A sentence of each way in which the reports add up; of which constraint, where they differ.
    A constraint for use has none. ``spent`` comes before the sentence of what adds up."""
    rules: dict[str, list[str]] = {}
    for own in stated:
        if own.promised.repeats != "none":
            rules.setdefault(_rule(own.promised, reports), []).append(own.title)
    if not rules:
        return ""
    found = "; ".join(f"by {' and '.join(dict.fromkeys(by))} {said}" for said, by in rules.items())
    if len(rules) == 1:
        (found,) = rules
        if found.startswith(reports):
            found = spent + found
    return f"{found[:1].upper()}{found[1:]}."


def _rule(promised: Promised, reports: str) -> str:
    match promised.repeats:
        case "adds":
            more = " and ".join(f"n times {what}" for what in promised.adds)
            within = ", where all of them are within reach" * (promised.pairs == "reached")
            return f"{reports} promise {more}{within}"
        case "complement":
            return f"{reports} promise a capacity of 1 - (1 - c)^n, where one promises c"
        case _:
            return f"nothing is promised of {reports} together"


ADDS = (Stated(0, "metric_privacy", "metric privacy", "", Promised("secrets", "adds", (EPSILON,))),)
"""A ratio of all pairs, of which n reports promise n times ε."""


def at_every_point(
    epsilon: float, rate: str, measure: Measure, slack: float = 0.0, mesh: Mesh | None = None
) -> Promise:
    """What holds of a region, a line or roads, ε in words being the ``rate``; ``slack`` counts on
    top of a distance."""
    more = f" + {from_above(slack, 3)}{f' {measure.unit}' if measure.unit else ''}" if slack else ""
    where, apart = "the region", "d apart"
    if mesh is not None and not mesh.is_region:
        where, apart = mesh.words, "d apart along it"
    sentence = (
        f"At every point of {where}: from any two points {apart} a report is at most "
        f"e^(ε (d{more})) times as likely from one as from the other ({rate})."
    )
    plain = sentence.replace("(ε (d))", "(ε d)")
    repeats, sticky = repeats_words(ADDS, "every point"), sticky_words(ADDS)
    return Promise("every point", plain, epsilon, measure, repeats, sticky, slack)


def between(
    secrets: Domain, stated: tuple[float, str, Measure], mechanism: Mechanism | None
) -> Promise:
    """What holds of secrets: of cells, of places, or of others; ``stated`` are ε, ε in words, and
    the distance that it is per."""
    epsilon, rate, measure = stated
    scope = measure.scope(secrets)
    repeats, sticky = repeats_words(ADDS, scope), sticky_words(ADDS)
    if scope == "cells":
        assert isinstance(secrets, Grid | Regions)
        said, slack, step, violated = _of_cells(stated, secrets, mechanism)
        return Promise(scope, said, epsilon, measure, repeats, sticky, slack, step, violated)
    sentence = f"Between the {len(secrets)} secrets: {rate}."
    if scope == "places":
        sentence = (
            f"Between the {len(secrets)} places only: {rate}. A position counts as the place that "
            "it is taken to, so that two positions next to each other may be told apart as two "
            "places."
        )
    return Promise(scope, sentence, epsilon, measure, repeats, sticky)


def _of_cells(
    stated: tuple[float, str, Measure], secrets: Grid | Regions, mechanism: Mechanism | None
) -> tuple[str, float, float | None, float | None]:
    """The sentence, and the slack, step and share of pairs of a ``Promise``."""
    epsilon, rate, _ = stated
    slack = diagonal(secrets)
    step = violated = None
    if mechanism is not None and len(secrets) <= _MEASURED:
        # no interval is said, and a sure one takes nothing to compute
        measured = everywhere(mechanism, epsilon, pairs=_PAIRS, confidence=1)
        step, violated = measured.step, measured.violated
    most = epsilon * slack if step is None else step
    sentence = (
        f"Between the centres of cells only: {rate}. Two positions next to each other, on both "
        f"sides of an edge between cells, are told apart by up to {at_most(most)} times (log ratio "
        f"{from_above(most, 3)} at distance 0)"
    )
    if violated is not None:
        sentence += f"; {100 * violated:.3g} % of random pairs of positions exceed ε"
    return f"{sentence}.", slack, step, violated


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

    values = problem.space.apart(constraint.distance, infinite=True)
    full = np.where(np.isfinite(values), float(constraint.epsilon), 1.0) * values
    np.fill_diagonal(full, np.inf)
    stated = Inequalities.of(problem.statement)
    given = stated.with_ratios(np.minimum(stated.log_ratio, full))
    out = repair(given, Cone.of(given), matrix)
    if out is None or not given.hold(out):
        return None, float("nan")
    value = objective_value(problem.statement, out)
    return Mechanism(problem.secrets, problem.observables, out), abs(value)
