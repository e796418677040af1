"""What two versions of a design reveal together, in words."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from optmech.analysis import leakage, measures
from optmech.analysis.leakage import Versions
from optmech.base.arrays import Floats
from optmech.base.labelled import label_text
from optmech.problem import Problem
from optmech.spaces.distances import Distance
from optmech.spaces.prior import Prior

_SHOWN = 5


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
    distance: Floats | None = _apart(problem, found, named[1])
    if other is not None and not _same_places(problem, other, found):
        distance = None
    prior = found.prior(problem.prior)
    moved = found.most_changed
    change = None if moved is None else found.change(moved)
    return {
        "distance": name,
        "kept": [label_text(label) for label in found.kept],
        "changed": [label_text(label) for label in found.changed],
        "added": [label_text(label) for label in found.added],
        "removed": [label_text(label) for label in found.removed],
        "old_epsilon": float(measures.epsilon(both.first)),
        "new_epsilon": float(measures.epsilon(both.second)),
        "both_epsilon": float(both.epsilon),
        "worst_pair": [label_text(label) for label in both.worst],
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
    """The same as rows of a table of facts; the two versions are ``called`` so."""
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


def _apart(problem: Problem, found: Versions, distance: Distance) -> Floats:
    """Between the common secrets, taken from all: a file's distance is a table of all."""
    chosen = [problem.secrets.index(label) for label in found.common]
    return problem.space.apart(distance)[np.ix_(chosen, chosen)]


def _same_places(one: Problem, other: Problem, found: Versions) -> bool:
    """Whether the common secrets have the same coordinates in both, or none in either."""
    places = []
    for secrets in (one.secrets, other.secrets):
        chosen = [secrets.index(label) for label in found.common]
        places.append(None if secrets.points is None else secrets.points[chosen])
    if places[0] is None or places[1] is None:
        return places[0] is places[1]
    return np.array_equal(places[0], places[1])


def _list(labels: Sequence[Hashable]) -> str:
    shown = ", ".join(map(str, labels[:_SHOWN]))
    return f"{len(labels)} ({shown}{', …' if len(labels) > _SHOWN else ''})" if labels else "none"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.6g}"
