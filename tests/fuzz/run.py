"""Feeds hostile inputs to the command line: ``python -m tests.fuzz.run --inputs 10000 --seed 1``.

Every input must end with status 0 to 4, without a traceback, within ten seconds of computing and
one gibibyte. Tables have coordinates that are known again, and none may stand in a message. Faults
are printed as they are found, with the number that makes the input again (``--only``), and counted
by cause at the end. Run it from the root of a checkout.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

# before NumPy starts threads: inputs run in forks of this process
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from .inputs import make
from .pool import Verdict, judge, warm
from .samples import made


def run(seed: int, indices: range | list[int], shown: int = 0) -> dict[int, Verdict]:
    """The verdicts by number; prints those with faults."""
    found = {}
    for count, index in enumerate(indices, start=1):
        case = make(seed, index)
        verdict = judge(case)
        found[index] = verdict
        if verdict.faults or shown:
            print(f"{index} {case.kind}: {', '.join(verdict.faults) or 'well'}: {_last(verdict)}")
            print(f"   {' '.join(case.argv)[:150]!a}", flush=True)
        if shown:
            print(verdict.out[-2000:], verdict.err[-4000:], sep="\n")
        if count % 1000 == 0:
            print(f"{count:,} inputs", flush=True)
    return found


def _last(verdict: Verdict) -> str:
    lines = verdict.err.strip().splitlines() or [""]
    return ascii(lines[-1][:240])


def main() -> int:
    """0 where every input ended well."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    parser.add_argument("--only", type=int, nargs="*", help="these inputs, with what they print")
    parser.add_argument("--keep", metavar="FOLDER", help="write the files of --only here")
    args = parser.parse_args()
    begun = time.monotonic()
    made()
    warm()
    chosen = args.only or range(args.first, args.first + args.inputs)
    if args.keep:
        for index in chosen:
            _keep(Path(args.keep), args.seed, index)
    found = run(args.seed, chosen, shown=bool(args.only))
    kinds = Counter(make(args.seed, index).kind for index in found) if args.only is None else {}
    faulty = [verdict for verdict in found.values() if verdict.faults]
    print(f"{len(found):,} inputs in {time.monotonic() - begun:.0f} s: {dict(kinds)}")
    print(f"status: {dict(sorted(Counter(v.status for v in found.values()).items()))}")
    worst = max(found.values(), key=lambda v: v.seconds)
    most = max(found.values(), key=lambda v: v.bytes)
    print(f"slowest {worst.seconds:.1f} s, largest {most.bytes / 2**20:.0f} MiB")
    print(f"faults: {len(faulty)}")
    return 1 if faulty else 0


def _keep(folder: Path, seed: int, index: int) -> None:
    case = make(seed, index)
    place = folder / str(index)
    place.mkdir(parents=True, exist_ok=True)
    for name, content in case.files.items():
        (place / name).write_bytes(content)
    (place / "argv").write_text(repr(case.argv), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
