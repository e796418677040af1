"""What the certificate asks of a family, and the families that it knows.

A class is registered by ``trusted``, which refuses one that lacks a method. The certificate works
on ``known(statement)`` only: a statement with anything else is refused as a whole.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Protocol, TypeVar, cast

from optmech.certificate.check import Check
from optmech.certificate.lagrangian import Lagrangian
from optmech.errors import VerificationError
from optmech.exact.numerators import Numerators
from optmech.statement import Family, Statement

Plain = Any
_OBJECTIVES = ("expected_loss", "worst_loss", "maximize_distortion")


class Trusted(Family, Protocol):
    """A family with everything that the certificate needs of it.

    ``given`` are the family's multipliers, of a type of its own; nothing about them is trusted.
    """

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

    @abstractmethod
    def in_words(self, given: Any) -> str:
        """Its name in a proof with these multipliers; empty where it has no part in it."""

    @abstractmethod
    def encode(self, given: Any, statement: Statement) -> Plain:
        """Multipliers as plain JSON values; None are zeros."""

    @abstractmethod
    def decode(self, plain: Plain, statement: Statement) -> Any:
        """The inverse. Raises ProblemError where types, indices or shapes do not fit."""


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
    """The families of a statement.

    Raises
    ------
    VerificationError
        Unless the certificate knows all of them, and every other part of the statement.
    """
    unknown = [
        type(family).__name__
        for family in statement.families
        if FAMILIES.get(getattr(family, "kind", "")) is not type(family)
    ]
    if type(statement) is not Statement:
        unknown.append(f"statement: {type(statement).__name__}")
    if statement.objective not in _OBJECTIVES:
        unknown.append(f"objective: {statement.objective!r}")
    if any(getattr(family, "kind", "") == "gradient" for family in statement.families):
        raise VerificationError(
            "privacy at every point is no promise about finitely many secrets",
            where="constraints",
            remedy="Use om.solve or optmech solve, which design for a mesh; leave everywhere out "
            "for what works on secrets",
        )
    if unknown:
        raise VerificationError(
            f"the certificate does not know {', '.join(unknown)} and proves nothing of it",
            where="statement",
            remedy="Teach the certificate this family (CONTRIBUTING.md), or leave it out",
        )
    return cast(tuple[Trusted, ...], statement.families)
