"""Objectives that are more than a name."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from attrs import field, frozen

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.problem import fields
from optmech.problem.gains import PRIOR_FREE, Gain, as_goal, gain_matrix
from optmech.problem.record import Record
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.prior import Prior


@frozen(repr=False, field_transformer=fields.placed)
class MaximizeDistortion(Record):
    """Objective: the largest error of the best attack, under a LossBound (Shokri et al., CCS
    2012). ``prior`` is the adversary's, by default the problem's."""

    kind: ClassVar[Literal["maximize_distortion"]] = "maximize_distortion"

    distance: Distance = field(converter=fields.distance)
    prior: Prior | None = field(default=None, converter=fields.adversary)

    def factors(self, space: Space) -> tuple[Floats, Floats]:
        """d(t,s), shape (S, S), and the adversary's π(s). Raises ProblemError where they do not fit
        the secrets."""
        return space.apart(self.distance), space.adversary(self.prior).weights


@frozen(eq=False, repr=False, field_transformer=fields.placed)
class MinimizeLeakage(Record):
    """Objective: the least that the best guess gains by the report, Σ_o max_w Σ_s π(s) g(w,s)
    p(o|s), under a LossBound.

    ``gain`` is as in ``GainLeakage``, or one of two measures that have no prior: "maximal", the
    exponential Σ_o max_s p(o|s) of the maximal leakage, and "additive", 1 - Σ_o min_s p(o|s).
    ``prior`` is the adversary's, by default the problem's.
    """

    kind: ClassVar[Literal["minimize_leakage"]] = "minimize_leakage"

    gain: Gain = field(default="identity", converter=as_goal)
    prior: Prior | None = field(default=None, converter=fields.adversary)

    def __attrs_post_init__(self) -> None:
        free = isinstance(self.gain, str) and self.gain in PRIOR_FREE
        if free and self.prior is not None:
            raise ProblemError(
                f"{self.gain!r} is the same for every prior", where="prior", remedy="Leave it out"
            )

    def factors(self, space: Space) -> tuple[Floats, Floats]:
        """g(w,s), shape (W, S), and the weights of the secrets. Raises ProblemError where they do
        not fit the secrets."""
        if isinstance(self.gain, str) and self.gain in PRIOR_FREE:
            gain = PRIOR_FREE[self.gain](len(space.secrets))
            return gain, np.ones(len(space.secrets))
        return gain_matrix(self.gain, space), space.adversary(self.prior).weights
