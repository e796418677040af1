"""What the certificate asks of a family, and the families that it knows.

A class is registered by ``trusted``, which refuses one that lacks a method. The certificate works
on ``known(statement)`` only: a statement with anything else is refused as a whole.
"""

from abc import abstractmethod
from dataclasses import fields, is_dataclass, replace
from typing import Any, ClassVar, Protocol, TypeGuard, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.edges import Edges
from optmech.certificate.check import Check
from optmech.certificate.lagrangian import Lagrangian
from optmech.certificate.statement import Family, Segments, Statement
from optmech.certificate.values import Scaled
from optmech.errors import ProblemError, VerificationError
from optmech.exact.arguments import require_keys
from optmech.exact.number import Exact

Plain = Any
WHERE = "multipliers"
"""The place of errors in multipliers as plain JSON values: types, ranges, shapes."""


_OBJECTIVES = (
    "expected_loss", "worst_loss", "maximize_distortion", "minimize_leakage", "minimize_variance",
)  # fmt: skip


Fitting = dict[str, bool]
"""Whether each of a family's fields states inequalities of a mechanism, by its name."""


class Trusted(Family, Protocol):
    """A family with everything that the certificate needs of it.

    ``given`` are the family's multipliers, of a type of its own; nothing about them is trusted.
    """

    named: ClassVar[str] = ""
    """What it is in proofs, a format of the family."""
    alone: ClassVar[bool] = False
    """Whether nothing is decided of it beside a promise about all points of a region."""

    @property
    def written(self) -> str:
        """The entry of a design file's multipliers that has its own; empty where it has none."""
        return self.kind

    @abstractmethod
    def fits(self, statement: Statement) -> Fitting:
        """Whether each of its fields states inequalities of a mechanism of this statement."""

    @abstractmethod
    def decide(self, statement: Statement, low: Scaled, high: Scaled) -> Check:
        """Whether its inequalities hold, exactly, of every mechanism between two matrices that
        differ by a unit at most; of one that is ``alone`` or has a spread both are the released
        one."""

    @abstractmethod
    def charge(self, lagrangian: Lagrangian, given: Any) -> None:
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
        """Read what ``encode`` wrote. Raises ProblemError where types or shapes do not fit."""
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
    segments = statement.segments
    # pairs of secrets, of a statement about the worst loss
    if segments is not None and not (
        statement.objective == "worst_loss"
        and type(segments) is Segments
        and len(segments) > 0
        and is_array(segments.ends, np.int64, (len(segments), 2))
        and bool(((segments.ends >= 0) & (segments.ends < statement.secrets)).all())
        and is_array(segments.bends, np.float64, (len(segments),))
        and bool((np.isfinite(segments.bends) & (segments.bends >= 0)).all())
    ):
        unknown.append("segments")
    if not _fits_survey(statement):
        unknown.append("survey")
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


def _fits_survey(statement: Statement) -> bool:
    """Whether a variance is minimised, of a statistic of these secrets, or neither is stated."""
    survey = statement.survey
    if survey is None or statement.objective != "minimize_variance":
        return (survey is None) == (statement.objective != "minimize_variance")
    rows = len(survey.statistic) if np.ndim(survey.statistic) == 2 else 0
    people = survey.population
    return (
        rows > 0
        and is_finite(survey.statistic, (rows, statement.secrets))
        and is_table(survey.weights, (rows,))
        and (people is None or is_table(people, (statement.secrets,)))
    )


def _fitting(family: Trusted, statement: Statement) -> Fitting:
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


def encoded(given: Any) -> Plain:
    """Multipliers: an array (matrices as ``sparse`` has them), or a dataclass of arrays by name."""
    if is_dataclass(given):
        return {field.name: encoded(getattr(given, field.name)) for field in fields(given)}
    return sparse(given) if np.ndim(given) == 2 else np.asarray(given).tolist()


def decoded(plain: Plain, like: Any) -> Any:
    """Read ``encoded``, of the kind and shapes of ``like``; ProblemError where they do not fit."""
    if is_dataclass(like) and not isinstance(like, type):
        names = [field.name for field in fields(like)]
        require_keys(plain, set(names), WHERE)
        return replace(like, **{name: decoded(plain[name], getattr(like, name)) for name in names})
    shape = np.shape(like)
    if len(shape) == 2:
        return dense(plain, shape)
    return numbers(plain, *shape) if shape else float(numbers([plain])[0])


