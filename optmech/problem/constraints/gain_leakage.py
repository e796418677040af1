"""g-leakage: what the best guess of an adversary gains on average, whatever may be guessed."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Self

import numpy as np
from attrs import field, frozen
from numpy.typing import ArrayLike

from optmech.certificate.families import Leakage
from optmech.errors import ProblemError
from optmech.exact.number import Exact, Number
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, constraint
from optmech.problem.gains import Gain, as_gain, block_gains, gain_matrix, gain_words, gained
from optmech.problem.space import Space
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior


@constraint("gain_leakage")
@frozen(eq=False, repr=False, field_transformer=fields.placed)
class GainLeakage(Constraint):
    """Posterior vulnerability: Σ_o max_w Σ_s π(s) g(w,s) p(o|s) <= ``maximum`` (Alvim et al.,
    *The Science of Quantitative Information Flow*, 2020, chapter 5).

    ``gain`` is g(w, s): an array with a row for every guess w and a column for every secret, which
    need not be guesses of secrets; a function of two domains such as a distance; or "identity",
    where the guess is right or wrong and the left side is the Bayes vulnerability. ``prior`` is
    the adversary's, by default the problem's.
    """

    maximum: Exact = field(converter=fields.number)
    gain: Gain = field(default="identity", converter=as_gain)
    prior: Prior | None = field(default=None, converter=fields.adversary)

    @classmethod
    def partition(
        cls, maximum: Number, blocks: Sequence[Hashable], prior: Prior | None = None
    ) -> Self:
        """The adversary guesses the block of the secret; ``blocks`` names that of every secret."""
        return cls(maximum, block_gains(blocks), prior)

    @classmethod
    def predicate(cls, maximum: Number, holds: ArrayLike, prior: Prior | None = None) -> Self:
        """The adversary guesses whether something holds of the secret ("is she at a hospital?");
        ``holds`` says it of every secret."""
        values = np.asarray(holds)
        if values.dtype != bool or values.ndim != 1:
            raise ProblemError(
                "is not a list of truth values", where="holds", remedy="Give one for every secret"
            )
        return cls(maximum, np.array([values, ~values], dtype=np.float64), prior)

    def families(self, index: int, space: Space) -> Iterator[Leakage]:
        gain, weights = gain_matrix(self.gain, space), space.adversary(self.prior).weights
        yield Leakage(index, gain * weights, self.maximum, False, gain, weights)

    def promise(self, space: Space) -> str:
        against = "the prior" if self.prior is None else "another prior"
        return (
            f"the best guess with {against} gains at most {self.maximum.words} "
            f"({gain_words(self.gain)})"
        )

    def measured(self, m: Mechanism, space: Space) -> Kept:
        gain, weights = gain_matrix(self.gain, space), space.adversary(self.prior).weights
        return Kept("leakage", float(self.maximum), gained(gain, weights, m.matrix))

    def idle(self, space: Space) -> Sequence[tuple[str, str]]:
        gain, weights = gain_matrix(self.gain, space), space.adversary(self.prior).weights
        known = float((gain * weights).max(axis=0).sum())
        if self.maximum < known:
            return []
        return [("", f"who knows the secret gains {known:.9g} and no more")]
