"""Entries that are given: zeros outside a support, and rows that are held fixed."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import chain

import numpy as np

from optmech.base.arrays import Bools, Ints
from optmech.base.read_only import ReadOnly, record
from optmech.certificate.check import Check
from optmech.certificate.families.base import Fitting, Trusted, is_array, is_mask, trusted
from optmech.certificate.families.ratio import SAFE, Ratio, Scan
from optmech.certificate.lagrangian import Lagrangian
from optmech.certificate.statement import Held, Statement
from optmech.certificate.values import Scaled
from optmech.exact.exponentials import at_most, exp_lower, exp_range
from optmech.exact.numerators import Numerators, wholes


class Given(ReadOnly, Trusted):
    """Families without multipliers: ``Lagrangian.minimum`` keeps them as they are."""

    written = ""

    def charge(self, lagrangian: Lagrangian, given: object) -> None:
        """Nothing."""

    def zeros(self, statement: Statement) -> None:
        return None


@trusted
@record
class Support(Given):
    """P[s,o] = 0 where not ``allowed`` (S, O).

    The bound keeps it as it is, in its minimum over allowed observables: no multipliers.
    """

    kind = "support"
    index: int
    allowed: Bools

    def fits(self, statement: Statement) -> Fitting:
        return {"allowed": is_mask(self.allowed, statement.loss.shape)}

    def forced_zeros(self, zero: Bools) -> Bools:
        return zero | ~self.allowed

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        outside = [high.rows[s][o] for s, o in np.argwhere(~self.allowed).tolist()]
        most = max(outside, default=0)
        worst = most / (1 << high.bits)
        detail = f"largest entry {worst:.3g}" if outside else "constrains nothing"
        return Check("support", self.index, len(outside), most == 0, worst, detail)

    def in_words(self, given: object) -> str:
        return "" if self.allowed.all() else "the support"


@trusted
@record
class Fixed(Given):
    """P[secrets[k], :] = row k of ``exact``; ``secrets`` (k,) are in increasing order.

    The bound has such a row at its value instead of its minimum: no multipliers. ``names`` are the
    secrets in words.
    """

    kind = "fixed"
    alone = True
    index: int
    secrets: Ints
    exact: Numerators
    names: tuple[str, ...]

    def fits(self, statement: Statement) -> Fitting:
        rows = self.secrets
        sound = is_array(rows, np.int64, (len(rows),))
        proper = sound and bool((np.diff(rows) > 0).all() and rows[0] >= 0)
        whole = type(self.exact) is Numerators
        return {
            "secrets": proper and int(rows[-1]) < statement.secrets,
            "exact": whole and self.exact.shape == (len(rows), statement.observables),
            "names": len(self.names) == len(rows),
        }

    def held_rows(self) -> Held:
        return Held(self.secrets, self.exact)

    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        changed = [
            name
            for s, name, row in zip(self.secrets.tolist(), self.names, self.exact.rows, strict=True)
            if not _equal(row, self.exact.bits, low.rows[s], low.bits)
        ]
        count = self.exact.shape[0] * self.exact.shape[1]
        detail = f"{len(self.secrets)} rows, digit by digit"
        if changed:
            detail = f"{len(changed)} rows are others, the first that of {changed[0]}"
        return Check("fixed rows", self.index, count, not changed, float(len(changed)), detail)

    def impossible(self, statement: Statement) -> str:
        return next(self._conflicts(statement), "")

    def in_words(self, given: object) -> str:
        return "the rows held fixed"

    def _conflicts(self, statement: Statement) -> Iterator[str]:
        """Why rows that are fixed cannot be kept together, whatever the others are."""
        place, rows = f"constraints[{self.index}]", self.held_rows().rows
        names = dict(zip(self.secrets.tolist(), self.names, strict=True))
        for other in statement.of_kind(Fixed):
            if other.index < self.index:
                theirs = other.held_rows().rows
                for s, row in rows.items():
                    if s in theirs and not _equal(
                        row, self.exact.bits, theirs[s], other.exact.bits
                    ):
                        yield (
                            f"{place}: the row of {names[s]} is fixed to another one by "
                            f"constraints[{other.index}]. Fix it once"
                        )
        for support in statement.of_kind(Support):
            for s, row in rows.items():
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
        """A pair of fixed rows beyond a ratio, as floats show it the worst: its secrets,
        observable, and by how much."""
        rows, scan = self.exact.rows, Scan(self.exact.matrix)
        among = np.ix_(self.secrets, self.secrets)
        distance = ratio.table[among]
        limited, factor = np.isfinite(distance), exp_range(ratio.epsilon, distance)[0] * SAFE
        for k, s in enumerate(self.secrets.tolist()):
            others = [j for j in np.flatnonzero(limited[k]).tolist() if rows[j] != rows[k]]
            window = None if ratio.window is None else np.flatnonzero(ratio.window[s])
            scan.row(k, np.array(others, dtype=np.int64), factor[k, others], window)
        for k, other, o in chain([scan.where], scan.undecided()):
            i, j = int(self.secrets[k]), int(self.secrets[other])
            d, left, right = float(ratio.table[i, j]), rows[k][o], rows[other][o]
            if at_most(left, right, ratio.epsilon, d):
                continue
            # of a report that the other never makes, no multiple is enough
            if not right:
                return i, j, o, "more than any multiple of"
            size = Fraction(left, right) / exp_lower(ratio.epsilon, d, 64)
            words = f"{float(size):.9g}" if size < 10**300 else "more than 1e+300"
            return i, j, o, f"{words} times"
        return None


def _equal(row: tuple[int, ...], bits: int, other: tuple[int, ...], more: int) -> bool:
    """Whether row / 2^bits = other / 2^more."""
    return bool((wholes(row) << more == wholes(other) << bits).all())
