"""What the directory of a run is, and the designs in it: a kind of file that optmech reads; and
what a sweep file may say."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from optmech.cli.output import note
from optmech.designs.design import Design
from optmech.designs.promise import Promise
from optmech.errors import ProblemError
from optmech.reading.bounded import read_bytes
from optmech.show.description import Described
from optmech_sweeps.directory import MANIFEST, read_manifest
from optmech_sweeps.files import SweepSection
from optmech_sweeps.run import SweepResult, named_designs

__all__ = ["described", "designs", "schema_model"]
_MOST = 1000


def described(folder: Path) -> Described:
    """Whose promise that of the first design is."""
    path, manifest = folder / MANIFEST, read_manifest(folder)
    content = read_bytes(path)
    saved = sorted((folder / "designs").glob("*.json"))
    promise = Promise("use", "Nothing by itself: every design in designs/ has its own promise.")
    if saved:
        promise = Design.load(saved[0]).promise
    columns = ", ".join(map(str, manifest.get("columns") or ()))
    return Described(
        "sweep", "the directory of a sweep", promise,
        f"sha256:{hashlib.sha256(content).hexdigest()}",
        sum(each.stat().st_size for each in [path, *saved]), False,
        f"the first of {len(saved):,} designs, whose promise this is, was proved again; "
        "optmech check DESIGN proves each",
        f"{len(saved):,} designs over {columns or 'nothing'}",
        str(manifest.get("title") or ""),
    )  # fmt: skip


def designs(folder: Path) -> tuple[list[Design], list[str], list[str] | None, str]:
    """Every design of a run, its name and what it belongs to; and the title of the sweep. Raises
    ProblemError where there are none, or too many for a page."""
    if not os.path.isfile(folder / MANIFEST):
        raise ProblemError(
            "this is a folder, and not that of a sweep",
            where=folder,
            remedy="Name designs in it, or the directory of a run of optmech sweep",
        )
    result = SweepResult.load(folder)
    tasks, names, groups = named_designs(result)
    if not tasks:
        raise ProblemError(
            "has no designs", where=folder, remedy="Run the sweep, or see why its tasks failed"
        )
    if len(tasks) > _MOST:
        raise ProblemError(
            f"has {len(tasks):,} designs, and a page compares {_MOST:,} at most",
            where=folder,
            remedy=f"Name some of them: optmech report {folder / 'designs'}/*.json",
        )
    found = []
    for k, task in enumerate(tasks, start=1):
        found.append(result.design(task))
        if k % 50 == 0:
            note(f"{k} of {len(tasks)} designs checked")
    title = str(read_manifest(folder).get("title") or "")
    return found, names, groups, title


def schema_model() -> type[SweepSection]:
    """What sweep files may be, for their JSON Schema."""
    return SweepSection
