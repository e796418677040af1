"""Errors that say what is wrong, where, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar, Self

SOLVER_THREAD = "optmech-solver"
"""Name of threads in which a solver runs and may have been left to itself."""


class OptmechError(Exception):
    """Base of every error that optmech raises on purpose.

    Parameters
    ----------
    message:
        What is wrong, with the offending value.
    where:
        The place: a file, a path into a file (``constraints[1].epsilon``) or an argument.
    remedy:
        What to do about it.
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, where: str = "", remedy: str = "") -> None:
        self.message = message
        self.where = where
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}. {self.remedy}" if self.remedy else text

    def at(self, where: str) -> Self:
        """Return the same error with ``where`` put before its own place."""
        joint = "." if self.where and not self.where.startswith("[") else ""
        return self.moved(f"{where}{joint}{self.where}")

    def moved(self, where: str) -> Self:
        """Return the same error at another place."""
        return type(self)(self.message, where=where, remedy=self.remedy)


class ProblemError(OptmechError):
    """The problem, a file or an argument is not usable as given."""

    exit_status = 2


@contextmanager
def inside(where: str) -> Iterator[None]:
    """Puts ``where`` before the place of a ProblemError raised in the block."""
    try:
        yield
    except ProblemError as error:
        raise error.at(where) from error


class TooLargeError(ProblemError):
    """The problem does not fit in the memory at hand; the message has both figures."""


class AbsentError(ProblemError, AttributeError):
    """What works on finitely many secrets was asked of something that does not have them."""

    @classmethod
    def of(cls, thing: object, name: str) -> AttributeError:
        """That ``thing``, for every point of a region, has no ``name``."""
        kind = type(thing).__name__
        if name.startswith("__"):
            return AttributeError(f"{kind!r} object has no attribute {name!r}")
        return cls(
            f"{kind} has no {name!r}: it is for every point of a region, and no table of secrets",
            remedy="Use design.at_places, the mechanism at the places of the prior, for what works "
            "on finitely many secrets",
        )


class InfeasibleError(OptmechError):
    """No mechanism satisfies the constraints; the message has the reason with its numbers."""

    exit_status = 3


class SolverError(OptmechError):
    """The search ended before any verified mechanism was found."""

    exit_status = 4


class VerificationError(OptmechError):
    """A mechanism, design or file failed a check that it claims to pass."""
