"""Multipliers of the statement's inequalities: what a lower bound is made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from optmech.base.arrays import Floats
from optmech.certificate.families.base import Trusted, known
from optmech.certificate.families.ratio import PairMultipliers, everywhere
from optmech.statement import Statement


@dataclass(frozen=True, eq=False)
class Multipliers:
    """Those of every family of a ``Statement``, in its order, each of its family's own type.

    None, or an end that is left out, stands for none. ``objective`` is None for the expected loss,
    the least favourable weights over secrets (S,) for the worst loss, and an attack q(t|o) of shape
    (O, S) for maximised distortion.
    """

    families: tuple[Any, ...] = ()
    objective: Floats | None = None

    def of(self, statement: Statement) -> Iterator[tuple[Trusted, Any]]:
        """Every family that the certificate decides, with its multipliers or None. Raises
        VerificationError where there are others."""
        families = known(statement)
        given = self.families[: len(families)]
        return zip(families, given + (None,) * (len(families) - len(given)), strict=True)


def pairs_of(statement: Statement, multipliers: Multipliers) -> PairMultipliers | None:
    """Those of all ratio families without a window together; None without any."""
    given = list(multipliers.of(statement))
    return PairMultipliers.joined(given[place][1] for place in everywhere(statement))
