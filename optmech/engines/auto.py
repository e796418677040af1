"""Chooses an engine by the size and kind of a program, and says why."""

from __future__ import annotations

from optmech.lp.blocks import BlockLP

DIRECT_PAIR_ROWS = 20_000
"""Up to this many pair rows HiGHS solves the whole program in about a second (2 cores)."""


def select(lp: BlockLP) -> tuple[str, str]:
    """The name of the engine that ``auto`` takes for a program, and the reason."""
    rows = lp.cone_rows
    if rows <= DIRECT_PAIR_ROWS:
        return "highs", f"{rows:,} pair rows are few enough to be solved at once"
    return "lazy", f"of {rows:,} pair rows few bind: they are generated as needed"
