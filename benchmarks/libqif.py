"""Every measure and linear program that libqif and we offer, side by side: numbers, seconds.

    pip install qif
    python benchmarks/libqif.py                # 200 random mechanisms and problems, minutes
    python benchmarks/libqif.py --problems 10  # a few, into no file
    python benchmarks/libqif.py --page         # the table of docs/leakage.md

Mechanisms have 2 to 7 secrets and 1 to 7 observables with small whole numbers as weights: zeros,
equal rows and proportional columns occur. libqif computes in doubles and, where it can, in
rationals; ours are rational unless a logarithm is in them. "agree" counts results within 1e-9 of
each other (absolutely, or of the larger), "exactly" those that are the same rational number as
libqif's in rationals.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
import libqif_cases
from engines import ROOT, commit, processor
from libqif_cases import Case
from libqif_lines import ELSEWHERE, MEASURES, PROGRAMS
from tables import table as markdown

import optmech as om

RESULTS = ROOT / "benchmarks" / "results" / "libqif.json"
PAGE = ROOT / "docs" / "leakage.md"
CLOSE = 1e-9
_NAMES = {
    "math": math, "np": np, "Fraction": Fraction, "om": om, "leak": om.leakage,
    **{name: getattr(libqif_cases, name)
       for name in ("steps", "line", "over", "positive", "earned_by", "witnessed", "updated",
                    "estimated", "lost", "bound", "least", "even", "by_bayes", "middle", "fewer",
                    "far", "with_row", "entropic", "two_rows", "apart")},
}  # fmt: skip


@dataclass
class Line:
    """A function of libqif and ours, and how they compare."""

    libqif: str
    optmech: str
    theirs: str
    ours: str
    tolerance: float | None = None
    """None: compared in rationals too, and the doubles to 1e-9."""
    enclosed: bool = False
    """Ours is a certified design: libqif's rational optimum should lie between its bounds."""
    tried: int = 0
    agree: int = 0
    exactly: int = 0
    largest: float = 0.0
    libqif_seconds: float = 0.0
    optmech_seconds: float = 0.0
    differ: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def read(cls, text: str) -> Line:
        """``name ~tolerance | ours | call | call``; without a tilde rationals are compared, with
        <> the bounds of a design and libqif's rational optimum."""
        head, optmech, theirs, ours = (part.strip() for part in text.split(" | "))
        name, tilde, tolerance = head.partition(" ~")
        limit = float(tolerance or CLOSE) if tilde else None
        return cls(name.removesuffix(" <>"), optmech, theirs, ours, limit, name.endswith(" <>"))

    def run(self, qif: Any, case: Case) -> None:
        """Count one case."""
        self.tried += 1
        known = {**_NAMES, "q": qif, "c": case}
        started = time.process_time()
        mine = eval(self.ours, known)
        self.optmech_seconds += time.process_time() - started
        given = case.given(exact=False)
        started = time.process_time()
        found = self._called(known, given)
        self.libqif_seconds += time.process_time() - started
        apart = _apart(found, mine.value if self.enclosed else mine)
        self.largest = max(self.largest, apart)
        good = apart <= (self.tolerance or CLOSE)
        self.agree += good
        exact: Any = None
        if self.tolerance is None:
            exact = self._called(known, case.given(exact=True))
            same = _within(exact, mine) if self.enclosed else _same(exact, mine)
            self.exactly += same
            good = good and same
        if not good:
            texts = {"doubles": found, "rationals": exact, "ours": getattr(mine, "factor", mine)}
            self.differ.append(
                {"seed": case.seed, **{key: str(value)[:200] for key, value in texts.items()}}
            )

    def _called(self, known: dict[str, Any], given: dict[str, Any]) -> Any:
        try:
            return eval(self.theirs, {**known, **given})
        except Exception as error:
            return f"{type(error).__name__}: {error}"


