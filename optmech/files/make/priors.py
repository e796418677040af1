"""Priors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.files import synthetic
from optmech.files.make.context import Context, Listed
from optmech.reading.data import DataFile, complete_numbers
from optmech.sections import priors as schema
from optmech.sections.priors import DistributionSpec, PriorSpec
from optmech.spaces.labels import find_index
from optmech.spaces.prior import Binning, Prior


def build_prior(spec: PriorSpec, context: Context) -> Prior:
    """A prior over the secrets of the problem; errors are placed inside the prior's table."""
    domain = context.domain
    if isinstance(spec, str | schema.Uniform):
        return Prior.uniform(domain)
    if isinstance(spec, schema.Given | schema.Counts | schema.Column):
        listed, outside = listed_weights(spec, context.listed, context.directory)
        smoothing = 0.0 if isinstance(spec, schema.Given) else spec.smoothing
        binning = None
        if isinstance(spec, schema.Counts) and isinstance(spec.counts, dict):
            binning = Binning(inside=float(listed.sum()), outside=outside)
        return _prior(context, context.per_secret(listed) + smoothing, binning)
    if isinstance(spec, schema.Observations):
        return _observations(spec, context)
    if isinstance(spec, schema.Visits):
        recipe = spec.model_dump(exclude={"kind"})
        return _prior(context, synthetic.visit_counts(domain, **recipe), None)
    weights = synthetic.dirichlet(len(domain), seed=spec.seed, concentration=spec.concentration)
    return _prior(context, weights, None)


def listed_weights(
    spec: schema.Given | schema.Counts | schema.Column, listed: Listed, directory: Path
) -> tuple[Floats, float]:
    """A weight for every listed point, and the weight of labels that are not among them."""
    if isinstance(spec, schema.Column):
        return _column(spec, listed, directory), 0.0
    key, given = (
        ("weights", spec.weights) if isinstance(spec, schema.Given) else ("counts", spec.counts)
    )
    if given is None:
        if listed.rows is None:
            raise ProblemError(
                "there are no rows to count",
                where=key,
                remedy='Give counts, or use secrets of kind = "table", "points" or "lonlat"',
            )
        return listed.by_secret(np.ones(listed.count)), 0.0
    if isinstance(given, Mapping):
        return _by_label(given, listed, key, strict=isinstance(spec, schema.Given))
    if len(given) != listed.count:
        kind = "secrets" if listed.count == len(listed.domain) else "points"
        raise ProblemError(
            f"has {len(given)} entries for {listed.count} {kind}",
            where=key,
            remedy=f"Give {listed.count}",
        )
    return listed.by_secret(np.array(given, dtype=np.float64)), 0.0


def _by_label(
    given: Mapping[str, float], listed: Listed, key: str, *, strict: bool
) -> tuple[Floats, float]:
    weights = np.zeros(len(listed.domain))
    outside = 0.0
    for label, weight in given.items():
        try:
            weights[find_index(listed.domain, label)] += weight
        except ProblemError as error:
            if strict:
                raise error.at(key) from error
            outside += weight
    return weights, outside


def _column(spec: schema.Column, listed: Listed, directory: Path) -> Floats:
    if listed.table is None:
        raise ProblemError(
            "there is no table to take a column from",
            where="column",
            remedy='Use secrets of kind = "table", or a prior of kind = "weights"',
        )
    columns = listed.table.columns(directory, [spec.column])
    complete_numbers(columns, [spec.column], listed.table)
    weights = columns[spec.column]
    negative = np.flatnonzero(weights < 0)
    if len(negative):
        raise ProblemError(
            f"{listed.table.name}: data row {negative[0] + 1} has the negative weight "
            f"{weights[negative[0]]:g}",
            where="column",
            remedy="Weights must be >= 0",
        )
    return listed.by_secret(weights)


def _observations(spec: schema.Observations, context: Context) -> Prior:
    source = DataFile(spec.file, spec.package, spec.resource)
    names = [spec.x, spec.y] + ([] if spec.weight is None else [spec.weight])
    columns = source.columns(context.directory, names)
    weights = None
    if spec.weight is not None:
        complete_numbers(columns, [spec.weight], source)
        weights = columns[spec.weight]
    kept = _selected(spec, source, context.directory, len(columns[spec.x]))
    try:
        return Prior.from_points(
            context.domain,
            np.column_stack([columns[spec.x], columns[spec.y]])[kept],
            None if weights is None else weights[kept],
            max_distance=spec.max_distance,
            smoothing=spec.smoothing,
        )
    except ProblemError as error:
        raise _inside_prior(error) from error


def _selected(
    spec: schema.Observations, source: DataFile, directory: Path, count: int
) -> NDArray[np.bool_]:
    """The rows whose texts are among those of ``only`` and not among those of ``without``."""
    kept = np.ones(count, dtype=bool)
    if not spec.only and not spec.without:
        return kept
    texts = source.text_columns(directory, sorted({*spec.only, *spec.without}))
    for chosen, wanted in ((spec.only, True), (spec.without, False)):
        for name, values in chosen.items():
            kept &= np.isin(texts[name], values) == wanted
    if not kept.any():
        raise ProblemError(
            f"{source.name}: no row is left",
            where="only" if spec.only else "without",
            remedy="The texts must be written as in the file",
        )
    return kept


def _prior(context: Context, weights: Floats, binning: Binning | None) -> Prior:
    try:
        return Prior(context.domain, weights, binning)
    except ProblemError as error:
        raise _inside_prior(error) from error


def _inside_prior(error: ProblemError) -> ProblemError:
    """The error with its place relative to the table that describes the prior."""
    inner = error.where.removeprefix("prior").removeprefix(".")
    return type(error)(error.message, where=inner, remedy=error.remedy)


def build_distribution(given: DistributionSpec, context: Context) -> Floats:
    """Weights over the secrets, from an array, a table or a recipe."""
    if isinstance(given, dict):
        weights = np.zeros(len(context.domain))
        for label, weight in given.items():
            weights[find_index(context.domain, label)] += weight
        return weights
    if not isinstance(given, list):
        return build_prior(given, context).weights
    if len(given) != len(context.domain):
        raise ProblemError(
            f"has {len(given)} entries for {len(context.domain)} secrets",
            remedy=f"Give {len(context.domain)}, or a table from label to weight",
        )
    return np.array(given, dtype=np.float64)
