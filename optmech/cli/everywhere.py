"""``optmech solve`` and ``optmech sample`` for mechanisms that report from any point."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optmech.cli import output
from optmech.designs.everywhere_file import about_bounds
from optmech.errors import ProblemError
from optmech.show import words

if TYPE_CHECKING:
    from optmech.designs.everywhere import EverywhereDesign
    from optmech.files import ProblemFile


def point(text: str) -> tuple[Fraction, Fraction]:
    """Two coordinates as they are written, exactly: ``1.25,3/2``."""
    parts = text.split(",")
    try:
        if len(parts) == 2 and len(text) <= 200:
            return Fraction(parts[0].strip()), Fraction(parts[1].strip())
    except (ValueError, ZeroDivisionError):
        pass
    raise ProblemError(
        f"{text[:40]!r} is no point: this design reports from any point of a region",
        where="POINT",
        remedy="Give two coordinates, as 1.25,3.5 (-- before them where the first is negative)",
    )


def plain(design: EverywhereDesign, file: ProblemFile) -> dict[str, Any]:
    """For JSON: the design's summary and its checks."""
    checks = [
        {"name": c.name, "constraint": c.constraint, "passed": c.passed, "detail": c.detail}
        for c in design.checks
    ]
    return {
        **design.summary(),
        "problem": file.title,
        "file": str(file.path),
        "checks": checks,
    }


def show(design: EverywhereDesign, file: ProblemFile) -> None:
    """For people."""
    output.title(file.title)
    output.facts(words.describe(design.problem))
    output.blank()
    reason = f" ({design.reason})" if design.reason else ""
    output.facts(
        [
            ("status", f"{design.status}{reason}, among mechanisms on this mesh"),
            ("loss", output.number(design.loss)),
            ("gap on this mesh", f"{design.gap:.2g}"),
            ("lower bound", f"{output.number(design.lower_bound)} (no mechanism can do better)"),
            ("gap to it", f"{design.total_gap:.2g} (less on a finer mesh)"),
            ("verified", "yes" if design.verified else "NO"),
            ("engine", f"{design.engine} ({design.engine_reason})"),
            ("time", f"{design.seconds:.2f} s"),
        ]
    )
    output.blank()
    output.grid(
        ("check", "inequalities", "passed", "tightest"),
        [
            (c.name, f"{c.inequalities:,}", "yes" if c.passed else "NO", c.detail)
            for c in design.checks
        ],
        right=(1,),
    )
    for line in (*design.notes, *about_bounds(design)):
        output.note(f"note: {line}")
