"""An objective that is more than a name."""

from __future__ import annotations

from typing import ClassVar

from attrs import field, frozen

from optmech.base.arrays import Floats
from optmech.problem import fields
from optmech.problem.record import Record
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.prior import Prior


@frozen(repr=False, field_transformer=fields.placed)
class MaximizeDistortion(Record):
    """Objective: the largest error of the best attack, under a LossBound (Shokri et al., CCS
    2012). ``prior`` is the adversary's, by default the problem's."""

    kind: ClassVar[str] = "maximize_distortion"

    distance: Distance = field(converter=fields.distance)
    prior: Prior | None = field(default=None, converter=fields.adversary)

    def factors(self, space: Space) -> tuple[Floats, Floats]:
        """d(t,s), shape (S, S), and the adversary's π(s). Raises ProblemError where they do not fit
        the secrets."""
        return space.apart(self.distance), space.adversary(self.prior).weights
