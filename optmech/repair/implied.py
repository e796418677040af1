"""Equalities that a statement implies, stated: so that searches and repairs see them.

If r_ij = 0 then P[i,o] <= P[j,o] in every column, and both rows sum to one: they are equal. Ratios
that leave no more than rounding are taken for zero, which is stricter. Proofs: docs/theory.md,
"Equal rows".
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints
from optmech.certificate.multipliers import Multipliers, PairMultipliers
from optmech.repair.lifted import NO_ROOM
from optmech.statement.statement import Statement

TINY = 1e-9
"""Log ratios of points up to this are taken for zero."""


@dataclass(frozen=True, eq=False)
class Implied:
    """A statement with the same mechanisms as ``source`` (or a few less, where tiny ratios were
    taken for zero) and its equalities stated, and the way back for its multipliers."""

    source: Statement
    statement: Statement
    first: Ints
    second: Ints
    """Pairs P[first] <= P[second] of the source that are stated both ways, without a window."""
    stricter: bool
    """Whether there were tiny ratios, taken for zero."""

    @classmethod
    def of(cls, source: Statement, *, tiny: bool = True) -> Implied:
        """Without ``tiny``, no ratio is taken for zero that is not."""
        rounded = statement = _without_tiny(source) if tiny else source
        zero = _covered(statement)
        one_way = zero & ~(zero.T & (statement.log_ratio == 0) & (statement.log_ratio.T == 0))
        one_way &= ~(one_way & one_way.T & np.tri(len(zero), k=-1, dtype=bool))
        i, j = np.nonzero(one_way)
        if len(i):
            ratio = np.array(statement.log_ratio)
            ratio[i, j] = ratio[j, i] = 0.0
            statement = replace(statement, log_ratio=ratio)
        return cls(source, statement, i, j, rounded is not source)

    def recover(self, multipliers: Multipliers) -> Multipliers:
        """Multipliers of the source that prove the same bound, but for what is tiny."""
        ratio = multipliers.ratio
        if not len(self.first) or ratio is None or not len(ratio.value):
            return multipliers
        net = self._net(ratio)
        plain = self.source.log_ratio[self.first, self.second] <= TINY
        pair = np.full(self.source.log_ratio.shape, False)
        pair[self.first, self.second] = pair[self.second, self.first] = True
        kept = ~pair[ratio.i, ratio.j]
        k, o = np.nonzero(net * plain[:, None])
        parts = [_some(ratio, kept), PairMultipliers(self.first[k], self.second[k], o, net[k, o])]
        windowed = list(multipliers.windowed)
        left = np.where(plain[:, None], 0.0, net)
        for number, window in enumerate(self.source.windowed):
            tight = window.log_ratio[self.first, self.second] <= TINY
            here = np.where(tight[:, None] & window.window[self.first], left, 0.0)
            left = left - here
            k, o = np.nonzero(here)
            more = PairMultipliers(self.first[k], self.second[k], o, here[k, o])
            windowed[number] = _joined([windowed[number], more])
        return replace(multipliers, ratio=_joined(parts), windowed=tuple(windowed))

    def _net(self, ratio: PairMultipliers) -> Floats:
        """(pairs, O): what the multipliers of both ways leave to one way, as adding the same to
        all columns of a pair moves no bound."""
        count = self.source.secrets
        number = np.full((count, count), -1)
        number[self.first, self.second] = np.arange(len(self.first))
        net = np.zeros((len(self.first), self.source.observables))
        for sign, i, j in ((1.0, ratio.i, ratio.j), (-1.0, ratio.j, ratio.i)):
            own = number[i, j]
            used = own >= 0
            np.add.at(net, (own[used], ratio.o[used]), sign * ratio.value[used])
        return np.asarray(net - net.min(axis=1, keepdims=True))


def _without_tiny(statement: Statement) -> Statement:
    """Tiny ratios as zeros; the statement itself where there are none."""
    ratios = [statement.log_ratio, *(window.log_ratio for window in statement.windowed)]
    lifted = [part.log_ratio for part in statement.lifted]
    points = any(((part > 0) & (part <= TINY)).any() for part in ratios)
    sums = any(((part > 0) & (part < NO_ROOM)).any() for part in lifted)
    if not points and not sums:
        return statement
    return replace(
        statement,
        log_ratio=_cut(statement.log_ratio, TINY),
        windowed=tuple(
            replace(window, log_ratio=_cut(window.log_ratio, TINY)) for window in statement.windowed
        ),
        lifted=tuple(
            replace(part, log_ratio=_cut(part.log_ratio, NO_ROOM)) for part in statement.lifted
        ),
    )


def _cut(log_ratio: Floats, least: float) -> Floats:
    return np.where(log_ratio < least, 0.0, log_ratio)


def _covered(statement: Statement) -> NDArray[np.bool_]:
    """(S, S): whether P[i,o] <= P[j,o] in every column, by ratios of one or the support."""
    zero: NDArray[np.bool_] = np.array(statement.log_ratio == 0)
    for window in statement.windowed:
        whole = np.asarray((window.window | ~statement.allowed).all(axis=1))
        zero |= (window.log_ratio == 0) & whole[:, None]
    np.fill_diagonal(zero, False)
    return zero


def _some(pairs: PairMultipliers, kept: NDArray[np.bool_]) -> PairMultipliers:
    return PairMultipliers(pairs.i[kept], pairs.j[kept], pairs.o[kept], pairs.value[kept])


def _joined(parts: list[PairMultipliers]) -> PairMultipliers:
    return PairMultipliers(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("i", "j", "o", "value")
        )
    )
