"""Rows that are held fixed: p(·|s) is exactly what is given for some secrets s."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optmech.base.arrays import Ints
from optmech.certificate.check import Check
from optmech.certificate.families.base import Trusted, trusted
from optmech.certificate.families.ratio import Ratio
from optmech.certificate.families.support import Support
from optmech.certificate.lagrangian import Lagrangian
from optmech.exact.exponentials import at_most, exp_lower
from optmech.exact.numerators import Numerators
from optmech.statement import Held, ReadOnly, Statement


@trusted
@dataclass(frozen=True, eq=False)
class Fixed(ReadOnly, Trusted):
    """P[secrets[k], :] = row k of ``exact``; ``secrets`` (k,) are in increasing order.

    The bound has such a row at its value instead of its minimum: no multipliers. ``names`` are the
    secrets in words.
    """

    kind = "fixed"
    index: int
    secrets: Ints
    exact: Numerators
    names: tuple[str, ...]

    @property
    def written(self) -> str:
        return ""

    def fits(self, statement: Statement) -> dict[str, bool]:
        rows = self.secrets
        sound = type(rows) is np.ndarray and rows.dtype == np.int64 and rows.ndim == 1
        proper = sound and bool((np.diff(rows) > 0).all() and rows[0] >= 0)
        whole = type(self.exact) is Numerators
        return {
            "secrets": proper and int(rows[-1]) < statement.secrets,
            "exact": whole and self.exact.shape == (len(rows), statement.observables),
            "names": len(self.names) == len(rows),
        }

    def signature(self) -> Hashable:
        return self.kind

    def held_rows(self) -> Held:
        return Held(self.secrets, self.exact)

    def decide(self, statement: Statement, released: Numerators) -> Check:
        changed = [
            name
            for s, name, row in zip(self.secrets.tolist(), self.names, self.exact.rows, strict=True)
            if not _equal(row, self.exact.bits, released.rows[s], released.bits)
        ]
        count = self.exact.shape[0] * self.exact.shape[1]
        detail = f"{len(self.secrets)} rows, digit by digit"
        if changed:
            detail = f"{len(changed)} rows are others, the first that of {changed[0]}"
        return Check("fixed rows", self.index, count, not changed, float(len(changed)), detail)

    def charge(self, statement: Statement, lagrangian: Lagrangian, given: object) -> None:
        """Nothing: ``Lagrangian.minimum`` takes these rows at their value."""

    def impossible(self, statement: Statement) -> str:
        return next(self._conflicts(statement), "")

    def in_words(self, given: object) -> str:
        return "the rows held fixed"

    def zeros(self, statement: Statement) -> None:
        return None

    def _conflicts(self, statement: Statement) -> Iterator[str]:
        """Why rows that are fixed cannot be kept together, whatever the others are."""
        place = f"constraints[{self.index}]"
        names = dict(zip(self.secrets.tolist(), self.names, strict=True))
        for other in statement.of_kind(Fixed):
            if other.index < self.index:
                theirs = other.held_rows().rows
                for s, row in self.held_rows().rows.items():
                    if s in theirs and not _equal(
                        row, self.exact.bits, theirs[s], other.exact.bits
                    ):
                        yield (
                            f"{place}: the row of {names[s]} is fixed to another one by "
                            f"constraints[{other.index}]. Fix it once"
                        )
        for support in statement.of_kind(Support):
            for s, row in self.held_rows().rows.items():
                outside = [o for o in np.flatnonzero(~support.allowed[s]).tolist() if row[o]]
                if outside:
                    yield (
                        f"{place}: the fixed row of {names[s]} reports observable number "
                        f"{outside[0]}, which constraints[{support.index}] does not allow. Let "
                        f"the row of {names[s]} be free, or allow it"
                    )
        for ratio in statement.of_kind(Ratio):
            broken = self._broken(ratio)
            if broken is not None:
                i, j, o, excess = broken
                yield (
                    f"{place}: the fixed rows of {names[i]} and {names[j]} break "
                    f"constraints[{ratio.index}] by themselves: p(o|s) is {excess} e^r p(o|s') at "
                    f"observable number {o}. Let the row of {names[i]} or of {names[j]} be free, "
                    f"or raise ε"
                )

    def _broken(self, ratio: Ratio) -> tuple[int, int, int, str] | None:
        """The worst pair of fixed rows beyond a ratio: its secrets, observable, and by how much."""
        worst: tuple[Fraction | None, tuple[int, int, int]] | None = None
        rows = self.held_rows().rows
        matrix, factor = self.exact.matrix, ratio.factors[0]
        for k, i in enumerate(self.secrets.tolist()):
            allowed = factor[i, self.secrets][:, None] * matrix * (1 - 1e-12)
            # the least floats lose digits
            beyond = (matrix[k] > 0) & (matrix[k] + 1e-300 > allowed)
            beyond &= np.isfinite(ratio.distance[i, self.secrets])[:, None]
            if ratio.window is not None:
                beyond &= ratio.window[i]
            for other, o in np.argwhere(beyond).tolist():
                j = int(self.secrets[other])
                d, left, right = float(ratio.distance[i, j]), rows[i][o], rows[j][o]
                if i == j or at_most(left, right, ratio.epsilon, d):
                    continue
                # of a report that the other never makes, no multiple is enough
                size = Fraction(left, right) / exp_lower(ratio.epsilon, d, 64) if right else None
                if worst is None or (worst[0] is not None and (size is None or size > worst[0])):
                    worst = size, (i, j, o)
        if worst is None:
            return None
        excess = "more than any multiple of" if worst[0] is None else f"{float(worst[0]):.9g} times"
        return (*worst[1], excess)


def _equal(row: tuple[int, ...], bits: int, other: tuple[int, ...], more: int) -> bool:
    """Whether row / 2^bits = other / 2^more."""
    left, right = max(more - bits, 0), max(bits - more, 0)
    return all(a << left == b << right for a, b in zip(row, other, strict=True))
