"""What mechanisms leak, in numbers with names, and which of two leaks more, in words; what two
versions of a design reveal together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import optmech_leakage as leakage
from optmech.analysis import measures
from optmech.base.arrays import Floats
from optmech.base.labels import label_text
from optmech.errors import TooLargeError
from optmech.exact.number import Interval
from optmech.problem import DistributionPrivacy, Problem
from optmech.spaces.distances import Distance
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech_leakage import Versions

Found = dict[str, tuple[str, float | Interval]]
"""What was measured: a key for files, then a title and a value."""

ROUNDING = 1e-9
"""A deficiency up to which two mechanisms are told apart by rounding only."""


def measured_leakage(problem: Problem, m: Mechanism) -> Found:
    """Vulnerabilities, leakages and capacities of a mechanism, under the problem's prior."""
    prior = problem.prior
    capacity, risk = leakage.shannon_capacity(m), leakage.bayes_risk_capacity(m)
    return {
        "prior_vulnerability": (
            "best blind guess right with probability",
            leakage.prior_vulnerability(prior),
        ),
        "posterior_vulnerability": (
            "best guess after a report",
            leakage.posterior_vulnerability(m, prior),
        ),
        "multiplicative_leakage": (
            "multiplicative leakage",
            leakage.multiplicative_leakage(m, prior),
        ),
        "additive_leakage": ("additive leakage", leakage.additive_leakage(m, prior)),
        "maximal_leakage": (
            "maximal leakage, any prior and gain (nats)",
            leakage.maximal_leakage(m),
        ),
        "pointwise_maximal_leakage": (
            "pointwise maximal leakage, this prior and any gain (nats)",
            leakage.pointwise_maximal_leakage(m, prior),
        ),
        "additive_capacity": (
            "additive capacity, any prior and gain",
            leakage.additive_capacity(m),
        ),
        "bayes_risk_capacity": ("Bayes risk capacity", risk.value),
        "mutual_information_nats": (
            "mutual information (nats)",
            leakage.shannon_leakage(m, prior),
        ),
        "shannon_capacity": ("Shannon capacity (nats)", Interval(capacity.lower, capacity.upper)),
        "prior_guessing_entropy": (
            "guesses until the secret is found, blind",
            leakage.guessing_entropy(prior),
        ),
        "guessing_entropy": (
            "guesses after a report",
            leakage.guessing_entropy(prior, m),
        ),
        "posteriors": ("different posteriors", float(len(leakage.hyper(m, prior).inners))),
    }


def measured_repetition(
    problem: Problem, m: Mechanism, k: int, named: tuple[str, Distance]
) -> Found:
    """What k independent reports about one secret leak, under the problem's prior."""
    name, distance = named
    repeated = leakage.repeated(m, k)
    found: Found = {
        "repeated_epsilon": (f"ε of differential privacy of {k} reports", repeated.epsilon),
        "repeated_vulnerability": (
            f"best guess after {k} reports",
            repeated.vulnerability(problem.prior),
        ),
        "repeated_error": (
            f"error of the optimal attack on {k} reports ({name})",
            repeated.error(problem.prior, distance),
        ),
    }
    # for every constraint on distributions, δ at its ε of reports about as many people
    for place, stated in enumerate(problem.constraints):
        if isinstance(stated, DistributionPrivacy) and stated.divergence == "max":
            bounds = [
                repeated.distribution_delta(a, b, stated.epsilon.times(factor))
                for (a, b), factor in zip(stated.corners, stated.scales, strict=True)
            ]
            found[f"population_delta_{place}"] = (
                f"δ of {k} reports about {k} people at the ε of constraint {place}",
                Interval(max(b.lower for b in bounds), max(b.upper for b in bounds)),
            )
    return found


Relation = Literal["holds", "rounding", "fails", "open"]


@dataclass(frozen=True)
class Direction:
    """Whether one mechanism never leaks more than another."""

    relation: Relation
    gap: float
    """Where it fails: how much more is earned under a gain with entries from 0 to 1."""
    deficiency: Interval

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        ends = [self.deficiency.lower, self.deficiency.upper]
        return {"relation": self.relation, "gap": float(self.gap), "deficiency": ends}


def direction(a: Mechanism, b: Mechanism) -> Direction:
    """Whether b never leaks more than a, exactly, but for rounding, not, or undecided."""
    unknown = Interval(0.0, 1.0)
    try:
        found = leakage.refines(a, b)
    except TooLargeError:
        # what tells a pair of secrets apart better cannot be a post-processing
        private = leakage.refines(a, b, "privacy").holds
        return Direction("open" if private else "fails", 0.0, unknown)
    bounds = found.deficiency or unknown
    if found.holds:
        return Direction("holds", 0.0, bounds)
    return Direction("rounding" if bounds.upper <= ROUNDING else "fails", found.gap, bounds)