def sparse(values: Any) -> Plain:
    """A matrix as its shape and its entries other than zero."""
    kept = sp.coo_array(values)
    row, column = kept.coords
    return {
        "shape": list(kept.shape),
        "row": row.tolist(),
        "column": column.tolist(),
        "value": kept.data.tolist(),
    }


def numbers(values: Plain, count: int | None = None) -> Floats:
    """Finite numbers, ``count`` of them where that is given. Raises ProblemError otherwise."""
    if type(values) is not list or not all(type(value) in (int, float) for value in values):
        raise ProblemError("a multiplier is not a number", where=WHERE)
    if count is not None and len(values) != count:
        raise ProblemError(f"{len(values)} weights for {count}", where=WHERE)
    return finite_array(values, where=WHERE, ndim=1)


def indices(values: Plain, size: int) -> Ints:
    """Whole numbers from 0 to ``size`` - 1. Raises ProblemError otherwise."""
    if type(values) is not list or not all(type(value) is int for value in values):
        raise ProblemError("an index is not a whole number", where=WHERE)
    array = np.asarray(values, dtype=np.int64).reshape(-1)
    if len(array) and not (array.min() >= 0 and array.max() < size):
        raise ProblemError(f"an index is outside 0..{size - 1}", where=WHERE)
    return array


def dense(plain: Plain, expected: tuple[int, int]) -> Floats:
    """Read what ``sparse`` wrote. Raises ProblemError where the shape is another one."""
    require_keys(plain, {"shape", "row", "column", "value"}, WHERE)
    if plain["shape"] != list(expected) or any(type(size) is not int for size in plain["shape"]):
        raise ProblemError(f"shape {plain['shape']} is not {expected}", where=WHERE)
    out = np.zeros(expected)
    row, column = indices(plain["row"], expected[0]), indices(plain["column"], expected[1])
    values = numbers(plain["value"], len(row))
    if len(column) != len(row) or len(np.unique(row * expected[1] + column)) != len(row):
        raise ProblemError("an entry is missing or given twice", where=WHERE)
    out[row, column] = values
    return out


# a field that is no number >= 0 could pass for a pair without a limit, or for one of equal rows


def is_array(values: object, kind: type, shape: tuple[int, ...]) -> TypeGuard[NDArray[Any]]:
    """An array of numbers of this kind and shape."""
    return type(values) is np.ndarray and values.dtype == kind and values.shape == shape


def is_exact(value: object, *, signed: bool = False) -> bool:
    """A number >= 0 with its exact value; where ``signed``, a rational one may be below."""
    if type(value) is not Exact or (value.log_of is not None and value.log_of < 1):
        return False
    return value.factor >= 0 or (signed and value.log_of is None)


def is_table(values: object, shape: tuple[int, ...], *, unlimited: bool = False) -> bool:
    """Floats >= 0 of this shape: finite ones, or also inf where ``unlimited``."""
    if not is_array(values, np.float64, shape) or not (values >= 0).all():
        return False
    return unlimited or bool(np.isfinite(values).all())


def are_edges(values: object, shape: tuple[int, int]) -> bool:
    """Edges of so many points with finite numbers >= 0, in order, each given once."""
    if type(values) is not Edges or (values.count, values.count) != shape:
        return False
    i, j, count, size = values.i, values.j, values.count, (len(values),)
    if not all(is_array(part, np.int64, size) for part in (i, j)):
        return False
    inside = all(bool(((part >= 0) & (part < count)).all()) for part in (i, j))
    rising = bool((np.diff(i * count + j) > 0).all())
    return inside and rising and is_table(values.value, size)


def is_finite(values: object, shape: tuple[int, ...]) -> bool:
    """Finite floats of any sign, of this shape."""
    return is_array(values, np.float64, shape) and bool(np.isfinite(values).all())


def is_mask(values: object, shape: tuple[int, ...]) -> bool:
    """Truth values of this shape."""
    return is_array(values, np.bool_, shape)


def are_weights(rows: object, shape: tuple[int, int]) -> bool:
    """Rows of finite floats >= 0, none of them zero; dense, or sparse with sorted entries that are
    given once."""
    if not isinstance(rows, sp.csr_array):
        return is_table(rows, shape) and bool(np.asarray(rows).any(axis=1).all())
    sound = rows.shape == shape and rows.has_canonical_format and is_table(rows.data, (rows.nnz,))
    return sound and bool((np.asarray(rows.sum(axis=1)) > 0).all())
