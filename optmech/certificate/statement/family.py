"""What every family of inequalities is."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import TYPE_CHECKING, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from optmech.base.arrays import Floats

if TYPE_CHECKING:
    from optmech.certificate.statement.held import Held
    from optmech.certificate.statement.spread import Spread


class Family(Protocol):
    """Inequalities of one shape that one stated constraint leads to."""

    kind: ClassVar[str]
    """Its name."""
    index: int
    """Number of the constraint that it comes from."""

    @abstractmethod
    def signature(self) -> Hashable:
        """What has to agree for multipliers of one family to be multipliers of another."""

    def forced_zeros(self, zero: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Entries (S, O) known to be zero in every mechanism whose entries ``zero`` are."""
        return zero

    def pair_limits(self) -> Floats | None:
        """Log ratios r (S, S) with P[i,o] <= e^{r_ij} P[j,o] for all o; None where it has none."""
        return None

    def held_rows(self) -> Held | None:
        """Rows that it fixes; None where it fixes none."""
        return None

    def spread(self) -> Spread | None:
        """How rows of control points make those of the secrets, where it is a promise about all
        points of a region; None where it is one about the secrets."""
        return None
