"""What a transport question is answered with: a coupling, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass

from optmech.base.arrays import Floats, Ints
from optmech.base.shown import Shown


@dataclass(frozen=True, eq=False, repr=False)
class Violation(Shown):
    """A set that breaks Hall's condition: it holds more mass than all that it may be moved to.

    No coupling of the two distributions stays inside the relation, since one would move the mass
    of ``sources`` into ``neighbours``.
    """

    sources: Ints
    """Indices of points of the first distribution."""
    neighbours: Ints
    """Every point with mass of the second distribution that some of them is related to."""
    mass: float
    """What the first distribution puts on ``sources``."""
    capacity: float
    """What the second puts on ``neighbours``, less than ``mass``."""
    missing: float
    """mass - capacity: the least mass that every coupling moves outside the relation."""

    def __str__(self) -> str:
        return (
            f"{len(self.sources)} points hold {self.mass:.6g}, and the {len(self.neighbours)} "
            f"points they may move to only {self.capacity:.6g}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Coupling(Shown):
    """A joint distribution of two given ones (DP19 Def. 5), and what it attains."""

    plan: Floats
    """γ, shape (n, m), entries >= 0 of sum one; rows sum to a and columns to b."""
    value: float
    """W_p of the distributions; 0 for a lifted relation."""
    potentials: tuple[Floats, Floats] | None = None
    """u (n,) and v (m,) with u_i + v_j <= cost_ij everywhere and equality where mass moves: they
    prove a plan of finite p optimal. Checked in exact arithmetic, rounded here."""
    missing: float = 0.0
    """Mass that the plan leaves out or misplaces for rounding: 0 for counts, else about 1e-15."""
    below: Violation | None = None
    """For p = inf: why no coupling stays below ``value``; None where the value is 0 or some point
    has no nearer partner at all."""
