"""Solver profiles: how to solve, kept apart from what is wanted. TOML files in ``solvers/``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path

from optmech import cores
from optmech.engines import NAMES
from optmech.engines.base import Options
from optmech.errors import ProblemError
from optmech.exact import parse_exact
from optmech.reductions import Reduction, parse_reduction
from optmech.resources import data_folder

_MOST_THREADS = 16
"""More threads than this have every block's work shared out too thinly, each with its own sums."""


@dataclass(frozen=True)
class Profile:
    """Engine, reductions, tolerances and limits. See ``solvers/README.md``.

    ``threads`` None stands for the processors at hand, up to 16.

    Raises
    ------
    ProblemError
        On an unknown engine or reduction, or a number out of range.
    """

    name: str = "custom"
    description: str = ""
    engine: str = "auto"
    method: str = ""
    solver: str = ""
    reductions: tuple[str, ...] = (
        "dominated-observables",
        "dominated-estimates",
        "implied-pairs",
    )
    gap: float = 1e-6
    tolerance: float = 1e-10
    time_limit: float | None = None
    threads: int | None = None
    device: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
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
        parse_exact(self.gap, where="gap", positive=True)
        parse_exact(self.tolerance, where="tolerance", positive=True)
        if self.time_limit is not None:
            parse_exact(self.time_limit, where="time_limit", positive=True)
        if self.threads is not None and (
            isinstance(self.threads, bool) or not isinstance(self.threads, int) or self.threads < 1
        ):
            raise ProblemError(f"{self.threads!r} is not a whole number >= 1", where="threads")
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
        if not isinstance(self.parameters, Mapping):
            raise ProblemError("is not a table", where="parameters")

    def parsed_reductions(self) -> tuple[Reduction, ...]:
        """The reductions as objects, in order."""
        return tuple(parse_reduction(text) for text in self.reductions)

    def with_limits(self, gap: float | None, time_limit: float | None) -> Profile:
        """The profile with another gap or time limit, where they are given."""
        profile = self
        if gap is not None:
            profile = replace(profile, gap=float(parse_exact(gap, where="gap", positive=True)))
        if time_limit is not None:
            seconds = float(parse_exact(time_limit, where="time_limit", positive=True))
            profile = replace(profile, time_limit=seconds)
        return profile

    def on_device(self, device: str | None) -> Profile:
        """The profile with another device, where one is given."""
        return self if device is None else replace(self, device=device)

    def options(self) -> Options:
        """What an engine gets to see."""
        return Options(
            gap=self.gap,
            tolerance=self.tolerance,
            method=self.method,
            solver=self.solver,
            threads=self.threads or min(cores.at_hand(), _MOST_THREADS),
            device=self.device,
            parameters=self.parameters,
        )


def load_profile(which: str | Path | Profile) -> Profile:
    """A profile by name (``"auto"``), by the path of a TOML file, or as it is."""
    if isinstance(which, Profile):
        return which
    path = Path(which)
    if path.suffix != ".toml":
        path = data_folder("solvers") / f"{which}.toml"
        if not path.is_file():
            raise ProblemError(
                f"there is no profile {str(which)!r}",
                where="profile",
                remedy=f"Use one of {', '.join(p.name for p in list_profiles())}, "
                "or the path of a .toml file",
            )
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProblemError(f"cannot be read: {error.strerror}", where=str(path)) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ProblemError(f"is not TOML: {error}", where=str(path)) from error
    known = {f.name for f in fields(Profile)} - {"name"}
    unknown = sorted(set(content) - known)
    if unknown:
        raise ProblemError(
            f"unknown key {unknown[0]!r}",
            where=str(path),
            remedy=f"The keys are {', '.join(sorted(known))}",
        )
    if isinstance(content.get("reductions"), list):
        content["reductions"] = tuple(content["reductions"])
    try:
        return Profile(name=path.stem, **content)
    except ProblemError as error:
        raise error.at(str(path)) from error


def list_profiles() -> list[Profile]:
    """The profiles that come with optmech, by name."""
    return [load_profile(path) for path in sorted(data_folder("solvers").glob("*.toml"))]
