"""Reproduces the evaluation of Privacy Games (section 9, Appendix C) on open data.

    python benchmarks/privacy_games scenario1 --grid small --users 0     # everybody, 40 cells
    python benchmarks/privacy_games scenario1                            # ten users, 300 cells
    python benchmarks/privacy_games scenario2 | scenario3
    python benchmarks/privacy_games figures                              # docs/figures, tables
    python benchmarks/privacy_games pack                                 # compress large results

Interrupt and resume at will: results go to benchmarks/results/privacy_games as they come, and
nothing that is there is done again.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from pathlib import Path

from store import RESULTS, Store
from study import SCENARIOS, Study
from users import FILES, GRIDS, City

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "benchmarks"))
from given import add_files, settle  # noqa: E402

LARGE = 2**20
OTHERS = ("figures", "pack")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=[*SCENARIOS, *OTHERS])
    parser.add_argument("--grid", choices=list(GRIDS), default="paper")
    parser.add_argument("--users", type=int, default=10, help="how many, drawn at random; 0: all")
    add_files(parser, RESULTS)
    parser.add_argument("--designs", type=Path, help="keep design files here, to start from later")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--cold", action="store_true", help="without reuse, into a file of its own")
    arguments = parser.parse_args()
    if arguments.part == "figures":
        from figures import draw

        draw(ROOT / "docs")
        return
    if arguments.part == "pack":
        for path in sorted(arguments.results.glob("*.jsonl")):
            if path.stat().st_size > LARGE:
                Store(path).pack()
        return
    settle(arguments, *FILES)
    users = City(arguments.data, arguments.grid).drawn(arguments.users)
    with ProcessPoolExecutor(arguments.processes) as pool:
        counts = pool.map(partial(size, arguments), users)
        parts = sorted((k, user) for user, n in zip(users, counts, strict=True) for k in range(n))
        for done, (k, user) in enumerate(pool.map(partial(run, arguments), parts), start=1):
            print(f"user {user}, part {k}: {done} of {len(parts)}", file=sys.stderr, flush=True)


def work(arguments: argparse.Namespace, user: int) -> list[Callable[[], None]]:
    """What there is to do for a user, in parts that do not depend on each other."""
    grid = arguments.grid
    city = _city(arguments.data, grid)
    store = _store(arguments.results / f"designs-{grid}{'-cold' * arguments.cold}.jsonl")
    threads = None if arguments.processes == 1 else 1
    study = Study(city, user, store, arguments.designs, arguments.cold, threads)
    return list(SCENARIOS[arguments.part](study))


def size(arguments: argparse.Namespace, user: int) -> int:
    return len(work(arguments, user))


def run(arguments: argparse.Namespace, part: tuple[int, int]) -> tuple[int, int]:
    """One part of a user's work, in whichever process is free."""
    k, user = part
    work(arguments, user)[k]()
    return part


# parts do not read each other's results: a process reads its inputs and what is there once
_city, _store = cache(City), cache(Store)

if __name__ == "__main__":
    main()
