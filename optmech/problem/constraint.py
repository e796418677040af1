"""What a kind of constraint is, and which kinds there are; what constraints and objectives share.

A kind is one class: its fields, the inequalities that they stand for, and what is said of it. All
readers and writers go through the list of kinds, so that none of them can pass one over.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, fields
from functools import cache
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, TypeVar, cast

from optmech.base.read_only import CONVERTER
from optmech.base.shown import Shown
from optmech.certificate.statement import Family
from optmech.errors import ProblemError, inside
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.promised import FOR_USE, Promised
from optmech.problem.space import Place, Space
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.mechanism import Mechanism

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from optmech.reading.sections import Section


class Record(Shown):
    """A frozen dataclass whose fields have converters of ``optmech.problem.fields``.

    The methods follow from the fields; a class whose file form is not its fields overrides them.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming())
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> stored = promise.plain(problem.space)  # as design files hold it
    >>> om.DifferentialPrivacy.load(stored, problem.space).epsilon == promise.epsilon
    True
    >>> table = om.constraints.MaximalLeakage.table()  # what a problem file may say
    >>> sorted(table.model_fields)
    ['kind', 'maximum']
    >>> said = table(kind="maximal_leakage", maximum="ln 2")
    >>> om.constraints.MaximalLeakage.built(said, place=None)  # no distance is built in the file
    {'maximum': 0.6931471805599453}
    >>> kind = om.constraints.MaximalLeakage
    >>> kind.build(said, place=None).maximum == kind("ln 2").maximum
    True
    """

    kind: ClassVar[str]
    """The name in files."""
    later: ClassVar[tuple[str, ...]] = ()
    """Fields that design files have had for some time only, and where one of them is given."""

    def plain(self, space: Space) -> dict[str, Plain]:
        """The fields as JSON values, with every distance written out as matrices."""
        newer = any(getattr(self, name) is not None for name in self.later)
        return {
            name: None if (value := getattr(self, name)) is None else f.plain(value, space)
            for name, f, _ in _fields(type(self))
            if newer or name not in self.later
        }

    @classmethod
    def load(cls, plain: Plain, space: Space) -> Self:
        """The record that ``plain`` wrote; KeyError where a field is missing."""
        known = [field for field in _fields(cls) if field[0] in plain or field[0] not in cls.later]
        return cls(
            **{
                name: None if (held := plain[name]) is None else f.load(held, space)
                for name, f, _ in known
            }
        )

    @classmethod
    def table(cls) -> type[Section]:
        """The pydantic model of the table in problem files, which builds the record. A field with a
        default is optional there, and a default that is a text or a truth value is shown."""
        return cls._table()

    @classmethod
    def _table(cls, check: Callable[[Any], Any] | None = None, **others: Any) -> type[Section]:
        """The table of a problem file with other keys, and a ``check`` of all together."""
        from pydantic import create_model, model_validator

        from optmech.reading.sections import Section

        class Stated(Section):
            def build(self, place: Place) -> Record:
                return cls.build(self, place)

        keys: dict[str, Any] = {"kind": (Literal[cls.kind], ...)}
        for name, found, default in _fields(cls):
            key = found.type_of_key()
            if default is MISSING:
                keys[name] = (key, ...)
            elif isinstance(default, str | bool):
                keys[name] = (key, default)
            else:
                keys[name] = (key | None, None)
        about = cleandoc(cls.__doc__ or "").partition("\n\n")[0].replace("\n", " ")
        checks: dict[str, Any] = {}
        if check is not None:
            checks["checked"] = model_validator(mode="after")(check)
        return create_model(
            cls.__name__, __base__=Stated, __doc__=about, __validators__=checks, **keys | others
        )

    @classmethod
    def build(cls, spec: Any, place: Place) -> Self:
        """The record that a validated table stands for."""
        return cls(**cls.built(spec, place))

    @classmethod
    def built(cls, spec: Any, place: Place) -> dict[str, Any]:
        """The arguments that a validated table stands for; errors name the key."""
        values = {}
        for name, found, _ in _fields(cls):
            given = getattr(spec, name)
            if given is None:
                continue
            with inside(name):
                values[name] = found.build(given, place)
        return values


def _fields(cls: type) -> list[tuple[str, Field, Any]]:
    """Name, field and default of every attribute."""
    return [(own.name, FIELDS[own.metadata[CONVERTER]], own.default) for own in fields(cls)]


GROUP = "optmech.constraints"
"""The entry points of other packages that name modules or classes of kinds."""

_KINDS: dict[str, type[Constraint]] = {}


Remarks = Sequence[tuple[str, str]]
"""Where, and what is to be said of it."""


class Kept(NamedTuple):
    """What a mechanism keeps of a promise that is a number."""

    quantity: str
    """ "epsilon", "delta", "divergence", "distortion", "leakage", "bias", "information", "loss"
    or "outside"."""
    promised: float
    measured: float
    sense: Literal["at most", "at least"] = "at most"


class Constraint(Record, ABC):
    """Something that a mechanism has to satisfy: frozen data, never algorithms.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming())
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> promise.promise(problem.space)
    'ε = ln 3, all pairs'
    >>> design = om.solve(om.Problem(problem.prior, problem.loss, constraints=[promise]))
    >>> kept = promise.measured(design.mechanism, problem.space)
    >>> print(kept.quantity, round(kept.measured, 6), kept.sense, round(kept.promised, 6))
    epsilon 1.098612 at most 1.098612
    >>> [type(family).__name__ for family in promise.families(0, problem.space)]
    ['Ratio']
    >>> promise.promised(problem.space).repeats  # n independent reports promise n times ε
    'adds'
    >>> promise.idle(problem.space), promise.notes(problem.space)  # nothing to warn of
    ([], ())
    """

    limits_loss: ClassVar[bool] = False
    """Whether a mechanism that always reports the same may be ruled out by it."""

    @property
    def title(self) -> str:
        """The kind in words."""
        return self.kind.replace("_", " ")

    @property
    def called(self) -> str:
        """The title, or the kind in words where somebody has left it empty."""
        return self.title or self.kind.replace("_", " ")

    @abstractmethod
    def families(self, index: int, space: Space) -> Iterator[Any]:
        """The inequalities of the constraint at ``index`` of its problem, as families of
        ``optmech.certificate.statement``. Raises ProblemError where a field does not fit the
        secrets or observables."""

    @abstractmethod
    def promise(self, space: Space) -> str:
        """What is asked for, in words."""

    @abstractmethod
    def measured(self, m: Mechanism, space: Space) -> Kept | None:
        """What a mechanism keeps of the promise; None where the promise is no number."""

    @abstractmethod
    def idle(self, space: Space) -> Remarks:
        """Where (``".pairs[0]"``, ``""`` for all of it) and why every mechanism satisfies it: a
        slip of the pen, and nothing is protected. Empty where it protects something, and where it
        is there for usefulness only."""

    def promised(self, space: Space) -> Promised:
        """What is promised, as data that sentences are made of. By default nothing of pairs of
        secrets, and nothing of several reports: what a kind states here it has to prove."""
        return Promised()

    def notes(self, space: Space) -> Remarks:
        """Where and what a user should know of it that is no error."""
        return ()


class ForUse(Constraint):
    """A constraint that is there for usefulness only, and protects nothing."""

    def promised(self, space: Space) -> Promised:
        return FOR_USE

    def idle(self, space: Space) -> Remarks:
        return []


C = TypeVar("C", bound=type[Constraint])


def constraint(kind: str) -> Callable[[C], C]:
    """Register a class as the kind that files call ``kind``. Raises TypeError where a part of the
    class is missing, or the name is taken."""

    def register(cls: C) -> C:
        missing = sorted(cls.__abstractmethods__)
        if missing:
            raise TypeError(f"the constraint {cls.__name__} has no {', '.join(missing)}")
        if "__dataclass_fields__" not in vars(cls):
            raise TypeError(f"the constraint {cls.__name__} is no dataclass")
        for own in fields(cast(Any, cls)):
            if own.metadata.get(CONVERTER) not in FIELDS:
                raise TypeError(f"FIELDS lacks the converter of {cls.__name__}.{own.name}")
        if kind in _KINDS:
            raise TypeError(f"two constraints are called {kind!r}")
        cls.kind = kind
        cls.measured = checked_arguments(cls.measured)  # type: ignore[method-assign]
        _KINDS[kind] = cls
        return cls

    return register


def kinds() -> dict[str, type[Constraint]]:
    """The kinds by their names in files: those of optmech, of modules that were imported, and of
    packages that were looked for."""
    return dict(_KINDS)


def find_kind(name: object) -> type[Constraint] | None:
    """The kind called so, looked for among the installed packages where it is not known yet."""
    if not isinstance(name, str):
        return None
    if name not in _KINDS:
        broken = load_installed().get(name)
        if broken is not None and name not in _KINDS:
            raise broken
    return _KINDS.get(name)


@cache
def _installed() -> EntryPoints:
    # slow to import, and seldom needed
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


@cache
def load_installed() -> dict[str, ProblemError]:
    """Import the kinds of installed packages, which name them as entry points of ``GROUP``; what
    could not be imported, by the names of the entry points."""
    broken = {}
    for point in _installed():
        try:
            point.load()
        except (Exception, SystemExit) as error:
            broken[point.name] = ProblemError(
                f"{point.value} of an installed package cannot be imported: "
                f"{type(error).__name__} {error}",
                where=f"constraint {point.name!r}",
                remedy="Update or remove that package",
            )
    return broken


def require_installed() -> None:
    """Import the kinds that are installed; raises ProblemError for the first that cannot be."""
    for broken in load_installed().values():
        raise broken


def write_constraint(stated: object, space: Space) -> Plain:
    """A constraint for a design file; ProblemError where it is none."""
    if not isinstance(stated, Constraint):
        raise ProblemError(
            f"a {type(stated).__name__} cannot be written to a file",
            where="constraints",
            remedy="Use the constraints of optmech",
        )
    if not type(stated).__module__.startswith("optmech") and stated.kind not in _installed().names:
        warnings.warn(
            f"the kind {stated.kind!r} is known in this session only, and its files are refused "
            "elsewhere: return om.Linear and om.Ratios from a function, or install its module",
            stacklevel=2,
        )
    plain = stated.plain(space)
    if not isinstance(plain, dict):
        raise ProblemError(
            f"a {type(stated).__name__} is written as {type(plain).__name__} and not as a table",
            where="constraints",
            remedy="Its method plain(space) returns a dictionary",
        )
    return {**plain, "kind": stated.kind}


def load_constraint(plain: Plain, space: Space) -> Constraint:
    """The constraint of a design file; KeyError, ProblemError where it is none."""
    cls = find_kind(plain["kind"])
    if cls is None:
        raise ProblemError(
            f"{plain['kind']!r} is no constraint",
            where="kind",
            remedy=f"Known are {', '.join(_KINDS)}; import or install the package that has it",
        )
    return cls.load(plain, space)


def idle_notes(
    constraints: Sequence[Constraint], space: Space, families: Sequence[Family]
) -> tuple[str, ...]:
    """A sentence for every constraint, or part of one, that constrains nothing whatever the
    mechanism is; ``families`` are those of all of them."""
    leading = {family.index for family in families}
    return tuple(
        f"constraints[{k}]{where} constrains nothing: {why}"
        for k, stated in enumerate(constraints)
        for where, why in stated.idle(space)
        or ([] if k in leading else [("", "it leads to no inequality")])
    )
