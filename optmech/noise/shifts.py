"""Noise at large sensitivities: laws that fall from the centre, and bounds from few shifts."""

from __future__ import annotations

import math
from typing import TypeVar

from optmech.errors import TooLargeError
from optmech.noise.additive.design import ApproximateNoise
from optmech.noise.program import Window
from optmech.noise.proposals import KEPT, tidied
from optmech.noise.search import MOST_PLACES, Search, truncated_end

D = TypeVar("D", bound=ApproximateNoise)

_GOLDEN = (math.sqrt(5) - 1) / 2
_FEW = 8
_WIDEST = 1.05
MANY_SHIFTS = 24
"""Above so many whole numbers noise is searched so first."""


class ShiftSearch(Search[D]):
    """First the best noise that falls from the centre, for which one shift is enough, and a bound
    from few shifts; then all of them, where that is not enough."""

    def best(self) -> D:
        if self.delta > 0 and self.epsilon > 0 and not self.loss.is_bounded:
            with self._stopping():
                self._falling()
                self._few()
            self.note(f"falling noise, few shifts: gap {self._gap():.2g}")
            if self._is_enough():
                return self._joined()
        return super().best()

    def _is_enough(self) -> bool:
        """Whether nothing more is searched."""
        return self._gap() <= self.gap

    def _falling(self) -> None:
        """The best noise that falls from the centre."""
        n = int(_WIDEST * truncated_end(float(self.epsilon), float(self.delta), self.sensitivity))
        part = float(self.delta) * (1 - KEPT)
        above = self.stated.majorant
        window = Window(
            above, float(self.epsilon), part, self.sensitivity,
            self._places(n + above.last + 2), 0.0, falling=True,
        )  # fmt: skip
        kept, self.shifts = self.shifts, {self.sensitivity: False}
        solution = self._solved(window)
        self.shifts = kept
        self._repaired(tidied(solution, window))

    def _few(self) -> None:
        """A bound from few shifts, and of them but for the largest only near the centre, where
        noise that need not fall would gather."""
        rate, cells = float(self.epsilon), self.sensitivity
        count = min(cells, _FEW + math.ceil(1.2 * (1 + math.exp(rate / 2))))
        spread = (round(cells * (_GOLDEN * j % 1)) or 1 for j in range(1, count + 1))
        n = int(truncated_end(rate, float(self.delta), cells)) + 2 + self.loss.last
        near = math.ceil(cells * min(0.75, 3 / (1 + math.exp(rate / 3))))
        part = float(self.delta) * (1 - KEPT)
        window = Window(self.loss, rate, part, cells, self._places(n), self.ratio, near=near)
        kept, self.shifts = self.shifts, dict.fromkeys(sorted({1, cells, *spread}), False)
        self._prove(window, self._solved(window))
        self.shifts = kept

    def _places(self, count: int) -> int:
        """The width of a window with rows for few shifts; raises TooLargeError beyond what is
        searched."""
        if count > MOST_PLACES:
            raise TooLargeError(
                f"such noise spreads over about {count:,} places to either side",
                where="epsilon",
                remedy=f"Allow a larger ε or δ, or count in coarser units: {MOST_PLACES:,} are "
                "searched",
            )
        return count
