"""Random instances against programs of the tests' own: ``python -m tests.referee.run noise``.

A module beside this one is a family. Its function ``judge`` makes one instance from the generator
that it is given, asks optmech, computes the same by its own means (no code of optmech decides), and
returns what is false, in words: nothing where every sentence is true. Degenerate instances (zeros,
equal places, one place, no connection, limits at their edges) are drawn as often as others.
Every instance has a generator of its own, so that its number makes it again (``--only``).
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))
"""For what lies beside the families: other programs of the tests' own."""


def families() -> list[str]:
    """The names of all families, in alphabetical order."""
    here = str(Path(__file__).parent)
    return sorted(
        m.name for m in pkgutil.iter_modules([here]) if m.name not in ("run", "test_referees")
    )


def judged(family: str, seed: int, index: int) -> list[str]:
    """What is false in one instance, in words; an exception is false too."""
    judge = importlib.import_module(f"{__package__}.{family}").judge
    rng = np.random.default_rng([seed, index])
    try:
        return list(judge(rng))
    except Exception:
        return [traceback.format_exc()]


def run(family: str, seed: int, indices: range | list[int]) -> Iterator[tuple[int, list[str]]]:
    """The number and the violations of every instance that has any."""
    for index in indices:
        found = judged(family, seed, index)
        if found:
            yield index, found


def main() -> int:
    """0 where no instance shows anything false."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", nargs="+", choices=[*families(), "all"])
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first instance")
    parser.add_argument("--only", type=int, nargs="*", help="these instances")
    args = parser.parse_args()
    chosen = args.only or range(args.first, args.first + args.instances)
    faulty = 0
    for family in families() if "all" in args.family else args.family:
        begun, count = time.process_time(), 0
        for index, found in run(family, args.seed, chosen):
            count += 1
            print(f"{family} {index}: " + "\n   ".join(found), flush=True)
        seconds = time.process_time() - begun
        print(
            f"{family}: {len(chosen):,} instances, seed {args.seed}, {count} false, {seconds:.0f} s"
        )
        faulty += count
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
