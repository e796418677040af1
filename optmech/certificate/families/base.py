"""What the certificate asks of a family, and the families that it knows.

A class is registered by ``trusted``, which refuses one that lacks a method. The certificate works
on ``known(statement)`` only: a statement with anything else is refused as a whole.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Protocol, TypeVar, cast

import numpy as np

from optmech.certificate.check import Check
from optmech.certificate.families.plain import Plain, decoded, encoded
from optmech.certificate.lagrangian import Lagrangian
from optmech.errors import VerificationError
from optmech.exact.numerators import Numerators
from optmech.statement import Family, Statement

_OBJECTIVES = ("expected_loss", "worst_loss", "maximize_distortion")


class Trusted(Family, Protocol):
    """A family with everything that the certificate needs of it.

    ``given`` are the family's multipliers, of a type of its own; nothing about them is trusted.
    """

    named: ClassVar[str] = ""
    """What it is in proofs, a format of the family."""

    @property
    def written(self) -> str:
        """The entry of a design file's multipliers that has its own; empty where it has none."""
        return self.kind

    @abstractmethod
    def decide(self, statement: Statement, released: Numerators) -> Check:
        """Whether its inequalities hold, exactly."""

    @abstractmethod
    def charge(self, statement: Statement, lagrangian: Lagrangian, given: Any) -> None:
        """Add multipliers times (left side - right side), or something smaller."""

    def impossible(self, statement: Statement) -> str:
        """Why no mechanism satisfies it, by arithmetic; empty where that is not known."""
        return ""

    def note(self, statement: Statement) -> str:
        """What is to be said of how its limit is meant; mostly nothing."""
        return ""

    def in_words(self, given: Any) -> str:
        """Its name in a proof with these multipliers; empty where it has no part in it."""
        if given is None or not (np.asarray(getattr(given, "weight", given)) > 0).any():
            return ""
        return f"constraints[{self.index}] ({self.named.format(self)})"

    @abstractmethod
    def zeros(self, statement: Statement) -> Any:
        """Multipliers of zero: an array, or a dataclass of arrays that has a ``weight``."""

    def encode(self, given: Any, statement: Statement) -> Plain:
        """Multipliers as plain JSON values; None are zeros."""
        return encoded(self.zeros(statement) if given is None else given)

    def decode(self, plain: Plain, statement: Statement) -> Any:
        """The inverse. Raises ProblemError where types, indices or shapes do not fit."""
        return decoded(plain, self.zeros(statement))


FAMILIES: dict[str, type[Trusted]] = {}
"""Every family that the certificate decides, by its name."""

C = TypeVar("C", bound=type)


def trusted(kind: C) -> C:
    """Register a family. Raises TypeError unless it has every method of ``Trusted``."""
    missing = sorted(getattr(kind, "__abstractmethods__", ("everything",)))
    if missing or not hasattr(kind, "kind"):
        raise TypeError(f"the family {kind.__name__} lacks {', '.join(missing) or 'a name'}")
    FAMILIES[kind.kind] = kind
    return kind


def known(statement: Statement) -> tuple[Trusted, ...]:
    """The families of a statement. Raises VerificationError unless the certificate knows all of
    them, and every other part of the statement."""
    unknown = [
        type(family).__name__
        for family in statement.families
        if FAMILIES.get(getattr(family, "kind", "")) is not type(family)
    ]
    if type(statement) is not Statement:
        unknown.append(f"statement: {type(statement).__name__}")
    if statement.objective not in _OBJECTIVES:
        unknown.append(f"objective: {statement.objective!r}")
    if unknown:
        raise VerificationError(
            f"the certificate does not know {', '.join(unknown)} and proves nothing of it",
            where="statement",
            remedy="Teach the certificate this family (CONTRIBUTING.md), or leave it out",
        )
    return cast(tuple[Trusted, ...], statement.families)
