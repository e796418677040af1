"""Pufferfish privacy: reports about an answer hardly tell secrets behind it apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import field, frozen

from optmech.base.arrays import Floats
from optmech.certificate.families import Approximate, LiftedRatio
from optmech.exact.number import Exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, constraint
from optmech.problem.constraints.distribution import DistributionPrivacy, as_pairs
from optmech.problem.ratios import delta_words
from optmech.problem.space import Space
from optmech.spaces.mechanism import Mechanism


@constraint("pufferfish")
@frozen(eq=False, repr=False, field_transformer=fields.placed)
class Pufferfish(Constraint):
    """P(o | s_i, θ) <= e^ε P(o | s_j, θ) for every pair of secrets and every belief θ, in both
    directions, all o (Kifer and Machanavajjhala, *Pufferfish*, ACM TODS 2014, Definition 3.4).

    The secrets of the mechanism are the answers that it sees; ``pairs`` are the conditional laws of
    the answer, given s_i and given s_j, in the order of the answers (``om.beliefs`` makes them from
    tables, Markov chains and independent records). With ``delta`` > 0 the total excess over all o
    is at most δ.
    """

    epsilon: Exact = field(converter=fields.number)
    pairs: tuple[tuple[Floats, Floats], ...] = field(converter=as_pairs)
    delta: Exact = field(default=fields.ZERO, converter=fields.delta)

    @property
    def _laws(self) -> DistributionPrivacy:
        """The same of the laws of the answer."""
        return DistributionPrivacy(self.epsilon, self.pairs, self.delta)

    def families(self, index: int, space: Space) -> Iterator[LiftedRatio | Approximate]:
        yield from self._laws.families(index, space)  # type: ignore[misc]

    def promise(self, space: Space) -> str:
        counted = "one pair" if len(self.pairs) == 1 else f"{len(self.pairs)} pairs"
        return (
            f"ε = {self.epsilon.words} for {counted} of secrets behind the answer"
            f"{delta_words(self.delta)}"
        )

    def measured(self, m: Mechanism, space: Space) -> Kept:
        return self._laws.measured(m, space)

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        return self._laws.idle(space)
