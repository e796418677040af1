"""From the sections of a trace file to a prior, a path and a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import add, mul
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError, inside
from optmech.files.schema import traces as schema
from optmech.reading.data import DataFile
from optmech.reading.errors import Collector, show
from optmech.reading.source import read_document
from optmech.tasks.gaussian import GaussianTask
from optmech.traces.chains.sequences import Fixes
from optmech.traces.gaussian import kernels
from optmech.traces.gaussian.fitting import Fit, fit, paths
from optmech.traces.gaussian.kernels import Kernel
from optmech.traces.gaussian.prior import GaussianPrior, increasing, noise_matrix, secret_steps

_FAMILIES: dict[str, Callable[..., Kernel]] = {
    "rbf": kernels.rbf,
    "ornstein_uhlenbeck": kernels.ornstein_uhlenbeck,
    "matern": kernels.matern,
    "periodic": kernels.periodic,
}
"""Kernels of a single length scale, their first argument."""


def build_gaussian(
    spec: schema.GaussianTrace, directory: Path, errors: Collector, title: str
) -> GaussianTask | None:
    """The problem, or None when ``errors`` has gathered any, before or here."""
    times, path, fitted = None, None, None
    kernel: Kernel | None = None
    trace: GaussianPrior | None = None
    with errors.at("times" if spec.times is not None else "gps"):
        if spec.times is not None:
            times = _times(spec.times)
        elif spec.gps is not None:
            times, path = _gps(spec.gps, directory)
    if spec.kernel is not None and times is not None:
        with errors.at("kernel"):
            if isinstance(spec.kernel, schema.Fitted):
                fitted = _fitted(spec.kernel, times, path)
                kernel = fitted.kernel
            else:
                kernel = build_kernel(spec.kernel)
    if times is not None and kernel is not None:
        with errors.at(""):
            trace = GaussianPrior(times, kernel, spec.dimensions if path is None else path.shape[1])
    if trace is None:
        return None
    return _question(spec, trace, directory, errors, path, fitted, title)


def _question(
    spec: schema.GaussianTrace,
    trace: GaussianPrior,
    directory: Path,
    errors: Collector,
    path: Floats | None,
    fitted: Fit | None,
    title: str,
) -> GaussianTask | None:
    sets: list[list[int]] = spec.secrets or []
    for k, one in enumerate(sets):
        with errors.at(""):
            secret_steps(trace, one, where="secrets" if len(sets) == 1 else f"secrets[{k}]")
    noise, family = None, None
    notes: tuple[str, ...] = ()
    if spec.noise is not None:
        with errors.at(""):
            noise, made_for = _noise(spec.noise, trace, directory)
            notes = _other_question(spec, made_for)
    if spec.length_scales is not None:
        with errors.at("length_scales"):
            family = _family(spec.kernel)
            if spec.length_scales[0] > spec.length_scales[1]:
                raise ProblemError("is not increasing", remedy="Give [low, high]")
            own = getattr(spec.kernel, "length_scale", None)
            inside = own is not None and spec.length_scales[0] <= own <= spec.length_scales[1]
            if spec.epsilon is not None and not inside:
                raise ProblemError(
                    f"do not hold the kernel's own {own:g}", remedy="Widen the interval"
                )
            if len(sets) > 1:
                raise ProblemError("needs a single set of secrets", remedy="Keep one set")
    if spec.subsets is not None and spec.subsets > len(trace):
        with errors.at("subsets"):
            raise ProblemError(
                f"{spec.subsets} is more than the {len(trace)} positions",
                remedy="Give the largest size of the sets to look at",
            )
    if errors.errors or not sets or spec.radius is None or spec.order is None:
        return None
    scales = spec.length_scales
    return GaussianTask(
        title,
        trace,
        tuple(tuple(one) for one in sets),
        spec.radius,
        spec.order,
        spec.ball,
        spec.epsilon,
        noise,
        spec.delta,
        spec.subsets,
        None if scales is None else (scales[0], scales[1]),
        family,
        path,
        fitted,
        spec.unit or ("km" if spec.gps is not None else ""),
        notes,
    )


def build_kernel(spec: Any) -> Kernel:
    """The kernel of a section ``[kernel]``."""
    if isinstance(spec, schema.Joined):
        return reduce(add if spec.kind == "sum" else mul, map(build_kernel, spec.parts))
    if isinstance(spec, schema.Flat):
        return (kernels.white if spec.kind == "white" else kernels.constant)(spec.variance)
    if isinstance(spec, schema.Fitted):
        raise ProblemError("can only stand alone", where="kind", remedy="Give its numbers instead")
    return _family(spec)(spec.length_scale)


def _family(spec: Any) -> Callable[[Any], Kernel]:
    if isinstance(spec, schema.Stationary):
        others = spec.model_dump(exclude={"kind", "length_scale"})
        return partial(_FAMILIES[spec.kind], **others)
    raise ProblemError(
        "needs a kernel of a single length scale", remedy="Use rbf, matern or another single one"
    )


def _times(spec: schema.Times) -> Floats:
    if spec.values is not None:
        try:
            return increasing(spec.values)
        except ProblemError as error:
            raise error.moved(error.where.replace("times", "values", 1)) from error
    return increasing(spec.start + spec.step * np.arange(spec.count or 1))


def _gps(spec: schema.Gps, directory: Path) -> tuple[Floats, Floats]:
    file = DataFile(spec.file).path(directory)
    fixes = Fixes.from_csv(file, user=spec.user_column, time=spec.time, x=spec.x, y=spec.y)
    own = np.flatnonzero(np.array(fixes.users) == spec.user).tolist()
    if not own:
        raise ProblemError(
            f"{spec.file}: there is no user {spec.user!r}",
            where="user",
            remedy=f"The first ones are {', '.join(list(dict.fromkeys(fixes.users))[:5])}",
        )
    single = Fixes([spec.user] * len(own), fixes.times[own], fixes.xy[own])
    runs = paths(single, spec.max_gap, spec.spacing, least=spec.count)
    if spec.run >= len(runs):
        raise ProblemError(
            f"user {spec.user} has {len(runs)} runs of {spec.count} fixes, at most "
            f"{spec.max_gap:g} s apart",
            where="run",
            remedy="Use a smaller count or run, or a larger max_gap",
        )
    chosen = runs[spec.run]
    return chosen.times[: spec.count], chosen.positions[: spec.count]


def _fitted(spec: schema.Fitted, times: Floats, path: Floats | None) -> Fit:
    if path is None:
        raise ProblemError(
            "there are no positions to fit to", where="kind", remedy="Give gps instead of times"
        )
    shape = {"smoothness": spec.smoothness} if spec.family == "matern" else {}
    family = partial(_FAMILIES[spec.family], **shape)
    bounds = None if spec.bounds is None else (spec.bounds[0], spec.bounds[1])
    return fit([(times, path)], family, bounds=bounds, noise=spec.noise)


def _covariance(document: dict[str, Any], name: str, trace: GaussianPrior) -> Any:
    """The covariance of a noise file, made for the times and dimensions of the trace."""
    value = document.get("covariance")
    place, remedy = "noise.file", "Use trace -o"
    if value is None:
        raise ProblemError(f"{name} has no covariance", where=place, remedy=remedy)
    rows = value if isinstance(value, list) else []
    entries = [x for row in rows for x in (row if isinstance(row, list) else [None])]
    if not entries or any(isinstance(x, bool) or not isinstance(x, int | float) for x in entries):
        what = f"{name}: the covariance is not rows of numbers"
        raise ProblemError(what, where=place, remedy=remedy)
    other = ""
    if "times" in document:
        times = finite_array(document["times"], where=place, ndim=1)
        same = times.shape == trace.times.shape
        if not same or not np.allclose(times, trace.times, rtol=1e-9, atol=0):
            other = "other times than those of this trace"
    if not other and document.get("dimensions", trace.dimensions) != trace.dimensions:
        other = f"positions of {document['dimensions']!r} coordinates, and these have "
        other += str(trace.dimensions)
    if other:
        remedy = "Make noise for this trace, or give the covariance itself"
        raise ProblemError(f"{name}: was made for {other}", where=place, remedy=remedy)
    return value


def _noise(value: Any, trace: GaussianPrior, directory: Path) -> tuple[Floats, Mapping[str, Any]]:
    """The covariance, and what a noise file says about it."""
    made_for: Mapping[str, Any] = {}
    if isinstance(value, dict):
        with inside("noise"):
            file = DataFile(value["file"]).path(directory)
        made_for = read_document(file)
        value = _covariance(dict(made_for), file.name, trace)
    try:
        return noise_matrix(trace, value), made_for
    except ProblemError as error:
        raise error.moved("noise") from error


def _other_question(spec: schema.GaussianTrace, made_for: Mapping[str, Any]) -> tuple[str, ...]:
    """In words, what a noise file was made for and this trace file does not ask."""
    asked = {"secrets": spec.secrets, "radius": spec.radius, "order": spec.order}
    return tuple(
        f"the noise was made for other {name} ({show(made_for[name])}); the loss is measured for "
        f"those of this file ({show(value)})"
        for name, value in asked.items()
        if name in made_for and made_for[name] != value
    )
