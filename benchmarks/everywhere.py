"""Privacy at every point, measured: convergence on a square, Rome, and joint constraints.

    python benchmarks/everywhere.py square            # meshes against the bound
    python benchmarks/everywhere.py rome              # all crossings
    python benchmarks/everywhere.py joint             # with distortion privacy
    python benchmarks/everywhere.py figures           # figures and tables of docs/everywhere.md
    python benchmarks/everywhere.py figures --check   # exit status 1 where the page says else

Results go to results/everywhere.jsonl, one line a task; what is there is not done again.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import everywhere_joint as joint
import everywhere_rome as rome
import everywhere_square as square
import everywhere_tables as tables
from city import CHECKINS
from given import add_files, settle
from privacy_games.store import Store

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "everywhere.jsonl"
Task = dict[str, Any]
Work = Iterator[tuple[Task, Callable[[], dict[str, Any]]]]


def of_square() -> Work:
    """Every task of the square, and how to do it."""
    for prior in square.PRIORS:
        for between in square.BETWEEN:
            task = {"part": "bound", "prior": prior, "between": between}
            yield task, lambda prior=prior, between=between: square.bound(prior, between)
        for width in square.WIDTHS:
            task = {"part": "uniform", "prior": prior, "width": width}
            yield task, lambda prior=prior, width=width: square.uniform(prior, width)
        for degree, widths in square.HIGHER.items():
            for width in widths:
                task = {"part": "uniform", "prior": prior, "width": width, "degree": degree}
                yield (
                    task,
                    lambda prior=prior, width=width, degree=degree: square.uniform(
                        prior, width, degree
                    ),
                )
        yield {"part": "adapted", "prior": prior}, lambda prior=prior: square.refined(prior)


def of_rome(data: Path, limit: float) -> Work:
    """Every task of Rome, and how to do it."""
    at = rome.Rome(data)
    for epsilon in rome.EPSILONS:
        kinds: dict[str, Callable[[float], dict[str, Any]]] = {
            **{
                f"rome {name}": lambda epsilon, mesh=mesh: rome.upper(at, epsilon, *mesh)
                for name, mesh in rome.MESHES.items()
            },
            **{
                f"rome {name}": lambda epsilon, cells=cells: rome.lower(at, epsilon, cells[epsilon])
                for name, cells in rome.CELLS.items()
            },
            "rome exponential": lambda epsilon: rome.exponential(at, epsilon),
            "rome laplace": lambda epsilon: rome.laplace(at, epsilon),
        }
        for side in rome.GRIDS:
            kinds[f"rome grid {side}"] = lambda epsilon, side=side: rome.grid(
                at, epsilon, side, limit
            )
        for part, work in kinds.items():
            task = {"part": part, "epsilon": epsilon}
            yield task, lambda work=work, epsilon=epsilon: work(epsilon)


def of_joint(data: Path) -> Work:
    """Every error asked for, on the square and in the city."""
    for share in joint.SQUARE:
        yield {"part": "joint square", "share": share}, lambda share=share: joint.square(share)
    for share in joint.CITY:
        yield {"part": "joint city", "share": share}, lambda share=share: joint.city(data, share)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("square", "rome", "joint", "figures"))
    parser.add_argument("--check", action="store_true", help="figures: write nothing, compare")
    parser.add_argument("--only", metavar="PART", help="tasks whose part contains this")
    parser.add_argument("--first", type=int, help="only so many tasks")
    parser.add_argument("--epsilon", type=float, help="Rome: only this one")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds a linear program")
    add_files(parser, RESULTS)
    args = parser.parse_args()
    if args.what == "figures":
        tables.write(args.results, check=args.check)
        return
    settle(args, *{"rome": rome.FILES, "joint": CHECKINS}.get(args.what, ()))
    store = Store(args.results)
    works = {
        "square": of_square,
        "rome": lambda: of_rome(args.data, args.limit),
        "joint": lambda: of_joint(args.data),
    }
    for task, work in itertools.islice(works[args.what](), args.first):
        asked = args.epsilon in (None, task.get("epsilon")) and (args.only or "") in task["part"]
        if not asked or store.find(task):
            continue
        print(store.add(task, work()), flush=True)


if __name__ == "__main__":
    main()
