"""Reproduces the evaluation of Privacy Games (section 9, Appendix C) on open data.

    python benchmarks/privacy_games scenario1 --grid small --users 0     # everybody, 40 cells
    python benchmarks/privacy_games scenario1                            # ten users, 300 cells
    python benchmarks/privacy_games scenario2 | scenario3 | approximations
    python benchmarks/privacy_games figures                              # docs/figures, tables

Interrupt and resume at will: results go to benchmarks/results/privacy_games as they come, and
nothing that is there is done again.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from store import RESULTS, Store
from study import SCENARIOS, Study
from users import GRIDS, City

ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=[*SCENARIOS, "approximations", "figures"])
    parser.add_argument("--grid", choices=list(GRIDS), default="paper")
    parser.add_argument("--users", type=int, default=10, help="how many, drawn at random; 0: all")
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--designs", type=Path, help="keep the design files in this folder")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cold", action="store_true", help="no reuse between neighbours")
    arguments = parser.parse_args()
    if arguments.part == "figures":
        from figures import draw

        draw(ROOT / "docs")
        return
    if not (arguments.data / "fsq_nyc_checkins.csv").exists():
        raise SystemExit(f"{arguments.data} has no fsq_nyc_checkins.csv: name its folder by --data")
    city = City(arguments.data, arguments.grid)
    work = partial(run, arguments)
    users = city.drawn(arguments.users)
    with ProcessPoolExecutor(arguments.processes) as pool:
        for done, user in enumerate(pool.map(work, users), start=1):
            print(f"user {user}: {done} of {len(users)}", file=sys.stderr, flush=True)


def run(arguments: argparse.Namespace, user: int) -> int:
    """All of a part for one user, in a process of its own."""
    grid = arguments.grid
    city = _CITIES.setdefault(grid, City(arguments.data, grid))
    name = "approximations" if arguments.part == "approximations" else "designs"
    store = Store(arguments.results / f"{name}-{grid}.jsonl")
    if arguments.part == "approximations":
        from approximations import approximate

        approximate(city, user, store)
    else:
        SCENARIOS[arguments.part](Study(city, user, store, arguments.designs, arguments.cold))
    return user


_CITIES: dict[str, City] = {}

if __name__ == "__main__":
    main()
