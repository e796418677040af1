"""``om.redesign``: some rows of a design anew, all others kept digit by digit."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from optmech.base.labels import label_text
from optmech.designs.design import Design
from optmech.designs.file import read_with_digest
from optmech.errors import ProblemError, inside
from optmech.pipeline.profiles import Profile
from optmech.pipeline.session import Progress
from optmech.pipeline.solve import solve
from optmech.problem import FixedRows, Problem
from optmech.problem.constraints.fixed_rows import as_labels
from optmech.problem.space import GivenRows
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_label
from optmech.spaces.mechanism import Mechanism, mechanism_from


@checked_arguments
def redesign(
    old: Design | Mechanism | str | Path,
    problem: Problem,
    *,
    keep: Sequence[Hashable] | None = None,
    free: Sequence[Hashable] | None = None,
    profile: str | Path | Profile = "auto",
    gap: float | None = None,
    time_limit: float | None = None,
    progress: Progress | None = None,
) -> Design:
    """The best mechanism for ``problem`` that keeps rows of an older design exactly.

    Parameters
    ----------
    old:
        The design; its file, whose digest is then recorded in the new one; or a mechanism, such as
        that of a packed file, whose rows are those that devices have.
    problem:
        What is wanted now: with another place, another prior, other constraints. Reports that kept
        rows make and the problem does not know join its observables.
    keep:
        Labels of the secrets whose rows are kept; default those that both have, at the same place.
    free:
        Labels of secrets whose rows are designed anew, of these.
    profile, gap, time_limit, progress:
        As of ``solve``.

    Returns
    -------
    Design
        As ``solve``; its last constraint is a ``FixedRows``. Infeasible where rows that are kept
        contradict the constraints, by themselves or for the new ones: ``reason`` says how. What
        the two versions reveal together, ``om.leakage.versions`` says.

    Raises
    ------
    ProblemError
        On unusable arguments, labels that there are not, reports that are other places in the
        problem, or where nothing is left to design.
    SolverError
        As ``solve``.

    Examples
    --------
    >>> line = om.Domain.range(3)
    >>> km = om.distances.euclidean()
    >>> promise = om.MetricPrivacy("ln 2", km)
    >>> old = om.solve(om.Problem(om.Prior.uniform(line), km, constraints=[promise]))
    >>> wanted = om.Problem(om.Prior(line, [1, 1, 2]), km, constraints=[promise])
    >>> new = om.redesign(old, wanted, keep=[0])
    >>> bool((new.mechanism.matrix[0] == old.mechanism.matrix[0]).all())
    True
    """
    if keep is not None and free is not None:
        raise ProblemError(
            "is given together with keep", where="free", remedy="Give one of the two"
        )
    with inside("keep"):
        keep = None if keep is None else as_labels(keep)
    with inside("free"):
        free = None if free is None else as_labels(free)
    before, source = read_with_digest(old) if isinstance(old, str | Path) else (old, "")
    had = mechanism_from(before, "old")
    with inside("old"):
        rows = GivenRows.of(had)
    rows = replace(rows, source=source or rows.source)
    kept = _kept(had.secrets, problem.secrets, keep, free)
    again = Problem(
        problem.prior,
        problem.loss,
        _with_reports(problem, had, kept),
        objective=problem.objective,
        constraints=[*problem.constraints, FixedRows(rows, keep=kept)],
        title=problem.title,
    )
    same = had.matrix.shape == again.loss_matrix.shape and had.secrets.labels == (
        again.secrets.labels
    )
    return solve(
        again,
        profile,
        gap=gap,
        time_limit=time_limit,
        progress=progress,
        start=before if same and isinstance(before, Design) else None,
    )


def _kept(
    before: Domain,
    after: Domain,
    keep: Sequence[Hashable] | None,
    free: Sequence[Hashable] | None,
) -> list[Hashable]:
    """The labels of rows to keep. Raises ProblemError where that is none or all."""
    known = set(before.labels)
    if keep is not None:
        with inside("keep"):
            kept = [find_label(after, label) for label in keep]
        missing = [label for label in kept if label not in known]
        if missing:
            raise ProblemError(
                f"{label_text(missing[0])} is no secret of the old design",
                where="keep",
                remedy="Only rows that there are can be kept",
            )
    else:
        with inside("free"):
            left = {find_label(after, label) for label in free or ()}
        kept = [
            label
            for label in after.labels
            if label in known and label not in left and _same_place(before, after, label)
        ]
    if not kept:
        raise ProblemError(
            "no secret of the problem is one of the old design at the same place",
            where="problem",
            remedy="Compare labels and coordinates, or name the rows that are kept with keep",
        )
    if len(set(kept)) == len(after):
        raise ProblemError(
            f"all {len(after)} rows are kept, and nothing is left to design",
            where="free",
            remedy="Name the secrets whose rows are to be designed anew with free",
        )
    return kept


def _same_place(before: Domain, after: Domain, label: Hashable) -> bool:
    if before.points is None or after.points is None:
        return True
    return np.array_equal(before.points[before.index(label)], after.points[after.index(label)])


def _is_secret(label: Hashable, reports: Domain, secrets: Domain) -> bool:
    """Whether a report is the place of the secret that is called so."""
    return label in set(secrets.labels) and _same_place(reports, secrets, label)


def _with_reports(problem: Problem, old: Mechanism, kept: Sequence[Hashable]) -> Domain:
    """The problem's observables, and those that the rows kept report and that it lacks."""
    reports, secrets, now = old.observables, old.secrets, problem.observables
    chosen = [secrets.index(label) for label in kept]
    known, missing = set(now.labels), []
    for o in np.flatnonzero(old.matrix[chosen].any(axis=0)).tolist():
        label = reports.labels[o]
        if label not in known:
            missing.append(o)
        # a place that moved takes the report of its name along
        elif not _same_place(reports, now, label) and not (
            _is_secret(label, reports, secrets) and _is_secret(label, now, problem.secrets)
        ):
            raise ProblemError(
                f"rows that are kept report {label_text(label)}, which is another place there than "
                "among the observables of the problem",
                where="problem",
                remedy="Give its observables the coordinates of the old design, or other labels",
            )
    if not missing:
        return now
    labels = [reports.labels[o] for o in missing]
    if not callable(problem.loss) or (reports.points is None) != (now.points is None):
        raise ProblemError(
            f"rows that are kept report {label_text(labels[0])}, which is no observable of the "
            "problem and has no loss there",
            where="problem",
            remedy="Add it to the observables, with its loss",
        )
    points = None
    if now.points is not None and reports.points is not None:
        points = np.vstack([now.points, reports.points[missing]])
    return Domain([*now.labels, *labels], points, now.unit, coordinates=now.coordinates)
