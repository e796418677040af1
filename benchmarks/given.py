"""What benchmarks ask for on the command line: real data or stand-ins, and a results file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import stand_ins

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
BUILD = ROOT / "build" / "benchmarks"
"""Stand-ins, and results from them: what is measured on made-up data never joins the rest."""


def add_files(parser: argparse.ArgumentParser, results: Path | None = None) -> None:
    """The options ``--data``, ``--stand-ins`` and, where there are results, ``--results``."""
    parser.add_argument("--data", type=Path, help="a folder of the tables of docs/data.md")
    parser.add_argument("--stand-ins", action="store_true", help="made-up data, whatever is there")
    if results is not None:
        parser.add_argument("--results", type=Path, default=results)


def settle(args: argparse.Namespace, *needed: str) -> None:
    """Make ``args.data`` a folder with the files that are needed, and say which it is. Where they
    are not there, stand-ins are written, and results go beside them unless a place is named."""
    known = args.data or DATA
    missing = [name for name in needed if not (known / name).exists()]
    if args.data and missing and not args.stand_ins:
        raise SystemExit(f"there is no {missing[0]} in {args.data} (docs/data.md says what it is)")
    if not args.stand_ins and not missing:
        args.data = known
        said = "real data" if needed else "none"
    else:
        args.data = BUILD / "stand-ins"
        stand_ins.write(args.data, needed)
        args.stand_ins = True
        said = f"stand-ins, seed {stand_ins.SEED}"
        results = getattr(args, "results", None)
        if results is not None and ROOT / "benchmarks" in results.resolve().parents:
            args.results = BUILD / "results" / results.name
            args.results.parent.mkdir(parents=True, exist_ok=True)
    print(f"data: {said}", file=sys.stderr, flush=True)
