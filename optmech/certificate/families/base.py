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
from optmech.certificate.values import Scaled
from optmech.errors import VerificationError
from optmech.exact.numerators import Numerators
from optmech.statement import Family, Statement

_OBJECTIVES = ("expected_loss", "worst_loss", "maximize_distortion", "minimize_leakage")


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
    def fits(self, statement: Statement) -> dict[str, bool]:
        """Whether each of its fields states inequalities of a mechanism of this statement."""

    @abstractmethod
    def decide(self, statement: Statement, released: Numerators) -> Check:
        """Whether its inequalities hold, exactly."""

    def decide_between(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """As ``decide``, for a mechanism between two matrices that differ by a unit at most; a
        family without this does not stand beside privacy at every point."""
        raise VerificationError(
            f"nothing is decided of {self.kind} families beside privacy at every point",
            where=f"constraints[{self.index}]",
        )

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
    """Register a family. Raises TypeError unless it has every method of ``Trusted``, and a name of
    its own."""
    missing = sorted(getattr(kind, "__abstractmethods__", ("everything",)))
    if missing or not hasattr(kind, "kind"):
        raise TypeError(f"the family {kind.__name__} lacks {', '.join(missing) or 'a name'}")
    if kind.kind in FAMILIES:
        raise TypeError(f"two families are called {kind.kind!r}")
    FAMILIES[kind.kind] = kind
    return kind


def known(statement: Statement) -> tuple[Trusted, ...]:
    """The families of a statement. Raises VerificationError unless the certificate knows all of
    them, their fields state inequalities of a mechanism of these secrets and observables, and it
    knows every other part of the statement."""
    if type(statement) is not Statement:
        raise _unknown([f"statement: {type(statement).__name__}"])
    return statement.once(known, lambda: _known(statement))


def _known(statement: Statement) -> tuple[Trusted, ...]:
    unknown = [
        type(family).__name__
        for family in statement.families
        if FAMILIES.get(getattr(family, "kind", "")) is not type(family)
    ]
    if statement.objective not in _OBJECTIVES:
        unknown.append(f"objective: {statement.objective!r}")
    if unknown:
        raise _unknown(unknown)
    families = cast(tuple[Trusted, ...], statement.families)
    for family in families:
        wrong = [name for name, right in _fitting(family, statement).items() if not right]
        if wrong:
            raise VerificationError(
                f"the {family.kind} family of constraints[{family.index}] states no inequalities "
                f"of {statement.secrets} secrets x {statement.observables} observables: "
                f"{', '.join(wrong)} cannot be meant",
                where="statement",
                remedy="Give its fields the types, shapes and ranges that its class describes",
            )
    return families


def _fitting(family: Trusted, statement: Statement) -> dict[str, bool]:
    try:
        return family.fits(statement)
    except (TypeError, ValueError, AttributeError, IndexError):
        return {"one of its fields": False}


def _unknown(parts: list[str]) -> VerificationError:
    return VerificationError(
        f"the certificate does not know {', '.join(parts)} and proves nothing of it",
        where="statement",
        remedy="Teach the certificate this family (CONTRIBUTING.md), or leave it out",
    )
