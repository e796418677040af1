"""``optmech report``: a page to look at a design, or to compare several."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optmech.base.extensions import FILES, extension
from optmech.cli.inputs import option
from optmech.cli.output import Answer, claim_outputs, require_page
from optmech.errors import ProblemError, moved

if TYPE_CHECKING:
    from optmech.designs.design import Design

SUMMARY = "write a page that shows a saved design, or compares several"
EXAMPLE = "optmech report design.json -o report.html"


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


def run(args: Namespace) -> Answer:
    """Check every design on reading it, and write the page."""
    import webbrowser

    from optmech.base.storage import is_standard_output
    from optmech.reading.errors import by_ending
    from optmech.show.reports import report

    for path in args.designs:
        if (other := by_ending(path)) is not None:
            raise ProblemError(f"is {other[0]}, and no design", where=path, remedy=other[1])
    if args.output is None:
        first, one = Path(args.designs[0]), len(args.designs) == 1
        page = first.with_name(f"{first.stem}.html" if one else "report.html")
        args.output = str(first / "report.html" if os.path.isdir(first) else page)
    claim_outputs(args, [*args.designs, args.backdrop])
    require_page(args.output, "--output")
    designs, names, shown = _read(args.designs)
    several = names if len(designs) > 1 else None
    size = report(designs, args.output, several, backdrop=args.backdrop, **shown)
    address = Path(os.path.abspath(args.output)).as_uri()
    shut = args.open and (is_standard_output(args.output) or not webbrowser.open(address))
    return Answer(
        {"designs": len(designs), "bytes": size},
        files={"output": f"report ({size / 1e6:.1f} MB)"},
        notes=[f"no browser could be opened: {address}"] if shut else (),
    )


def _read(paths: list[str]) -> tuple[list[Design], list[str], dict[str, Any]]:
    """Designs, their names, and what each belongs to with the page's title, where they have one."""
    from optmech.designs.design import Design

    run = next(filter(os.path.isdir, paths), None)
    if run is None:
        return [Design.load(path) for path in paths], [Path(path).stem for path in paths], {}
    if len(paths) > 1:
        raise ProblemError(
            "is a directory beside other arguments",
            where=run,
            remedy="Give the directory of one run, or designs",
        )
    with moved(run):
        reader = extension(FILES, "run")
    designs, names, groups, title = reader.designs(Path(run))
    return designs, names, {"groups": groups, "title": title or None}
