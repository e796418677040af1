"""What benchmarks ask for on the command line: real data or stand-ins, and a results file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import stand_ins

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
STAND_INS = ROOT / "build" / "benchmarks" / "stand-ins"
"""Results from them lie beside: what is measured on made-up data never joins the rest."""


def add_files(parser: argparse.ArgumentParser, results: Path | None = None) -> None:
    """The options ``--data``, ``--stand-ins`` and, where there are results, ``--results``."""
    parser.add_argument("--data", type=Path, help="a folder of the tables of docs/data.md")
    parser.add_argument("--stand-ins", action="store_true", help="made-up data, whatever is there")
    if results is not None:
        parser.add_argument("--results", type=Path, default=results)


def settle(args: argparse.Namespace, *needed: str) -> None:
    """Make ``args.data`` a folder with the files that are needed. Results from stand-ins go beside
    these, unless a place outside the repository is named."""
    args.data = folder(*needed, named=args.data, stand_in=args.stand_ins)
    results = getattr(args, "results", None)
    if args.data == STAND_INS and results and ROOT / "benchmarks" in results.resolve().parents:
        args.results = STAND_INS.parent / "results" / results.name
        args.results.parent.mkdir(parents=True, exist_ok=True)


def folder(*needed: str, named: Path | None = None, stand_in: bool = False) -> Path:
    """The folder named, or that of the data, or one of stand-ins, which are written where the data
    are not there; says which it is."""
    known = named or DATA
    missing = [name for name in needed if not (known / name).exists()]
    if named and missing and not stand_in:
        raise SystemExit(f"there is no {missing[0]} in {named}: docs/data.md says what it is")
    made_up = stand_in or bool(missing)
    said = f"stand-ins, seed {stand_ins.SEED}" if made_up else "real" if needed else "none needed"
    print(f"data: {said}", file=sys.stderr, flush=True)
    if made_up:
        stand_ins.write(STAND_INS, needed)
    return STAND_INS if made_up else known
