"""Numbers at some places of an array, exact where they were written so: weights of inequalities,
and log ratios, which are mostly absent."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.labels import own_labels, reordered
from optmech.base.read_only import ReadOnly, locked, record
from optmech.base.shown import SameFields
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys
from optmech.exact.number import Exact

if TYPE_CHECKING:
    from optmech.spaces.domain import Domain

MOST_UNITS = 256
"""Different logarithms and fractions, each of which is a family of its own."""
_WORDS = "is not an array of numbers"
_REMEDY = "Give numbers in rows of one length, or a sparse array"


@record
class Listed(SameFields, ReadOnly):
    """``value`` (n,) at the places ``at`` (n,) of an array of ``shape``, counted in C order; the
    ``exact`` ones by their number among these, where they are no floats."""

    shape: tuple[int, ...]
    at: Ints
    value: Floats
    exact: tuple[tuple[int, Exact], ...] = ()
    labels: tuple[Any, ...] | None = None
    """Of every axis, None for one without; None where no axis has any."""

    @classmethod
    def of(cls, given: Any, read: Callable[[Any], Exact], absent: float) -> Listed:
        """What an array, lists with exact texts, a sparse array or a table with labels has beside
        ``absent``; ``read`` reads one number. Raises ProblemError on anything else."""
        if isinstance(given, Listed):
            return given
        labels, at, data = own_labels(given), np.arange(0), np.zeros(0)
        if hasattr(given, "tocoo"):
            coo = given.tocoo(copy=True)
            coo.sum_duplicates()
            shape, data = coo.shape, coo.data
            at = np.ravel_multi_index(tuple(coo.coords), shape)
        else:
            try:
                array = given.to_numpy() if labels else given
                array = np.asarray(array, None if hasattr(array, "dtype") else object)
            except ValueError as error:
                raise ProblemError(_WORDS, remedy=_REMEDY) from error
            shape, data = array.shape, array.ravel()
            at = np.arange(data.size)
        if not 1 <= len(shape) <= 3 or 0 in shape or np.ma.is_masked(given):
            raise ProblemError(_WORDS, remedy=_REMEDY)
        if data.dtype.kind not in "fiuO":
            raise ProblemError(f"has entries of type {data.dtype}", remedy=_REMEDY)
        numbers: dict[int, Exact] = {}
        if data.dtype.kind == "O":
            data = np.array([_one(v, read, shape, k, numbers) for k, v in enumerate(data.tolist())])
        value = data.astype(np.float64)
        kept = value != absent
        bad = np.flatnonzero(~np.isfinite(value) & kept)
        if len(bad):
            remedy = "Give a finite number" + (" >= 0, or inf" if absent else "")
            raise ProblemError("is not finite", where=_place(shape, int(at[bad[0]])), remedy=remedy)
        for k in np.flatnonzero(kept & (value < 0)).tolist()[:1]:
            read(float(value[k]))  # refuses what must not be below 0
        new = np.cumsum(kept) - 1
        exact = tuple((int(new[k]), number) for k, number in numbers.items() if kept[k])
        named = None if labels is None else tuple(map(_tuple, labels))
        return cls(tuple(map(int, shape)), locked(at[kept]), locked(value[kept]), exact, named)

    @property
    def numbers(self) -> list[float]:
        """Every number, exact ones as such."""
        out: list[float] = self.value.tolist()
        for k, number in self.exact:
            out[k] = number
        return out

    @property
    def places(self) -> tuple[Ints, ...]:
        """The indices of every number, axis by axis."""
        return tuple(map(np.asarray, np.unravel_index(self.at, self.shape)))

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        texts = [v.text if isinstance(v, Exact) else v for v in self.numbers]
        return {"shape": list(self.shape), "at": self.at.tolist(), "value": texts}

    @classmethod
    def load(cls, plain: Any, read: Callable[[Any], Exact]) -> Listed:
        """What ``plain`` wrote. Raises ProblemError where it did not."""
        require_keys(plain, {"shape", "at", "value"}, "")
        shape = tuple(plain["shape"])
        at = np.array(plain["at"], dtype=np.int64)
        if not all(type(size) is int and size > 0 for size in shape) or len(shape) > 3:
            raise ProblemError("has no shape")
        size = int(np.prod([float(v) for v in shape]))
        rising = (np.diff(at) > 0).all() and (not len(at) or 0 <= at[0] <= at[-1] < size)
        if at.ndim != 1 or len(at) != len(plain["value"]) or not rising:
            raise ProblemError("has places out of order, or outside")
        numbers = {
            k: number for k, v in enumerate(plain["value"])
            if isinstance(v, str) and _rounded(number := read(v))
        }  # fmt: skip
        value = np.array([numbers.get(k, v) for k, v in enumerate(plain["value"])], dtype=float)
        return cls(shape, locked(at), locked(value), tuple(numbers.items()))

    def ordered(self, *axes: Domain | None) -> Listed:
        """With the axes that have labels in the order of those of domains; None stands for an axis
        whose labels mean nothing. Raises ProblemError where they are others."""
        if self.labels is None:
            return self
        places = list(self.places)
        for axis, (own, domain) in enumerate(zip(self.labels, axes, strict=True)):
            if own is None or domain is None:
                continue
            old = reordered(np.arange(len(own)), [own], [domain.labels], where="")
            new = np.empty(len(own), dtype=np.int64)
            new[old] = np.arange(len(own))
            places[axis] = new[places[axis]]
        at = np.ravel_multi_index(tuple(places), self.shape)
        order = np.argsort(at)
        new = np.empty(len(at), dtype=np.int64)
        new[order] = np.arange(len(at))
        exact = tuple(sorted((int(new[k]), number) for k, number in self.exact))
        return Listed(self.shape, locked(at[order]), locked(self.value[order]), exact)

    def units(self) -> list[tuple[Exact, Ints, Floats]]:
        """The numbers as multiples of few: of one, of a logarithm, or a fraction itself; each with
        the numbers of those among all, and what they are multiplied by."""
        groups: dict[tuple[Any, Any], list[tuple[int, float]]] = {}
        known = dict(self.exact)
        plain = [k for k in range(len(self.at)) if k not in known]
        if plain:
            groups[Fraction(1), None] = [(k, float(self.value[k])) for k in plain]
        for k, number in self.exact:
            factor = float(number.factor)
            whole = Fraction(factor) == number.factor and number.log_of is not None
            unit = (Fraction(1) if whole else number.factor, number.log_of)
            groups.setdefault(unit, []).append((k, factor if whole else 1.0))
        if len(groups) > MOST_UNITS:
            raise ProblemError(
                f"has {len(groups)} different logarithms and fractions",
                remedy=f"Use at most {MOST_UNITS}, or decimal numbers",
            )
        return [
            (Exact(*unit), np.array([k for k, _ in own]), np.array([v for _, v in own]))
            for unit, own in groups.items()
        ]


def _one(
    value: Any, read: Callable[[Any], Exact], shape: Sequence[int], k: int, found: dict[int, Exact]
) -> float:
    """A number as a float; its exact value is put with those found where it is another one."""
    if isinstance(value, float | int) and not isinstance(value, bool | Exact):
        try:
            return float(value)
        except OverflowError:
            pass
    if isinstance(value, str) and value.strip() == "inf":
        return np.inf
    try:
        number = read(value)
    except ProblemError as error:
        raise ProblemError(error.message, where=_place(shape, k), remedy=error.remedy) from None
    if _rounded(number):
        found[k] = number
    return float(number)


def _rounded(number: Exact) -> bool:
    """Whether the nearest float is another number."""
    return number.log_of is not None or Fraction(float(number)) != number.factor


def _place(shape: Sequence[int], at: int) -> str:
    return "".join(f"[{k}]" for k in np.unravel_index(at, tuple(shape)))


def _tuple(labels: Sequence[Any] | None) -> tuple[Any, ...] | None:
    return None if labels is None else tuple(labels)


def chosen(given: Any, labels: Sequence[Any], where: str) -> Bools:
    """Which labels are meant by a list of some of them, or by truth values for all."""
    out, place = np.zeros(len(labels), dtype=bool), {label: k for k, label in enumerate(labels)}
    truths = [isinstance(one, bool) for one in given]  # True equals 1, and is no label 1
    if any(truths) and not any(isinstance(label, bool) for label in labels):
        if all(truths) and len(truths) == len(labels):
            return np.array(given)
        many = f"{len(labels)} truth values or labels"
        raise ProblemError("are neither one nor the other", where=where, remedy=f"Give {many}")
    for k, label in enumerate(given):
        if not isinstance(label, Hashable) or label not in place or out[place[label]]:
            raise ProblemError(
                f"{label!r} is no observable, or named twice", where=f"{where}[{k}]",
                remedy="Name each of those there are once",
            )  # fmt: skip
        out[place[label]] = True
    return out
