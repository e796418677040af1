"""Solver profiles: how to solve, kept apart from what is wanted. TOML files in ``solvers/``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from optmech.base.machine import cores, data_folder
from optmech.base.read_only import ReadOnly
from optmech.base.storage import path_of
from optmech.engines import NAMES
from optmech.engines.base import Options
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import whole
from optmech.exact.number import parse_exact
from optmech.reading.errors import show
from optmech.reading.source import read_document
from optmech.reductions import Reduction, parse_reduction
from optmech.spaces.arguments import kind

_ALLOWED_THREADS = 256
_MOST_THREADS = 16
"""More threads than this have every block's work shared out too thinly, each with its own sums."""


@kind('Give a name, such as "auto", or the path of one', words="profile")
@dataclass(frozen=True)
class Profile(ReadOnly):
    """Engine, reductions, tolerances and limits. See ``solvers/README.md``.

    ``threads`` None stands for the processors at hand, up to 16.

    Raises
    ------
    ProblemError
        On an unknown engine or reduction, or a number out of range.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> quick = om.Profile(engine="highs", gap=1e-4, time_limit=10)
    >>> om.solve(problem, quick).engine
    'highs'
    >>> slower = om.Profile().with_limits(gap=1e-4, time_limit=60).at_resolution(40)
    >>> slower.gap, slower.time_limit, slower.resolution
    (0.0001, 60.0, 40)
    >>> om.Profile(engine="structured").on_device("cpu").device
    'cpu'
    >>> quick.options().gap, [type(one).__name__ for one in quick.parsed_reductions()]
    (0.0001, ['Symmetry', 'DominatedObservables', 'DominatedEstimates', 'ImpliedPairs'])
    """

    name: str = "custom"
    description: str = ""
    engine: str = "auto"
    method: str = ""
    solver: str = ""
    reductions: tuple[str, ...] = (
        "symmetry",
        "dominated-observables",
        "dominated-estimates",
        "implied-pairs",
    )
    gap: float = 1e-6
    tolerance: float = 1e-10
    time_limit: float | None = None
    threads: int | None = None
    device: str = ""
    resolution: int = 0
    """Cells of the secrets that prove the bound, with a mechanism from a mesh of the plane, or from
    four times as many landmarks; 0 for the whole program. At every point of a region, the cells of
    the lower bound for every mechanism; 0 for as many as help."""
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine not in NAMES:
            raise ProblemError(
                f"{self.engine!r} is unknown",
                where="engine",
                remedy=f"Use one of {', '.join(NAMES)}",
            )
        for name in ("name", "description", "method", "solver", "device"):
            if not isinstance(getattr(self, name), str):
                raise ProblemError("is not a text", where=name)
        if not isinstance(self.reductions, tuple) or not all(
            isinstance(text, str) for text in self.reductions
        ):
            raise ProblemError("is not a list of texts", where="reductions")
        self.parsed_reductions()
        for name in ("gap", "tolerance", "time_limit"):
            if name != "time_limit" or self.time_limit is not None:
                _require_number(getattr(self, name), name)
        if float(parse_exact(self.gap, where="gap")) > 1:
            raise ProblemError(
                f"{self.gap} is more than all of the loss, and no bound is needed for that",
                where="gap",
                remedy="Give a share of the loss, such as 0.01",
            )
        _require_threads(self.threads, "threads")
        if self.method and self.engine not in ("auto", "highs", "lazy"):
            raise ProblemError(
                f"engine {self.engine} has no methods to choose from",
                where="method",
                remedy="Leave it out, or take engine highs or lazy",
            )
        if self.device and self.engine not in ("auto", "structured"):
            raise ProblemError(
                "only the structured engine computes on a device",
                where="device",
                remedy="Take engine auto or structured, or leave the device out",
            )
        whole(self.resolution, "resolution", least=0)
        if not isinstance(self.parameters, Mapping):
            raise ProblemError("is not a table", where="parameters")
        _require_threads(self.parameters.get("threads"), "parameters.threads")

    def parsed_reductions(self) -> tuple[Reduction, ...]:
        """The reductions as objects, in order."""
        return tuple(parse_reduction(text) for text in self.reductions)

    def with_limits(self, gap: float | None, time_limit: float | None) -> Profile:
        """The profile with another gap or time limit, where they are given."""
        changed: dict[str, Any] = {}
        for name, value in (("gap", gap), ("time_limit", time_limit)):
            if value is not None:
                changed[name] = float(parse_exact(value, where=name, positive=True))
        return replace(self, **changed)

    def on_device(self, device: str | None) -> Profile:
        """The profile with another device, where one is given."""
        return self if device is None else replace(self, device=device)

    def at_resolution(self, cells: int | None) -> Profile:
        """The profile with another resolution, where one is given."""
        if cells is None:
            return self
        return replace(self, resolution=whole(cells, "resolution", most=2**53))

    def options(self) -> Options:
        """What an engine gets to see."""
        return Options(
            gap=self.gap,
            tolerance=self.tolerance,
            method=self.method,
            solver=self.solver,
            threads=self.threads or min(cores(), _MOST_THREADS),
            device=self.device,
            parameters=self.parameters,
        )


def _require_number(value: object, where: str) -> None:
    if isinstance(value, str):
        raise ProblemError(
            f"{show(value)} is text", where=where, remedy="Write a number without quotes, like 1e-6"
        )
    if isinstance(value, dict | list):
        raise ProblemError(f"{show(value)} is not a number", where=where, remedy="Write one number")
    parse_exact(value, where=where, positive=True)


def _require_threads(value: object, where: str) -> None:
    if value is None:
        return
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not 1 <= value <= _ALLOWED_THREADS:  # type: ignore[operator]
        raise ProblemError(
            f"{show(value)} is not a whole number of threads, 1 to {_ALLOWED_THREADS}",
            where=where,
            remedy="Leave it out for the processors at hand",
        )


def load_profile(which: str | Path | Profile) -> Profile:
    """A profile by name (``"auto"``), by the path of a TOML file, or as it is."""
    if isinstance(which, Profile):
        return which
    path = path_of(which)
    if path.suffix != ".toml":
        names = {known.stem: known for known in data_folder("solvers").glob("*.toml")}
        path = names.get(str(which), path)
        if str(which) not in names:
            raise ProblemError(
                f"there is no profile {show(str(which))}",
                where="profile",
                remedy=f"Use one of {', '.join(p.name for p in list_profiles())}, "
                "or the path of a .toml file",
            )
    content = read_document(path)
    known = {f.name for f in fields(Profile)} - {"name"}
    unknown = sorted(set(content) - known)
    if unknown:
        raise ProblemError(
            f"unknown key {show(unknown[0])}",
            where=path,
            remedy=f"The keys are {', '.join(sorted(known))}",
        )
    if isinstance(content.get("reductions"), list):
        content["reductions"] = tuple(content["reductions"])
    with inside(str(path)):
        return Profile(name=path.stem, **content)


def list_profiles() -> list[Profile]:
    """The profiles that come with optmech, by name."""
    return [load_profile(path) for path in sorted(data_folder("solvers").glob("*.toml"))]
