"""What every family of inequalities is, and how its arrays are kept from being changed."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from optmech.base.arrays import Floats

if TYPE_CHECKING:
    from optmech.statement.held import Held
    from optmech.statement.spread import Spread

T = TypeVar("T")
A = TypeVar("A", bound=NDArray[np.generic])


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


class ReadOnly:
    """A frozen dataclass whose arrays cannot be written to: what could be is copied."""

    def __post_init__(self) -> None:
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            kept = read_only(value)
            if kept is not value:
                object.__setattr__(self, field.name, kept)

    def __setstate__(self, state: dict[str, Any]) -> None:
        """From a pickle or a copy, whose arrays could be written to."""
        self.__dict__.update(state)
        self.__post_init__()


def read_only(value: T) -> T:
    """An array, a sparse one, or a tuple of these, such that nobody can change an entry."""
    if isinstance(value, np.ndarray):
        return value if _kept(value) else cast(T, locked(np.array(value)))
    if isinstance(value, sp.csr_array):
        parts = (read_only(part) for part in (value.data, value.indices, value.indptr))
        return cast(T, sp.csr_array(tuple(parts), shape=value.shape, copy=False))
    if isinstance(value, tuple) and any(isinstance(part, np.ndarray) for part in value):
        return cast(T, tuple(read_only(part) for part in value))
    return value


def _kept(values: NDArray[np.generic]) -> bool:
    """Whether nobody can write to an array: not through the one that it is a view of either."""
    base: Any = values
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    return base is None


def locked(values: A) -> A:
    """The array itself, which from now on nobody writes to."""
    values.setflags(write=False)
    return values
