"""From a sweep file to a plan, with every error at once."""

import os
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from optmech.errors import ProblemError
from optmech.files import sweep as schema
from optmech.files.gallery import SWEEPS, find_problem
from optmech.files.validate import checked, require_kind, validate
from optmech.pipeline.profiles import load_profile
from optmech.reading.data import DataFile
from optmech.reading.errors import Collector
from optmech.reading.source import read_document
from optmech.sweeps.axes import Axis, named, simple_axis, zipped
from optmech.sweeps.plan import Plan
from optmech.sweeps.templates import DocumentTemplate

_MOST_TRIED = 200
"""Points of an axis that are tried in the template before anything is solved."""


def read_plan(name: str | Path) -> Plan:
    """Read a sweep file, or a sweep of the gallery by its name. Raises ProblemError with every
    error of the file at once; those of the template under ``problem``, those of a value under its
    axis."""
    path = find_problem(name, SWEEPS)
    errors = Collector()
    document = read_document(path)
    require_kind(document, "sweep", path)
    spec = checked(schema.SweepSection, document, errors, path)
    template: DocumentTemplate | None = None
    with errors.at("problem"):
        template = _template(spec.problem, path)
    axes = []
    for k, given in enumerate(spec.axes):
        with errors.at(f"axes[{k}]"):
            axes.append(_axis(given, path.parent))
    columns: tuple[Axis, ...] = ()
    with errors.at(""):
        columns = named(axes)
    if template is not None:
        _try(template, axes, errors)
        profile_name = spec.profile or template.document.get("profile") or "auto"
        with errors.at("profile"):
            profile = load_profile(str(profile_name))
    errors.refuse(str(path))
    assert template is not None
    return Plan(
        template=template,
        axes=columns,
        profile=profile.with_limits(spec.gap, spec.time_limit),
        chain=spec.chain,
        title=spec.title or path.stem,
    )


def _template(problem: str | dict[str, Any], path: Path) -> DocumentTemplate:
    if isinstance(problem, dict):
        return DocumentTemplate({"format": 1, **problem}, path.absolute())
    beside = path.parent / problem
    found = beside if os.path.isfile(beside) else find_problem(problem)
    return DocumentTemplate(read_document(found), found.absolute())


def _axis(spec: schema.AnyAxis, folder: Path) -> Axis:
    if isinstance(spec, schema.ZipAxis):
        return zipped([_axis(inner, folder) for inner in spec.axes])
    if isinstance(spec, schema.PriorsAxis):
        return _priors(spec, folder)
    values = spec.values if isinstance(spec, schema.ListAxis) else _numbers(spec)
    return simple_axis(spec.path, values, spec.name or "")


def _numbers(spec: schema.RangeAxis) -> list[float]:
    spaced = np.geomspace if spec.scale == "log" else np.linspace
    # twelve digits: 0.1, 0.2, 0.3 and not 0.30000000000000004
    return [float(f"{value:.12g}") for value in spaced(spec.start, spec.stop, spec.count)]


def _priors(spec: schema.PriorsAxis, folder: Path) -> Axis:
    """A prior for every user of the table with enough rows, in the order of the file."""
    table = DataFile(spec.file)
    names = [spec.user] + ([] if spec.secret is None else [spec.secret])
    columns = table.text_columns(folder, names)
    rows: dict[str, list[int]] = {}
    for row, user in enumerate(columns[spec.user]):
        rows.setdefault(user, []).append(row)
    chosen = spec.users or [user for user, own in rows.items() if len(own) >= spec.minimum]
    unknown = [user for user in chosen if user not in rows]
    if unknown or not chosen:
        raise ProblemError(
            f"{spec.file} has no rows of user {unknown[0]!r}"
            if unknown
            else f"no user has {spec.minimum} rows in {spec.file}",
            where="users" if unknown else "minimum",
            remedy="The names must be written as in the file" if unknown else "Lower it",
        )
    weights = np.ones(len(columns[spec.user]))
    if spec.secret is not None and spec.weight is not None:
        weights = table.columns(folder, [spec.weight], [spec.weight])[spec.weight]
    priors = {}
    for user in chosen:
        if spec.secret is None:
            priors[user] = _visits(spec, folder, user)
            continue
        counts: defaultdict[str, float] = defaultdict(float)
        for row in rows[user]:
            counts[columns[spec.secret][row]] += float(weights[row])
        priors[user] = {"kind": "counts", "counts": dict(counts), "smoothing": spec.smoothing}
    return simple_axis(spec.path, priors, spec.name or spec.user)


def _visits(spec: schema.PriorsAxis, folder: Path, user: str) -> dict[str, Any]:
    """A user's rows as a prior of kind "csv"."""
    optional = {"weight": spec.weight, "max_distance": spec.max_distance}
    return {
        "kind": "csv",
        "file": str((folder / spec.file).absolute()),
        "x": spec.x,
        "y": spec.y,
        "only": {spec.user: [user]},
        "smoothing": spec.smoothing,
        **{key: value for key, value in optional.items() if value is not None},
    }


def _try(template: DocumentTemplate, axes: Sequence[Axis], errors: Collector) -> None:
    """Put every point of every axis into the template once, and keep what is wrong with it."""
    base = template
    for axis in axes:
        with errors.at("axes"):
            base = base.source(axis.points[0].settings)
    known = Collector()
    validate(base.document, known)
    if not known.errors:
        with errors.at("problem"):
            base.build()
    for k, axis in enumerate(axes):
        for j, point in enumerate(axis.points[:_MOST_TRIED]):
            with errors.at(f"axes[{k}], value {j + 1}"):
                own = Collector()
                validate(base.source(point.settings).document, own)
                for error in own.errors:
                    errors.add(error.at(f"axes[{k}], value {j + 1}"))
