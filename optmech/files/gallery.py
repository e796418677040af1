"""Finding problem files: by path, or by name in the gallery that comes with the package."""

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from optmech.base.machine import data_folder
from optmech.base.paths import path_of
from optmech.errors import ProblemError


@dataclass(frozen=True)
class GalleryEntry:
    """One problem of the gallery."""

    name: str
    path: Path
    title: str
    secrets: int | None
    """Number of secrets; None where the data of the file are not installed."""
    observables: int | None
    optimum: float | None
    """The optimal objective, where it is known."""
    note: str = ""
    """Why there are no numbers, where there are none."""


TRACES = "traces"
"""Folder of the trace files inside the gallery."""
SWEEPS = "sweeps"
"""Folder of the sweep files inside the gallery."""


def gallery_names(folder: str = "") -> list[str]:
    """Names of the gallery, or of the files in a folder of it, in alphabetical order."""
    return sorted(path.stem for path in (data_folder("problems") / folder).glob("*.toml"))


def find_problem(name: str | Path, folder: str = "") -> Path:
    """The file that ``name`` means: an existing path, or else a name of the gallery, or of a folder
    of it. Raises ProblemError when there is neither; similar names are suggested."""
    path = path_of(name)
    if os.path.exists(path) and not (os.path.isdir(path) and str(name) in gallery_names(folder)):
        return path
    names = gallery_names(folder)
    if str(name) in names:
        return data_folder("problems") / folder / f"{name}.toml"
    for other, what, command in ((TRACES, "trace", "trace"), (SWEEPS, "sweep", "sweep"),
                                 ("", "problem", "solve")):  # fmt: skip
        if other != folder and str(name) in gallery_names(other):
            raise ProblemError(
                f"is a {what} of the gallery",
                where=str(name),
                remedy=f"Use optmech {command} {name}",
            )
    close = difflib.get_close_matches(str(name)[:80], names, n=3)
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    raise ProblemError(
        "there is no such file, and no such problem in the gallery",
        where=ascii(str(name))[1:-1][:200] or "''",
        remedy=f"{hint}Run optmech problems for the names of the gallery",
    )


def list_gallery() -> list[GalleryEntry]:
    """Every problem of the gallery with its title, sizes and known optimum."""
    return [_entry(name) for name in gallery_names()]


def list_traces() -> list[dict[str, str]]:
    """Name, title and path of every trace file of the gallery."""
    from optmech.reading.source import read_document

    found = []
    for name in gallery_names(TRACES):
        path = data_folder("problems") / TRACES / f"{name}.toml"
        title = str(read_document(path).get("title", name))
        found.append({"name": name, "title": title, "path": str(path)})
    return found


def _entry(name: str) -> GalleryEntry:
    from optmech.files.problem import build_secrets
    from optmech.files.validate import validate
    from optmech.reading.errors import Collector
    from optmech.reading.source import read_document

    path = data_folder("problems") / f"{name}.toml"
    errors = Collector()
    secrets = observables = None
    spec = validate(read_document(path), errors)
    place = build_secrets(spec, path.parent, errors)
    if place is not None:
        secrets = observables = len(place.secrets)
        if spec.observables is not None:
            with errors.at("observables"):
                observables = len(spec.observables.build(place))
    note = str(errors.errors[0]) if errors.errors else ""
    return GalleryEntry(name, path, spec.title, secrets, observables, spec.optimum, note)
