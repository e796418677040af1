"""Equalities that a statement implies, stated: so that searches and repairs see them.

If r_ij = 0 then P[i,o] <= P[j,o] in every column, and both rows sum to one: they are equal. Ratios
that leave no more than rounding are taken for zero, which is stricter. Proofs:
docs/theory/repair.md, "Equal rows".
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import record
from optmech.certificate import Multipliers
from optmech.certificate.families import PairMultipliers
from optmech.lp.families.ratios import TINY
from optmech.lp.inequalities import Inequalities, ProgramMultipliers


@record
class Implied:
    """Inequalities with the same mechanisms as their ``source`` (or a few less, where tiny ratios
    were taken for zero) with the equalities stated, and the way back for their multipliers."""

    source: Inequalities
    given: Inequalities
    first: Ints
    second: Ints
    """Pairs P[first] <= P[second] of the source that are given both ways, without a window."""
    stricter: bool
    """Whether there were tiny ratios, taken for zero."""

    @classmethod
    def of(cls, source: Inequalities, *, tiny: bool = True) -> Implied:
        """Without ``tiny``, no ratio is taken for zero that is not."""
        rounded = given = source.without_tiny() if tiny else source
        # where P[i,o] <= P[j,o] in every column, by ratios of one or the support
        zero: Bools = np.array(given.log_ratio == 0)
        for part in given.windows:
            whole = np.asarray((part.window | ~given.allowed).all(axis=1))
            zero |= (part.log_ratio == 0) & whole[:, None]
        np.fill_diagonal(zero, False)
        one_way = zero & ~(zero.T & (given.log_ratio == 0) & (given.log_ratio.T == 0))
        one_way &= ~(one_way & one_way.T & np.tri(len(zero), k=-1, dtype=bool))
        i, j = np.nonzero(one_way)
        if len(i):
            ratio = np.array(given.log_ratio)
            ratio[i, j] = ratio[j, i] = 0.0
            given = given.with_ratios(ratio)
        return cls(source, given, i, j, rounded is not source)

    def recover(self, found: ProgramMultipliers) -> Multipliers:
        """Multipliers of the source that prove the same bound, but for what is tiny."""
        statement, ratio = self.source.statement, found.pairs
        if not len(self.first) or not len(ratio.value):
            return found.stated(statement)
        # 1, 2, ... for the pairs that are given both ways, -1, -2, ... for the other way
        number = np.zeros(self.source.log_ratio.shape, dtype=np.int64)
        number[self.first, self.second] = np.arange(1, len(self.first) + 1)
        own = (number - number.T)[ratio.i, ratio.j]
        kept, both, own = ratio.take(own == 0), ratio.take(own != 0), own[own != 0]
        # adding the same to all columns of a pair moves no bound
        net = np.zeros((len(self.first), statement.observables))
        np.add.at(net, (abs(own) - 1, both.o), np.sign(own) * both.value)
        net -= net.min(axis=1, keepdims=True)
        plain = self.source.log_ratio[self.first, self.second] <= TINY
        families = dict(found.families)
        left = np.where(plain[:, None], 0.0, net)
        for window in self.source.windows:
            tight = window.log_ratio[self.first, self.second] <= TINY
            here = np.where(tight[:, None] & window.window[self.first], left, 0.0)
            left = left - here
            more = PairMultipliers.joined([families.get(window.number), self._pairs(here)])
            families[window.number] = more
        pairs = PairMultipliers.joined([kept, self._pairs(net * plain[:, None])])
        assert pairs is not None
        return replace(found, pairs=pairs, families=families).stated(statement)

    def _pairs(self, value: Floats) -> PairMultipliers:
        """Weights (pairs, O) on P[first] <= P[second]."""
        k, o = np.nonzero(value)
        return PairMultipliers(self.first[k], self.second[k], o, value[k, o])
