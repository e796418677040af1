"""Trace files of kind "gaussian": a prior, a path and a question."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce
from operator import add, mul
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from optmech.base.arrays import Floats, finite_array
from optmech.errors import ProblemError, described, inside, moved
from optmech.reading.data import DataFile
from optmech.reading.errors import Collector, show
from optmech.reading.sections import (
    ByKind,
    Count,
    ExactNumber,
    FileSection,
    NonNegative,
    Positive,
    Section,
    Some,
    TwoPositive,
    either,
    is_number,
    refusal,
)
from optmech.reading.source import read_document
from optmech_traces.chains.sequences import Fixes
from optmech_traces.gaussian import kernels
from optmech_traces.gaussian.fitting import Fit, fit, paths
from optmech_traces.gaussian.kernels import Kernel
from optmech_traces.gaussian.prior import GaussianPrior, increasing, noise_matrix, secret_steps
from optmech_traces.gaussian.task import GaussianTask

_FAMILIES: dict[str, Callable[..., Kernel]] = {
    "rbf": kernels.rbf,
    "ornstein_uhlenbeck": kernels.ornstein_uhlenbeck,
    "matern": kernels.matern,
    "periodic": kernels.periodic,
}
"""Kernels of a single length scale, their first argument."""


class Curve(Section):
    """What a ``[kernel]`` may be."""

    kind: str

    def build(self) -> Kernel:
        """The kernel. Raises ProblemError where it can only stand alone."""
        raise ProblemError("can only stand alone", where="kind", remedy="Give its numbers instead")

    def alone(self, times: Floats, path: Floats | None) -> tuple[Kernel, Fit | None]:
        """The kernel, and the fit where it is fitted to the positions at the times."""
        return self.build(), None

    def scaled(self) -> Callable[[Any], Kernel]:
        """From a length scale to the kernel. Raises ProblemError where there is no single one."""
        raise ProblemError(
            "needs a kernel of a single length scale",
            remedy="Use rbf, matern or another single one",
        )


class Stationary(Curve):
    """A kernel of a length scale and a variance."""

    length_scale: Positive
    variance: Positive = 1.0

    def build(self) -> Kernel:
        return self.scaled()(self.length_scale)

    def scaled(self) -> Callable[[Any], Kernel]:
        others = self.model_dump(exclude={"kind", "length_scale"})
        return partial(_FAMILIES[self.kind], **others)


class Falling(Stationary):
    """variance · exp(−lag²/(2 length_scale²)) (rbf), or variance · exp(−lag/length_scale)."""

    kind: Literal["rbf", "ornstein_uhlenbeck"]


class Matern(Stationary):
    """The Matérn kernel."""

    kind: Literal["matern"]
    smoothness: Annotated[float, Field(gt=0, le=100)] = 1.5


class Periodic(Stationary):
    """variance · exp(−2 sin²(π lag/period)/length_scale²)."""

    kind: Literal["periodic"]
    period: Positive


class Flat(Curve):
    """Independent positions (white), or one position for all times (constant)."""

    kind: Literal["white", "constant"]
    variance: Positive

    def build(self) -> Kernel:
        return (kernels.white if self.kind == "white" else kernels.constant)(self.variance)


class Joined(Curve):
    """The sum or the product of kernels."""

    kind: Literal["sum", "product"]
    parts: Some[KernelSection]

    def build(self) -> Kernel:
        return reduce(add if self.kind == "sum" else mul, (part.build() for part in self.parts))


class Fitted(Curve):
    """Length scale and variance of a family, by maximum likelihood from the GPS fixes."""

    kind: Literal["fitted"]
    family: Literal["rbf", "ornstein_uhlenbeck", "matern"]
    smoothness: Annotated[float, Field(gt=0, le=100)] = 1.5
    bounds: TwoPositive | None = None
    noise: NonNegative | None = None

    def alone(self, times: Floats, path: Floats | None) -> tuple[Kernel, Fit]:
        if path is None:
            raise ProblemError(
                "there are no positions to fit to", where="kind", remedy="Give gps instead of times"
            )
        shape = {"smoothness": self.smoothness} if self.family == "matern" else {}
        family = partial(_FAMILIES[self.family], **shape)
        bounds = None if self.bounds is None else (self.bounds[0], self.bounds[1])
        found = fit([(times, path)], family, bounds=bounds, noise=self.noise)
        return found.kernel, found


KernelSection = Annotated[
    Falling | Matern | Periodic | Flat | Joined | Fitted,
    ByKind(),
]


class Times(Section):
    """Given times, or ``count`` of them, a ``step`` apart."""

    values: Some[float] | None = None
    count: Annotated[int, Field(ge=1, le=2000)] | None = None
    step: Positive = 1.0
    start: float = 0.0

    _one_form = either("values", "count")

    def build(self, directory: Path) -> tuple[Floats, None]:
        """The times, which increase, and no positions."""
        if self.values is None:
            return increasing(self.start + self.step * np.arange(self.count or 1)), None
        with moved(lambda where: where.replace("times", "values", 1)):
            return increasing(self.values), None


class Gps(Section):
    """A run of fixes of one user from a CSV file; two axes, in km."""

    file: str
    user: str
    user_column: str = "user"
    time: str = "time"
    x: str = "lon"
    y: str = "lat"
    max_gap: Positive = 600.0
    spacing: NonNegative = 0.0
    run: Annotated[int, Field(ge=0)] = 0
    count: Annotated[int, Field(ge=2, le=2000)] = 50

    def build(self, directory: Path) -> tuple[Floats, Floats]:
        """Times and positions of the run."""
        file = DataFile(self.file).path(directory)
        fixes = Fixes.from_csv(file, user=self.user_column, time=self.time, x=self.x, y=self.y)
        own = np.flatnonzero(np.array(fixes.users) == self.user).tolist()
        if not own:
            raise ProblemError(
                f"{self.file}: there is no user {self.user!r}",
                where="user",
                remedy=f"The first ones are {', '.join(list(dict.fromkeys(fixes.users))[:5])}",
            )
        single = Fixes([self.user] * len(own), fixes.times[own], fixes.xy[own])
        runs = paths(single, self.max_gap, self.spacing, least=self.count)
        if self.run >= len(runs):
            raise ProblemError(
                f"user {self.user} has {len(runs)} runs of {self.count} fixes, at most "
                f"{self.max_gap:g} s apart",
                where="run",
                remedy="Use a smaller count or run, or a larger max_gap",
            )
        chosen = runs[self.run]
        return chosen.times[: self.count], chosen.positions[: self.count]


def _index_sets(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise refusal(f"{described(value)} is not a list of indices", "Give [0, 2, 4]")
    nested = [isinstance(item, list) for item in value]
    if any(nested) != all(nested):
        raise refusal("mixes indices and sets", "Give [0, 2], or several sets as [[0, 2], [1]]")
    sets = value if all(nested) else [value]
    for k, one in enumerate(sets):
        for j, index in enumerate(one):
            if type(index) is not int or index < 0:
                place = (k, j) if all(nested) else (j,)
                raise refusal(f"{described(index)} is not an index", "Count times from 0", place)
    return sets


def _noises(value: object) -> object:
    if isinstance(value, dict):
        if set(value) != {"file"} or not isinstance(value["file"], str):
            raise refusal("is not a noise", 'Give { file = "noise.json" }')
        return value
    rows = value if isinstance(value, list) else [value]
    for k, row in enumerate(rows):
        for cell in row if isinstance(row, list) else [row]:
            if not is_number(cell):
                place = (k,) if isinstance(value, list) else ()
                raise refusal(
                    f"{described(cell)} is not a number",
                    "Give a variance, a variance for every time, or a covariance matrix",
                    place,
                )
    return value


_INDICES = {"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 1}
_SETS_SCHEMA = {"anyOf": [_INDICES, {"type": "array", "items": _INDICES, "minItems": 1}]}
_NUMBERS = {"type": "array", "items": {"type": "number"}}
_NOISE_SCHEMA = {
    "anyOf": [
        {"type": "number"},
        _NUMBERS,
        {"type": "array", "items": _NUMBERS},
        {
            "type": "object",
            "properties": {"file": {"type": "string"}},
            "required": ["file"],
            "additionalProperties": False,
        },
    ]
}


class GaussianTrace(FileSection):
    """A trace under a Gaussian conditional prior; required keys are checked by the reader."""

    model_config = ConfigDict(
        title="optmech trace file of kind gaussian",
        json_schema_extra={"required": ["kind", "format", "kernel", "secrets", "radius", "order"]},
    )

    kind: Literal["gaussian"]
    unit: str = ""
    times: Times | None = None
    gps: Gps | None = None
    kernel: KernelSection | None = None
    dimensions: Annotated[int, Field(ge=1, le=3)] = 1
    secrets: Annotated[Any, BeforeValidator(_index_sets), WithJsonSchema(_SETS_SCHEMA)] | None = (
        None
    )
    radius: Positive | None = None
    order: Annotated[float, Field(ge=1)] | None = None
    epsilon: ExactNumber | None = None
    noise: Annotated[Any, BeforeValidator(_noises), WithJsonSchema(_NOISE_SCHEMA)] | None = None
    delta: Annotated[float, Field(gt=0, lt=1)] | None = None
    ball: bool = False
    subsets: Count | None = None
    length_scales: TwoPositive | None = None

    _times = either("times", "gps", at=("times",))
    _question = either(
        "epsilon",
        "noise",
        remedy="epsilon asks for noise; noise asks for its loss",
        at=("epsilon",),
    )

    def build(self, directory: Path, errors: Collector, title: str) -> GaussianTask | None:
        """The problem, or None when ``errors`` has gathered any, before or here."""
        source = self.times or self.gps
        assert source is not None
        placed = errors.tried("gps" if self.times is None else "times", source.build, directory)
        if placed is None or self.kernel is None:
            return None
        times, path = placed
        made = errors.tried("kernel", self.kernel.alone, times, path)
        if made is None:
            return None
        kernel, fitted = made
        dimensions = self.dimensions if path is None else path.shape[1]
        trace = errors.tried("", GaussianPrior, times, kernel, dimensions)
        if trace is None:
            return None
        sets: list[list[int]] = self.secrets or []
        for k, one in enumerate(sets):
            where = "secrets" if len(sets) == 1 else f"secrets[{k}]"
            errors.tried("", secret_steps, trace, one, where=where)
        noise, made_for = errors.tried("", self._noise, trace, directory) or (None, {})
        family, scales = None, None
        if self.length_scales is not None:
            with errors.at("length_scales"):
                family = self.kernel.scaled()
                scales = self._interval(self.length_scales, len(sets))
        if self.subsets is not None and self.subsets > len(trace):
            errors.add(
                ProblemError(
                    f"{self.subsets} is more than the {len(trace)} positions",
                    where="subsets",
                    remedy="Give the largest size of the sets to look at",
                )
            )
        if errors.errors or not sets or self.radius is None or self.order is None:
            return None
        return GaussianTask(
            title,
            trace,
            tuple(map(tuple, sets)),
            self.radius,
            self.order,
            self.ball,
            self.epsilon,
            noise,
            self.delta,
            self.subsets,
            scales,
            family,
            path,
            fitted,
            self.unit or ("km" if self.gps is not None else ""),
            self._other_question(made_for),
        )

    def _noise(
        self, trace: GaussianPrior, directory: Path
    ) -> tuple[Floats | None, Mapping[str, Any]]:
        """The covariance, and what a noise file says about it."""
        value: Any = self.noise
        made_for: Mapping[str, Any] = {}
        if value is None:
            return None, made_for
        if isinstance(value, dict):
            with inside("noise"):
                file = DataFile(value["file"]).path(directory)
            made_for = read_document(file)
            value = _covariance(made_for, file.name, trace)
        with moved("noise"):
            return noise_matrix(trace, value), made_for

    def _interval(self, scales: list[float], sets: int) -> tuple[float, float]:
        """The length scales to check; raises ProblemError where they do not suit the rest."""
        low, high = scales
        if low > high:
            raise ProblemError("is not increasing", remedy="Give [low, high]")
        own = getattr(self.kernel, "length_scale", None)
        if self.epsilon is not None and not (own is not None and low <= own <= high):
            raise ProblemError(f"do not hold the kernel's own {own:g}", remedy="Widen the interval")
        if sets > 1:
            raise ProblemError("needs a single set of secrets", remedy="Keep one set")
        return low, high

    def _other_question(self, made_for: Mapping[str, Any]) -> tuple[str, ...]:
        """In words, what a noise file was made for and this trace file does not ask."""
        asked = {"secrets": self.secrets, "radius": self.radius, "order": self.order}
        return tuple(
            f"the noise was made for other {name} ({show(made_for[name])}); the loss is measured "
            f"for those of this file ({show(value)})"
            for name, value in asked.items()
            if name in made_for and made_for[name] != value
        )


def _covariance(document: dict[str, Any], name: str, trace: GaussianPrior) -> Any:
    """The covariance of a noise file, made for the times and dimensions of the trace."""
    value = document.get("covariance")
    place, remedy = "noise.file", "Use trace -o"
    if value is None:
        raise ProblemError(f"{name} has no covariance", where=place, remedy=remedy)
    rows = value if isinstance(value, list) else []
    entries = [x for row in rows for x in (row if isinstance(row, list) else [None])]
    if not entries or not all(map(is_number, entries)):
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
