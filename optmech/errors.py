"""Errors that say what is wrong, where, and what to do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from numbers import Real
from pathlib import Path
from typing import ClassVar, Self

__all__ = [
    "EngineError",
    "InfeasibleError",
    "OptmechError",
    "ProblemError",
    "SolverError",
    "TooLargeError",
    "VerificationError",
]
__dir__ = __all__.copy

SOLVER_THREAD = "optmech-solver"
"""Name of threads in which a solver runs and may have been left to itself."""


def described(value: object) -> str:
    """What a value is, without what it says, as data may be a person's: no more of a number than
    whether it is below 0, or infinite, or none.

    Examples
    --------
    >>> for value in (1.5, "Café", [0.5, 0.5], {"a": 1}, None):
    ...     print(described(value))
    ...
    a number
    a text of 4 characters
    a list of 2
    a table of 1
    nothing
    """
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return str(value)
        case Real():
            return "a number below 0" if value < 0 else "a number"
        case str():
            return f"a text of {len(value)} character{'s' * (len(value) != 1)}"
        case list() | tuple():
            return f"a list of {len(value)}"
        case dict():
            return f"a table of {len(value)}"
        case _:
            return f"a {type(value).__name__}"


class OptmechError(Exception):
    """Base of every error that optmech raises on purpose.

    Parameters
    ----------
    message:
        What is wrong. Of data, such as coordinates and cells of tables, the place and the type are
        said, and no value (``described``); the value of a parameter may be.
    where:
        The place: a file, a path into a file (``constraints[1].epsilon``) or an argument.
    remedy:
        What to do about it.

    Examples
    --------
    >>> try:
    ...     om.Prior(om.Domain("ab"), [1, -1])
    ... except om.OptmechError as error:
    ...     print(error)
    ...
    prior[1]: the weight is negative. Weights must be >= 0
    >>> error = om.ProblemError("is negative", where="epsilon", remedy="Give a number above 0")
    >>> print(error.at("constraints[0]"))
    constraints[0].epsilon: is negative. Give a number above 0
    >>> print(error.moved("--epsilon"))
    --epsilon: is negative. Give a number above 0
    """

    exit_status: ClassVar[int] = 1

    def __init__(self, message: str, *, where: str | Path = "", remedy: str = "") -> None:
        self.message = message
        self.where = str(where)
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        text = f"{self.where}: {self.message}" if self.where else self.message
        return f"{text}. {self.remedy}" if self.remedy else text

    def at(self, where: str | Path) -> Self:
        """Return the same error with ``where`` put before its own place."""
        joint = "." if self.where and not self.where.startswith("[") else ""
        return self.moved(f"{where}{joint}{self.where}")

    def moved(self, where: str | Path) -> Self:
        """Return the same error at another place."""
        return type(self)(self.message, where=where, remedy=self.remedy)


class ProblemError(OptmechError):
    """The problem, a file or an argument is not usable as given.

    Examples
    --------
    >>> try:
    ...     om.MetricPrivacy(-1, om.distances.euclidean())
    ... except om.ProblemError as error:
    ...     print(error.where, "|", error.message)
    ...
    epsilon | -1 is negative or not finite
    """

    exit_status = 2


@contextmanager
def inside(where: str | Path) -> Iterator[None]:
    """Puts ``where`` before the place of a ProblemError raised in the block."""
    try:
        yield
    except ProblemError as error:
        raise error.at(where) from error


@contextmanager
def moved(where: str | Callable[[str], str]) -> Iterator[None]:
    """Puts a ProblemError raised in the block at another place, which may depend on its own."""
    try:
        yield
    except ProblemError as error:
        raise error.moved(where if isinstance(where, str) else where(error.where)) from error


class TooLargeError(ProblemError):
    """The problem does not fit in the memory at hand; the message has both figures.

    Examples
    --------
    >>> cells = om.Domain.range(13)
    >>> try:
    ...     om.mechanisms.rappor(cells, 1)
    ... except om.errors.TooLargeError as error:
    ...     print(error)
    ...
    secrets: 13 secrets make 2^13 observables. Use at most 12 secrets, or subset_selection
    """


class InfeasibleError(OptmechError):
    """No mechanism satisfies the constraints, on the mesh where there is one; the message has the
    reason with its numbers.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> d = om.distances.hamming()
    >>> wanted = [om.DistortionPrivacy(0.6, d)]  # a blind guess is wrong half of the time
    >>> design = om.solve(om.Problem(om.Prior.uniform(coin), d, constraints=wanted))
    >>> print(design.status)
    infeasible
    >>> issubclass(om.InfeasibleError, om.OptmechError)
    True
    """

    exit_status = 3


class SolverError(OptmechError):
    """The search ended before any verified mechanism was found.

    Examples
    --------
    >>> issubclass(om.SolverError, om.OptmechError)
    True
    >>> error = om.SolverError("no mechanism in 1 s", remedy="Give it more time")
    >>> print(error)
    no mechanism in 1 s. Give it more time
    """

    exit_status = 4


class EngineError(SolverError):
    """Every engine that was tried broke off, so that nothing was searched.

    The installation or the machine is at fault, not the problem: a library that cannot be loaded,
    or memory that does not suffice. The message says what broke first.

    Examples
    --------
    >>> issubclass(om.errors.EngineError, om.SolverError)
    True
    >>> om.errors.EngineError.exit_status, om.SolverError.exit_status
    (5, 4)
    """

    exit_status = 5


class VerificationError(OptmechError):
    """A mechanism, design or file failed a check that it claims to pass.

    Examples
    --------
    >>> error = om.VerificationError("row 3 sums to 0.98", where="design.json")
    >>> print(error)
    design.json: row 3 sums to 0.98
    >>> issubclass(om.VerificationError, om.OptmechError)
    True
    """
