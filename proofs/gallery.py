"""Solves the gallery, writes every design in whole numbers and asks the proved checker.

    python proofs/gallery.py [--largest 100] [NAME ...]

Ends with 1 where a design of a kind that the checker covers is not accepted.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from optmech_verified.file import write_checked

import optmech as om
from optmech.designs.file import read_with_digest
from optmech.errors import ProblemError
from optmech.files import read_problem
from optmech.files.gallery import gallery_names

CHECKER = Path(__file__).parent / "build" / "checker"


def verdict(name: str, folder: Path, largest: int | None) -> tuple[str, bool]:
    """Words for one problem, and whether nothing is wrong."""
    problem = read_problem(name).problem
    if largest is not None and len(problem.secrets) > largest:
        return f"left out: {len(problem.secrets)} secrets", True
    design, text = folder / f"{name}.json", folder / f"{name}.checked"
    om.solve(problem).save(design)
    try:
        write_checked(*read_with_digest(design), text)
    except ProblemError as error:
        return f"not covered: {error}", True
    begin = time.perf_counter()
    done = subprocess.run([str(CHECKER), str(text)], capture_output=True, text=True, check=False)
    last = (done.stdout or done.stderr).splitlines()[-1]
    return f"{last} ({time.perf_counter() - begin:.2f} s)", done.returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="problems of the gallery")
    parser.add_argument("--largest", type=int, help="leave out what has more secrets than this")
    args = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for name in args.names or gallery_names():
            words, right = verdict(name, Path(folder), args.largest)
            print(f"{name:24} {words}", flush=True)
            wrong += not right
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
