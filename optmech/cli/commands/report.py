"""``optmech report``: a page to look at a design, or to compare several."""

from __future__ import annotations

import argparse
from pathlib import Path

from optmech.cli import output
from optmech.errors import ProblemError

SUMMARY = "write a page that shows a saved design, or compares several"
EXAMPLE = "optmech report design.json -o report.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "designs", metavar="DESIGN", nargs="+", help="files written by optmech solve -o"
    )
    parser.add_argument(
        "--backdrop",
        metavar="GEOJSON",
        help="lines behind the maps (districts, a coast, roads): GeoJSON in degrees, also "
        ".gz, or PACKAGE:RESOURCE of an installed package",
    )
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the HTML file")


def run(args: argparse.Namespace) -> int:
    """Check every design on reading it, and write the page."""
    from optmech.base.storage import ending
    from optmech.designs.design import Design
    from optmech.show.reports import report

    output.claim_outputs(args, [*args.designs, args.backdrop])
    if ending(args.output, ".html") not in (".html", ".htm"):
        raise ProblemError(
            f"{args.output}: is not the name of a page",
            where="--output",
            remedy="Use a name that ends in .html",
        )
    designs = [Design.load(path) for path in args.designs]
    names = [Path(path).stem for path in args.designs] if len(designs) > 1 else None
    size = report(designs, args.output, names, backdrop=args.backdrop)
    if args.json:
        output.print_json({"output": args.output, "designs": len(designs), "bytes": size})
    else:
        output.written(f"report ({size / 1e6:.1f} MB)", args.output)
    return 0
