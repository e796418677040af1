"""``optmech report``: a page to look at a design, or to compare several."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from optmech.cli.inputs import option
from optmech.cli.output import Answer, claim_outputs, note, require_page
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.designs.design import Design

SUMMARY = "write a page that shows a saved design, or compares several"
EXAMPLE = "optmech report design.json -o report.html"
_MOST = 1000


ARGUMENTS = {
    "designs DESIGN|RUN": option(
        "files written by optmech solve -o, or the directory of a run of optmech sweep, whose "
        "frontier has a line for every series",
        nargs="+",
    ),
    "--backdrop GEOJSON": (
        "lines behind the maps (districts, a coast, roads): GeoJSON in degrees, also "
        ".gz, or PACKAGE:RESOURCE of an installed package"
    ),
    "-o --output OUT": "the HTML file (default: beside the first design, or in the run's "
    "directory)",
    "--open": "show the page in a browser",
}


def run(args: argparse.Namespace) -> Answer:
    """Check every design on reading it, and write the page."""
    from optmech.reading.errors import by_ending
    from optmech.show.reports import report

    for path in args.designs:
        if (other := by_ending(path)) is not None:
            raise ProblemError(f"is {other[0]}, and no design", where=path, remedy=other[1])
    if args.output is None:
        args.output = _beside(args.designs)
    claim_outputs(args, [*args.designs, args.backdrop])
    require_page(args.output, "--output")
    shown = _read(args.designs)
    size = report(
        shown.designs,
        args.output,
        shown.names,
        groups=shown.groups,
        backdrop=args.backdrop,
        title=shown.title,
    )
    return Answer(
        {"designs": len(shown.designs), "bytes": size},
        files={"output": f"report ({size / 1e6:.1f} MB)"},
        notes=_open(args.output) if args.open else (),
    )


class _Shown(NamedTuple):
    """Designs, their names where there are several, what each belongs to, and the page's title."""

    designs: list[Design]
    names: list[str] | None
    groups: list[str] | None = None
    title: str | None = None


def _read(paths: list[str]) -> _Shown:
    from optmech.designs.design import Design

    runs = [path for path in paths if os.path.isdir(path)]
    if not runs:
        designs = [Design.load(path) for path in paths]
        return _Shown(designs, [Path(p).stem for p in paths] if len(designs) > 1 else None)
    if len(paths) > 1:
        raise ProblemError(
            "is a directory beside other arguments",
            where=runs[0],
            remedy="Give the directory of one run, or designs",
        )
    return _read_run(runs[0])


def _read_run(path: str) -> _Shown:
    from optmech.sweeps.directory import MANIFEST, read_manifest
    from optmech.sweeps.run import SweepResult, named_designs

    if not os.path.isfile(Path(path) / MANIFEST):
        raise ProblemError(
            "this is a folder, and not that of a sweep",
            where=path,
            remedy="Name designs in it, or the directory of a run of optmech sweep",
        )
    result = SweepResult.load(path)
    tasks, names, groups = named_designs(result)
    if not tasks:
        raise ProblemError(
            "has no designs", where=path, remedy="Run the sweep, or see why its tasks failed"
        )
    if len(tasks) > _MOST:
        raise ProblemError(
            f"has {len(tasks):,} designs, and a page compares {_MOST:,} at most",
            where=path,
            remedy=f"Name some of them: optmech report {Path(path) / 'designs'}/*.json",
        )
    designs = []
    for k, task in enumerate(tasks, start=1):
        designs.append(result.design(task))
        if k % 50 == 0:
            note(f"{k} of {len(tasks)} designs checked")
    title = str(read_manifest(Path(path)).get("title") or "")
    return _Shown(designs, names if len(names) > 1 else None, groups, title or None)


def _beside(paths: list[str]) -> str:
    first = Path(paths[0])
    if os.path.isdir(first):
        return str(first / "report.html")
    name = f"{first.stem}.html" if len(paths) == 1 else "report.html"
    return str(first.with_name(name))


def _open(path: str) -> list[str]:
    """Show a page in a browser, where there is one; a note where there is none."""
    import webbrowser

    from optmech.base.storage import is_standard_output

    address = Path(os.path.abspath(path)).as_uri()
    shown = not is_standard_output(path) and webbrowser.open(address)
    return [] if shown else [f"note: no browser could be opened: {address}"]