def _apart(theirs: Any, ours: Any) -> float:
    if isinstance(theirs, str):
        return math.inf
    a, b = np.asarray(theirs, dtype=float), np.asarray(ours, dtype=float)
    if a.shape != b.shape:
        return math.inf
    with np.errstate(invalid="ignore"):
        off = np.abs(a - b) / np.maximum(1.0, np.abs(b))
    return float(np.where(a == b, 0.0, np.where(np.isnan(off), np.inf, off)).max(initial=0.0))


def _same(theirs: Any, ours: Any) -> bool:
    if isinstance(theirs, str):
        return False
    a = np.asarray(theirs, dtype=object)
    b = np.asarray(getattr(ours, "factor", ours), dtype=object)
    return a.shape == b.shape and bool(np.all(a == b))


def _within(theirs: Any, ours: libqif_cases.Bracket) -> bool:
    return isinstance(theirs, Fraction) and ours.lower <= theirs <= ours.upper


def compare(count: int, only: str = "") -> list[Line]:
    """All lines over ``count`` cases."""
    import qif

    text = MEASURES + PROGRAMS
    lines = [Line.read(row) for row in text.splitlines() if row and only in row.split(" | ")[0]]
    for line in lines:
        # what is imported and compiled on first use does not count
        Line(**{**asdict(line), "differ": []}).run(qif, Case.made(0))
        for seed in range(count):
            case = Case.made(seed)
            # made before any clock starts
            case.m.matrix, case.second, case.prior  # noqa: B018
            line.run(qif, case)
        print(f"{line.libqif}: {line.agree} of {line.tried} agree", file=sys.stderr, flush=True)
    return lines


def shown(found: list[dict[str, Any]]) -> str:
    """The table of docs/leakage.md."""
    rows = [
        [f"`{line['libqif']}`", line["optmech"], f"{line['agree']} of {line['tried']}",
         "" if line["tolerance"] is not None else str(line["exactly"]),
         f"{line['largest']:.0e}" if line["largest"] else "0",
         f"{line['libqif_seconds']:.3f}", f"{line['optmech_seconds']:.3f}"]
        for line in found
    ]  # fmt: skip
    heads = ["libqif", "ours", "agree", "exactly", "largest difference", "libqif, s", "ours, s"]
    return markdown(heads, rows)


def elsewhere() -> str:
    """The functions without a row, those with the same reason together."""
    grouped: dict[str, list[str]] = {}
    reason = ""
    for name, why in ELSEWHERE.items():
        reason = reason if why == "the same" else why
        grouped.setdefault(reason, []).append(f"`{name}`")
    rows = [[", ".join(names), reason] for reason, names in grouped.items()]
    return "\n".join(["| libqif | why there is no row |", "|---|---|", *map(_row, rows)])


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _put(name: str, text: str) -> None:
    """Between the marks of a part of docs/leakage.md."""
    begin, end = f"<!-- begin libqif:{name} -->", f"<!-- end libqif:{name} -->"
    before, rest = PAGE.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{begin}\n{text}\n{end}{after}", encoding="utf-8")


def main() -> int:
    """Print the table and what differs; write the results of a full run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--problems", type=int, default=200)
    parser.add_argument("--only", default="", help="functions whose name has this in it")
    parser.add_argument("--page", action="store_true", help="write the table into docs/leakage.md")
    args = parser.parse_args()
    if args.page:
        found = json.loads(RESULTS.read_text())["lines"]
        _put("table", shown(found))
        _put("elsewhere", elsewhere())
        return 0
    found = [asdict(line) for line in compare(args.problems, args.only)]
    print(shown(found))
    for line in found:
        for case in line["differ"][:3]:
            print(f"{line['libqif']}: {case}")
        line["differ"] = line["differ"][:5]
    if args.problems >= 200 and not args.only:
        about = {"qif": version("qif"), "commit": commit(), "processor": processor()}
        RESULTS.write_text(json.dumps({**about, "lines": found}, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
