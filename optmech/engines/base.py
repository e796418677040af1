"""What an engine is: something that proposes primal–dual points of a BlockLP.

Engines are searched with, never believed: every proposal is repaired, checked and bounded by the
monitor, which keeps the best verified mechanism and the best bound.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from optmech.base.native import has_kernels
from optmech.lp.blocks import BlockLP, Point, Start

ITERATED_FROM, ITERATED_SHARE = 1_000, 0.25
"""Variables from which on row sums' equations are iterated on, and most blocks to a variable."""


class Outcome(Enum):
    """How an engine's run ended, in the engine's own opinion."""

    SOLVED = "the solver reports an optimum"
    STOPPED = "stopped by the time limit, an interrupt or the asked gap"
    INFEASIBLE = "the solver reports that no point satisfies the constraints"
    FAILED = "the solver gave up"
    BROKEN = "the engine itself broke off, and says nothing of the program"


@dataclass(frozen=True)
class Options:
    """Settings of one engine run, from a profile.

    ``gap`` is the relative gap asked for. ``tolerance`` is the solver's own feasibility and
    optimality tolerance. ``method`` and ``solver`` pick a variant inside the engine, ``device``
    where it computes (see ``structured.arrays.open_device``; empty: compiled code, here).
    ``parameters`` are handed to the underlying solver as they are. ``start`` is where an engine
    may begin.
    """

    gap: float = 1e-6
    tolerance: float = 1e-10
    method: str = ""
    solver: str = ""
    threads: int = 2
    device: str = ""
    parameters: Mapping[str, object] = field(default_factory=dict)
    start: Start | None = None


@dataclass(frozen=True)
class EngineResult:
    """The end of a run. Points went to the monitor before."""

    outcome: Outcome
    message: str = ""
    statistics: Mapping[str, float | int | str] = field(default_factory=dict)


class Progress(Protocol):
    """What a search asks and tells on its way."""

    def should_stop(self) -> bool:
        """True after an interrupt, at the time limit, or when the asked gap is reached."""

    def remaining(self) -> float:
        """Seconds left, inf without a time limit."""

    def report(self, text: str) -> None:
        """Show a short line of progress (standard error, or wherever the caller wants it)."""


class Monitor(Progress, Protocol):
    """The engine's only way to the outside."""

    def propose(self, point: Point, *, primal: bool = True, dual: bool = True) -> float:
        """Offer a point of the program that the engine was given. The primal part is repaired
        and checked, the dual part evaluated as a lower bound; either may be left out. Returns
        the best relative gap so far (inf while there is none)."""


class Engine(Protocol):
    """An algorithm. Stateless: everything it knows comes with the call."""

    name: str

    def refusal(self, lp: BlockLP) -> str:
        """Why this engine cannot take the program; empty when it can."""

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        """Search, proposing points to the monitor, until done or told to stop."""


def program_bytes(
    secrets: int, blocks: int, device: bool = False, pairs_alone: bool = False
) -> float:
    """Memory that the structured engine takes: rows of about 30 pairs per variable, and factors of
    half a dense matrix per block unless they are on a ``device``; where there is nothing beyond
    pairs and row sums, and enough of both, sparse ones and few rows."""
    n, count = float(secrets), float(blocks)
    compiled = has_kernels()
    rectangular = secrets >= ITERATED_FROM and 40 <= blocks <= ITERATED_SHARE * secrets
    if pairs_alone and compiled and not device and rectangular:
        return 3e8 + 57 * n * n + 1_300 * n * count
    pairs = 30 * n * count * 72
    factors = count * n * (min(n, 12 * math.sqrt(n)) if compiled else n) * 8
    return pairs + (0.0 if device else factors) + 40 * 8 * n * (n + count)