def verdict(forth: Direction, back: Direction) -> str:
    """A sentence about two mechanisms; ``forth`` says whether the second never leaks
    more than the first, ``back`` the reverse."""
    second_safe = forth.relation in ("holds", "rounding")
    first_safe = back.relation in ("holds", "rounding")
    close = "rounding" in (forth.relation, back.relation)
    but = f", up to rounding (a gain of at most {ROUNDING:g})" if close else ""
    if second_safe and first_safe:
        return f"The two leak the same to every adversary{but}: each is the other, post-processed."
    if second_safe or first_safe:
        safe, other = ("second", "first") if second_safe else ("first", "second")
        end = f"the {safe} is the {other} followed by a post-processing{but}."
        return f"The {safe} never leaks more than the {other}, whatever an adversary wants: {end}"
    if "open" in (forth.relation, back.relation):
        if "fails" in (forth.relation, back.relation):
            more, less = ("second", "first") if forth.relation == "fails" else ("first", "second")
            return (
                f"The {more} leaks more than the {less} to some adversary; the reverse was not "
                "decided, as the two are too large."
            )
        return "Which of the two leaks more was not decided: they are too large."
    return (
        "Which of the two leaks more depends on the adversary: each leaks more than the other to "
        "some of them."
    )


_SHOWN = 5
_PARTS = ("kept", "changed", "added", "removed")


def measured_versions(
    problem: Problem,
    found: Versions,
    named: tuple[str, Distance],
    other: Problem | None = None,
) -> dict[str, Any]:
    """Figures of two versions for files and tables, under the prior of ``problem``, the new one's;
    ``named`` is the distance of ε and of attacks, with its name. Where the common secrets lie
    elsewhere in the ``other`` version's problem, there is no distance that both reports could be
    measured with, and these figures are None."""
    name, both = named[0], found.together
    # a file's distance is a table of all secrets
    chosen = [problem.secrets.index(label) for label in found.common]
    distance: Floats | None = problem.space.apart(named[1])[np.ix_(chosen, chosen)]
    if other is not None and not _same_places(problem, other, found):
        distance = None
    prior = found.prior(problem.prior)
    moved = found.most_changed
    change = None if moved is None else found.change(moved)
    return {
        "distance": name,
        **{name: list(map(label_text, getattr(found, name))) for name in _PARTS},
        "old_epsilon": float(measures.epsilon(both.first)),
        "new_epsilon": float(measures.epsilon(both.second)),
        "both_epsilon": float(both.epsilon),
        "worst_pair": list(map(label_text, both.worst)),
        "both_metric_epsilon": None if distance is None else both.epsilon_per(distance),
        "old_error": _error(leakage.repeated(both.first, 1), prior, distance),
        "new_error": _error(leakage.repeated(both.second, 1), prior, distance),
        "both_error": _error(both, prior, distance),
        "most_changed": None if moved is None else label_text(moved),
        "change_epsilon": None if change is None else float(change.epsilon),
        "change_variation": None if change is None else float(change.variation),
    }


def version_rows(
    found: dict[str, Any], called: tuple[str, str] = ("old", "new")
) -> list[tuple[str, str]]:
    """Figures of two versions as rows of a table of facts; the two are ``called`` so."""
    name, (old, new) = found["distance"], called
    rows = [("rows that are the same in both", _list(found["kept"]))]
    for key, words in (("changed", "rows that differ"), ("added", "added"), ("removed", "removed")):
        if found[key]:
            rows.append((words, _list(found[key])))
    worst = " against ".join(found["worst_pair"])
    rows += [
        (
            "ε of all pairs",
            f"{_number(found['old_epsilon'])} {old}, {_number(found['new_epsilon'])} {new}, "
            f"{_number(found['both_epsilon'])} both reports ({worst})",
        ),
    ]
    if found["both_metric_epsilon"] is None:
        rows.append((f"ε per unit, and errors ({name})", f"places lie elsewhere in the {new} one"))
    else:
        rows += [
            (f"ε of both per unit ({name})", _number(found["both_metric_epsilon"])),
            (
                f"error of the optimal attack ({name})",
                f"{_number(found['old_error'])} {old}, {_number(found['new_error'])} {new}, "
                f"{_number(found['both_error'])} both reports",
            ),
        ]
    if found["most_changed"] is not None:
        rows.append(
            (
                f"report of {found['most_changed']} tells the version",
                f"ε {_number(found['change_epsilon'])}, total variation "
                f"{_number(found['change_variation'])}",
            )
        )
    return rows


def version_notes(found: dict[str, Any]) -> list[str]:
    """What to do about it."""
    notes = [
        "both reports: each version draws once for the same place, independently; a device that "
        "goes on with the report it has until its epoch ends reveals nothing more",
    ]
    if found["changed"] and found["kept"]:
        notes.append(
            "a new report that only changed rows make shows that the place is one of them: draw "
            "anew for all places, or for none"
        )
    return notes


def _error(
    found: leakage.Repeated | leakage.Parallel, prior: Prior, distance: Floats | None
) -> float | None:
    if distance is None:
        return None
    error = found.error(prior, distance)
    return (error.lower + error.upper) / 2


def _same_places(one: Problem, other: Problem, found: Versions) -> bool:
    """Whether the common secrets have the same coordinates in both, or none in either."""
    places = []
    for secrets in (one.secrets, other.secrets):
        chosen = [secrets.index(label) for label in found.common]
        places.append(None if secrets.points is None else secrets.points[chosen])
    before, after = places
    if before is None or after is None:
        return before is after
    return np.array_equal(before, after)


def _list(labels: Sequence[Hashable]) -> str:
    shown = ", ".join(map(str, labels[:_SHOWN]))
    return f"{len(labels)} ({shown}{', …' if len(labels) > _SHOWN else ''})" if labels else "none"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.6g}"
