"""What two versions of a design reveal together, in words."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from optmech.analysis import leakage, measures
from optmech.analysis.leakage import Versions
from optmech.base.labelled import label_text
from optmech.exact.interval import Interval
from optmech.problem import Problem
from optmech.spaces.distances import Distance

_SHOWN = 5


def measured_versions(
    problem: Problem, found: Versions, named: tuple[str, Distance]
) -> dict[str, Any]:
    """Figures of two versions for files and tables, under the prior of ``problem``, the new one's;
    ``named`` is the distance of ε and of attacks, with its name."""
    name, both = named[0], found.together
    # of all secrets, from which those in common are taken: a file's distance is a table of all
    chosen = [problem.secrets.index(label) for label in found.common]
    distance = problem.space.apart(named[1])[np.ix_(chosen, chosen)]
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
        "both_metric_epsilon": both.epsilon_per(distance),
        "old_error": _error(leakage.repeated(both.first, 1).error(prior, distance)),
        "new_error": _error(leakage.repeated(both.second, 1).error(prior, distance)),
        "both_error": _error(both.error(prior, distance)),
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


def _error(found: Interval) -> float:
    return (found.lower + found.upper) / 2


def _list(labels: Sequence[Hashable]) -> str:
    shown = ", ".join(map(str, labels[:_SHOWN]))
    return f"{len(labels)} ({shown}{', …' if len(labels) > _SHOWN else ''})" if labels else "none"


def _number(value: float) -> str:
    return "∞" if math.isinf(value) else f"{value:.6g}"
