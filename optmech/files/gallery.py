"""Finding problem files: by path, or by name in the gallery that comes with the package."""

import difflib
import os
from dataclasses import dataclass
from pathlib import Path

from optmech.base.extensions import TASKS, added, extension, gallery_of
from optmech.base.machine import data_folder
from optmech.base.storage import path_of
from optmech.errors import ProblemError
from optmech.reading.source import read_document


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


SWEEPS = "sweeps"
"""Folder of the sweep files inside the gallery."""


def gallery_names(folder: str = "") -> list[str]:
    """Names of the gallery, or of the files in a folder of it, or of a kind of task of another
    distribution, in alphabetical order."""
    return sorted(path.stem for path in _folder(folder).glob("*.toml"))


def _folder(name: str) -> Path:
    if name in added(TASKS):
        return gallery_of(name)
    return data_folder("problems") / name


def _path(name: str, folder: str = "") -> Path:
    return _folder(folder) / f"{name}.toml"


def find_problem(name: str | Path, folder: str = "") -> Path:
    """The file that ``name`` means: an existing path, or else a name of the gallery, or of a folder
    of it. Raises ProblemError when there is neither; similar names are suggested."""
    path, names = path_of(name), gallery_names(folder)
    if os.path.exists(path) and not (os.path.isdir(path) and str(name) in names):
        return path
    if str(name) in names:
        return _path(str(name), folder)
    if (error := not_a_file(str(name))) is not None:
        raise error
    close = difflib.get_close_matches(str(name)[:80], names, n=3)
    hint = f"Did you mean {' or '.join(close)}? " if close else ""
    raise ProblemError(
        "there is no such file, and no such problem in the gallery",
        where=ascii(str(name))[1:-1][:200] or "''",
        remedy=f"{hint}Run optmech problems for the names of the gallery",
    )


_KINDS = {
    "": ("a problem", "optmech solve {0} -o {0}.json makes its design"),
    SWEEPS: ("a sweep", "Use optmech sweep {0} -o {0}"),
}
"""What the folders of the gallery hold, and the commands for it."""


def not_a_file(name: str) -> ProblemError | None:
    """What to say of a name of the gallery that is none of the file that is wanted; None of other
    names."""
    others = {kind: extension(TASKS, kind) for kind in added(TASKS)}
    kinds = _KINDS | {kind: (other.WHAT, other.REMEDY) for kind, other in others.items()}
    for folder, (what, remedy) in kinds.items():
        if name in gallery_names(folder):
            said = f"is {what} of the gallery, and no file"
            return ProblemError(said, where=name, remedy=remedy.format(name))
    return None


def list_gallery() -> list[GalleryEntry]:
    """Every problem of the gallery with its title, sizes and known optimum."""
    return [_entry(name) for name in gallery_names()]


def list_tasks() -> dict[str, list[dict[str, str]]]:
    """Name, title and path of every file of the gallery for tasks of other distributions, by their
    kind."""
    return {kind: [_listed(name, kind) for name in gallery_names(kind)] for kind in added(TASKS)}


def _listed(name: str, kind: str) -> dict[str, str]:
    path = _path(name, kind)
    title = str(read_document(path).get("title", name))
    return {"name": name, "title": title, "path": str(path)}


def _entry(name: str) -> GalleryEntry:
    from optmech.files.problem import build_secrets
    from optmech.files.validate import validate
    from optmech.reading.errors import Collector

    path = _path(name)
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
