"""What every search for noise keeps: the best verified law, the best proof, and the time."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Generic, Literal, TypeVar, cast

from optmech.certificate.objective import relative_gap
from optmech.errors import ProblemError, SolverError, TooLargeError
from optmech.exact.arguments import whole
from optmech.exact.number import Exact
from optmech_noise.additive.entries import LARGEST_EPSILON, MOST_SENSITIVITY
from optmech_noise.additive.result import LatticeNoise, ProvedNoise

D = TypeVar("D", bound=ProvedNoise)
N = TypeVar("N", bound=LatticeNoise)
Note = Callable[[str], None]
Promise = tuple[Exact, Exact]
"""ε and δ."""
CELLS_GAP = 1e-3
"""Where searches for noise on cells end, unless a caller says."""
_FIRST_CELLS, _MOST_CELLS = 16, 512


def silent(line: str) -> None:
    """Where nobody asks for progress."""


def require_gap(gap: float) -> None:
    """Raise ProblemError for what is no relative gap."""
    if not 0 <= gap < 1:
        raise ProblemError(f"{gap!r} is not from 0 to below 1", where="gap")


def require_range(
    rate: Exact, least: float, where: str = "epsilon", *, zero: bool = False, of: str = ""
) -> None:
    """Raise ProblemError for a number that searches do not reach."""
    if rate > LARGEST_EPSILON or (rate < least and (rate > 0 or not zero)):
        raise ProblemError(
            f"{float(rate):g} is out of range{of}",
            where=where,
            remedy=f"Give {'0, or ' * zero}{least:g} to {LARGEST_EPSILON}",
        )


class Session(Generic[D]):
    """A search for the noise of least loss that keeps the promise of ``stated``, whatever the law
    of that is."""

    def __init__(self, stated: D, gap: float, note: Note) -> None:
        self.stated, self.gap, self.note = stated, gap, note
        self.started = time.perf_counter()
        self.law: D | None = None
        self.proof: D | None = None

    def _with(self, **changed: Any) -> D:
        return cast(D, replace(cast(Any, self.stated), **changed))

    def _take(self, law: object) -> bool:
        """Keep a law where it is private and better than what there is; whether it is private."""
        return self._adopt(self._with(law=law))

    def _adopt(self, made: D) -> bool:
        if not made.is_private:
            return False
        if self.law is None or made.exact_loss < self.law.exact_loss:
            self.law = made
        return True

    def _keep(self, multipliers: object) -> None:
        """Keep multipliers that prove more than those there are."""
        made = self._with(multipliers=multipliers)
        try:
            better = self.proof is None or made.exact_bound > self.proof.exact_bound
        except ProblemError:
            return
        if better:
            self.proof = made

    def _gap(self) -> float:
        if self.law is None:
            return math.inf
        return relative_gap(self.law.loss, 0.0 if self.proof is None else self.proof.lower_bound)

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Keep the best that was verified where the search fails or is interrupted."""
        try:
            yield
        except (KeyboardInterrupt, SolverError, TooLargeError, FloatingPointError) as stop:
            if self.law is None:
                self._fall_back()
            if self.law is None:
                raise
            self.note(f"stopped ({type(stop).__name__}): the best that was verified is kept")

    def _fall_back(self) -> None:
        """Take a law that needs no search, where there is one."""

    def _joined(self) -> D:
        """The best law with the best multipliers that were found."""
        if self.law is None:
            raise SolverError("no noise was found", where="noise", remedy="Allow a larger ε or δ")
        proof = None if self.proof is None else self.proof.multipliers
        seconds = time.perf_counter() - self.started
        made = self._with(law=self.law.law, multipliers=proof, seconds=seconds)
        return made.require_private()


def refined(searched: Callable[[int], N], cells: int | Literal["auto"], gap: float, say: Note) -> N:
    """Noise on so many cells, or on the fewest of 16, 32, … that have the gap."""
    first = _FIRST_CELLS if cells == "auto" else whole(cells, "cells", 1, MOST_SENSITIVITY)
    last = _MOST_CELLS if cells == "auto" else first
    best: N | None = None
    known = 0
    while True:
        try:
            found = searched(first)
        except TooLargeError:
            if best is None:
                raise
            if first <= 2 * known:
                return best
            first //= 2
            continue
        known = first
        best = found if best is None or found.gap < best.gap else best
        say(f"{found.steps} cells: gap {found.gap:.2g}")
        if best.gap <= gap or 2 * first > last:
            return best
        # it falls with the square of their number at most
        ahead = int(math.log2(best.gap / gap) / 2) if gap > 0 else 1
        first *= 2 ** max(1, min(ahead, int(math.log2(last / first))))
