"""Frozen data whose arrays nobody can write to: not in copies, nor after a pickle, nor in what is
computed from them once and kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields, replace
from fractions import Fraction
from functools import cached_property, wraps
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    NoReturn,
    Self,
    TypeVar,
    cast,
    dataclass_transform,
    overload,
)

import numpy as np
from numpy.typing import NDArray

from optmech.errors import inside

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
A = TypeVar("A", bound=NDArray[np.generic])


class Fixed(dict[K, V]):
    """A dictionary that nobody can change."""

    def _refuse(self, *args: object, **given: object) -> NoReturn:
        raise TypeError("this dictionary is read-only: change a copy of it, dict(…)")

    __setitem__ = __delitem__ = __ior__ = _refuse
    update = setdefault = pop = popitem = clear = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self))

    def __reduce__(self) -> tuple[type[Fixed[K, V]], tuple[dict[K, V]]]:
        return type(self), (dict(self),)


class ReadOnly:
    """A frozen dataclass whose arrays cannot be written to: what could be is copied.

    Fields are first converted, where they have a converter. A copy is the object itself. A pickle
    holds what was given; what follows from it (``cached_property``) is read-only as well, and
    computed again.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for value in vars(cls).values():
            if isinstance(value, cached_property):
                value.func = _sealing(value.func)

    def __post_init__(self) -> None:
        for own in fields(cast(Any, self)):
            value = kept = getattr(self, own.name)
            by = own.metadata.get(CONVERTER)
            if by and (value is not None or own.default is not None):
                with inside(own.name):
                    kept = by(value)
            kept = read_only(kept)
            if kept is not value:
                object.__setattr__(self, own.name, kept)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        classes = type(self).__mro__
        follows = {k for c in classes for k, v in vars(c).items() if isinstance(v, cached_property)}
        return _made, (type(self), {k: v for k, v in vars(self).items() if k not in follows})


class Kept:
    """An object with a state of its own, whose public attributes stay what they were made as."""

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("_") and name in vars(self):
            raise AttributeError(f"{name} cannot be replaced")
        super().__setattr__(name, value)


CONVERTER = "converter"
"""What the metadata of a field call its converter."""
_UNSET: Any = MISSING
_PLAIN = {int, float, str, Fraction}
"""Types of entries that are not looked into: laws of noise have many."""


class Converted(Generic[V, T]):
    """What type checkers take a field for that is given a V and has a T."""

    if TYPE_CHECKING:

        def __get__(self, made: object, cls: Any) -> T: ...
        def __set__(self, made: object, value: V) -> None: ...


@overload
def converted(
    by: Callable[[V], T], *, default: None, kw_only: bool = ...
) -> Converted[V | None, T | None]: ...
@overload
def converted(
    by: Callable[[V], T], *, default: V = ..., kw_only: bool = ...
) -> Converted[V, T]: ...
def converted(by: Any, *, default: Any = MISSING, kw_only: Any = MISSING) -> Any:
    """A field of a ``ReadOnly`` that is what ``by`` makes of the argument, and stays None where
    that is the default. Errors of ``by`` name the field."""
    return field(default=default, kw_only=kw_only, metadata={CONVERTER: by})


def checked(by: Callable[[T], T], *, default: T | None = _UNSET, kw_only: Any = MISSING) -> T:
    """A converted field whose argument has the type of the field."""
    return cast(T, field(default=default, kw_only=kw_only, metadata={CONVERTER: by}))


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(field, converted, checked)
)
def record(cls: type[T]) -> type[T]:
    """A frozen dataclass that is equal to what its base says, or to nothing but itself, and keeps
    the representation of its base. Its signature has the types that converters take."""
    made = dataclass(frozen=True, eq=False, repr=cls.__repr__ is object.__repr__)(cls)
    for own in fields(cast(Any, made)):
        if by := own.metadata.get(CONVERTER):
            taken = [*getattr(by, "__annotations__", {}).values(), own.type][0]
            stated = f"{taken} | None" if own.default is None else taken
            made.__init__.__annotations__[own.name] = stated
    return made


def frozen(cls: type[T]) -> type[T]:
    """A plain heir of a frozen dataclass, of which dataclasses keep the inherited fields alone."""

    def refuse(self: object, name: str, value: object = None) -> None:
        raise FrozenInstanceError(f"cannot change field {name!r}")

    for name in ("__setattr__", "__delattr__"):
        setattr(cls, name, refuse)
    return cls


def _made(cls: type[T], held: dict[str, Any]) -> T:
    """An object of a pickle, whose arrays could be written to."""
    out = cls.__new__(cls)
    for name, value in held.items():
        object.__setattr__(out, name, read_only(value))
    return out


def _sealing(compute: Callable[[Any], T]) -> Callable[[Any], T]:
    @wraps(compute)
    def sealed(self: Any) -> T:
        found = compute(self)
        if isinstance(found, np.ndarray) and found.base is None:
            return locked(found)
        # a dictionary of the class's own is what it remembers in
        return found if compute.__name__[0] == "_" and type(found) is dict else read_only(found)

    return sealed


def read_only(value: T) -> T:
    """An array, a sparse one, a dictionary, a tuple of these, or a frozen dataclass with such
    fields, such that nobody can change an entry."""
    out: T = _read_only(value)
    return out


def _read_only(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return locked(value if _kept(value) else np.array(value))
    if isinstance(getattr(value, "indptr", None), np.ndarray):
        parts = tuple(map(_read_only, (value.data, value.indices, value.indptr)))
        return type(value)(parts, shape=value.shape, copy=False)
    if type(value) is tuple:
        if not {*map(type, value)} <= _PLAIN:
            kept = tuple(map(_read_only, value))
            if any(new is not entry for new, entry in zip(kept, value, strict=True)):
                return kept
    elif type(value) is dict:
        return Fixed({key: _read_only(part) for key, part in value.items()})
    elif _takes_as_given(value):
        own = {field.name: getattr(value, field.name) for field in fields(value) if field.init}
        changed = {k: new for k, part in own.items() if (new := _read_only(part)) is not part}
        if changed:
            return replace(value, **changed)
    return value


def _takes_as_given(value: Any) -> bool:
    """Whether it is a frozen dataclass that takes what it is given as it is."""
    stated = getattr(type(value), "__dataclass_params__", None)
    return stated is not None and stated.frozen and stated.init and not isinstance(value, ReadOnly)


def _kept(values: NDArray[np.generic]) -> bool:
    """Whether nobody can write to an array: not through the one that it is a view of either."""
    base: Any = values
    while isinstance(base, np.ndarray) and not base.flags.writeable:
        base = base.base
    return base is None


def locked(values: A) -> A:
    """The array, which from now on nobody writes to: a view of what owns the numbers, so that
    numpy lets nobody make it writable again; a view of something else is copied."""
    if values.base is not None:
        if _kept(values):
            return values
        values = cast(A, np.array(values))
    values.setflags(write=False)
    return values.view()
