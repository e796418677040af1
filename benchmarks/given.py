"""What benchmarks on the location data ask for on the command line: that data, a results file."""

from __future__ import annotations

import argparse
from pathlib import Path

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def add_files(parser: argparse.ArgumentParser, results: Path) -> None:
    """The options ``--data`` and ``--results``."""
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=results)


def has(data: Path, *needed: str) -> bool:
    """Whether the files are there; says which is not."""
    for name in needed:
        if not (data / name).exists():
            print(f"skipped: there is no {name} in {data}; name it with --data")
            return False
    return True
