"""What a packed file says of itself, beside places and numbers: entries of its header, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.codec import Codec, listing, one_of, optional, record
from optmech.problem.promised import Course, Measure, Pairs, Repeats, Scope
from optmech_devices.packed.cbor import typed, untyped

Plain = Any
OUTSIDE = ("refuse", "nearest")
OBJECTIVES = (
    "expected_loss", "worst_loss", "maximize_distortion", "minimize_leakage", "mean_distance",
)  # fmt: skip
_NEAR = 1e-9
DIGEST = 32
"""Bytes of SHA-256."""
COMMON = {"kind", "title", "promises", "prior", "loss", "design", "outside", "accuracy"}
"""Entries of the header of files of every kind."""
Value = str | int | float | bool
SCOPES, PAIRS, COURSES, REPEATS = map(get_args, (Scope, Pairs, Course, Repeats))


@dataclass(frozen=True)
class Clause:
    """What one constraint of the design promises, as data (``optmech.problem.promised``)."""

    kind: str
    scope: Scope
    pairs: Pairs
    limit: float | None
    """Of "near" and "reached" pairs, in the unit of ``measure``."""
    measure: Measure | None
    epsilon: float | None
    """Of ratios e^(ε d), rounded up; None where the promise is of another form."""
    delta: float | None
    """Rounded up; None where it is 0, or there is none."""
    bound: float | None
    """What promises of other forms limit, rounded to the safe side."""
    repeats: Repeats
    details: dict[str, Value]
    """Whatever else its sentence needs."""

    @property
    def is_per_distance(self) -> bool:
        """Whether ε is per ``measure``, and not the same for all pairs up to ``limit``."""
        return self.measure is not None and self.kind != "differential_privacy"

    @property
    def ratio(self) -> float | None:
        """ε where all pairs have the ratio e^(ε d), without a δ: what odds rest on."""
        return self.epsilon if self.delta is None and self.pairs == "all" else None


@dataclass(frozen=True)
class Beliefs:
    """The prior of the design: how many ``places`` it is about, its ``entropy`` in bits, and how
    often the best guess of one is right: from one report (``seen``) and from none (``blind``)."""

    places: int
    entropy: float
    seen: float
    blind: float
    date: str | None


@dataclass(frozen=True)
class Loss:
    """What the mechanism costs: the ``design``'s value of the objective, that of the ``packed``
    numbers (rounded to the safe side), and the relative ``increase``."""

    objective: str
    """One of ``OBJECTIVES``."""
    design: float
    packed: float
    increase: float

    @property
    def name(self) -> str:
        """The objective in words."""
        return self.objective.replace("_", " ")


@dataclass(frozen=True)
class Accuracy:
    """For every column the ``radius`` within which the secret lies with probability ``quantile``,
    given that report, under the design's prior."""

    quantile: float
    radius: tuple[float, ...]


@dataclass(frozen=True)
class Header(ReadOnly):
    """What a packed file says of itself, beside places and numbers: data, of which sentences are
    made (``optmech_devices.packed.sentences``)."""

    title: str
    promises: tuple[Clause, ...]
    prior: Beliefs | None
    """None of a file for the whole earth, which uses none."""
    loss: Loss
    design: str
    """SHA-256 of the design's problem and mechanism, in hexadecimal digits."""
    outside: str
    reach: float | None
    accuracy: Accuracy | None
    snap: float | None = None
    """How far positions are moved before a draw, at most; of mechanisms for every point only."""

    @property
    def rate(self) -> float | None:
        """The largest ε of ratios; None where there is none."""
        return max((c.epsilon for c in self.promises if c.epsilon is not None), default=None)


def differing(
    said: Header, proper: Header, nearly: tuple[type, ...], least: float = 0.0
) -> Iterator[str]:
    """The names of entries in which two headers differ; those of the types ``nearly`` in figures,
    by more than ``least`` and what cosines of machines do."""
    for name, value in vars(proper).items():
        own = getattr(said, name)
        if type(own) is type(value) and isinstance(value, nearly):
            (one, x), (other, y) = _figures(own), _figures(value)
            near = len(x) == len(y) and np.allclose(x, y, rtol=_NEAR, atol=least)
            same = one == other and near
        else:
            same = _spelled(own) == _spelled(value)
        if not same:
            yield name.replace("_", " ")


def _figures(entry: Any) -> tuple[object, Sequence[float]]:
    """What has to be equal, and what only nearly."""
    if isinstance(entry, Loss):
        return entry.objective, [entry.design, entry.packed, entry.increase]
    if isinstance(entry, Beliefs):
        return (entry.places, entry.date), [entry.entropy, entry.seen, entry.blind]
    return (entry.quantile, entry.radius) if isinstance(entry, Accuracy) else (None, [entry])


def _spelled(value: object) -> str:
    """An entry as text, in which 0.0 and -0.0 differ."""
    if isinstance(value, tuple):
        return repr([_CLAUSE.write(part) for part in value])
    return repr(value)


def header_entries(header: Header) -> dict[str, Plain]:
    """The entries that files of every kind have, but for the kind."""
    return _ENTRIES.write(header)  # type: ignore[no-any-return]


def read_header(body: Plain, columns: int) -> Header:
    """The header of a file with as many ``columns``. Raises ProblemError on an entry of another
    type or out of its range; the caller has checked the keys of ``body``."""
    entries = _ENTRIES.read({name: body[name] for name in COMMON - {"kind"}})
    accuracy = entries["accuracy"]
    if accuracy is not None and len(accuracy.radius) != columns:
        said = f"{len(accuracy.radius)} radii for {columns} columns"
        raise ProblemError(said, where="accuracy")
    reach, snap = (optional(_amount(name)).read(body.get(name)) for name in ("reach", "snap"))
    return Header(**entries, reach=reach, snap=snap)


def _value(
    kind: Callable[..., Any],
    where: str,
    fits: Callable[[Any], object] = lambda value: True,
    fault: str = "",
) -> Codec[Any]:
    """A value of just that type, that ``fits`` or has a ``fault``."""

    def read(plain: Plain) -> Any:
        if type(plain) is not kind:
            said = f"has a {type(plain).__name__} where another value belongs"
            raise ProblemError(said, where=where)
        if not fits(plain):
            raise ProblemError(fault, where=where)
        return plain

    return Codec(kind, read)


def _text(where: str) -> Codec[str]:
    return _value(str, where)


def _amount(where: str) -> Codec[float]:
    return _value(float, where, lambda amount: amount >= 0, "is below 0")


def _radii(plain: Plain) -> tuple[float, ...]:
    radius = untyped(plain, 86)
    if (radius < 0).any():
        raise ProblemError("has a number below 0", where="accuracy")
    return tuple(radius.tolist())


def _details(plain: Plain) -> dict[str, Value]:
    known = type(plain) is dict and all(type(name) is str for name in plain)
    if not known or not all(type(value) in (str, int, float, bool) for value in plain.values()):
        raise ProblemError("has details that are none", where="promises")
    if any(type(value) is int and not 0 <= value < MOST_COUNT for value in plain.values()):
        raise ProblemError("has a number that counts nothing", where="promises")
    return dict(plain)


MOST_COUNT = 2**32
_WHERE = "promises"
_MEASURE = record(
    Measure, _WHERE, name=_text(_WHERE), unit=_text(_WHERE), course=one_of(_WHERE, COURSES)
)
_CLAUSE = record(
    Clause,
    _WHERE,
    kind=_text(_WHERE),
    scope=one_of(_WHERE, SCOPES),
    pairs=one_of(_WHERE, PAIRS),
    limit=optional(_amount(_WHERE)),
    measure=optional(_MEASURE),
    epsilon=optional(_amount(_WHERE)),
    delta=optional(_amount(_WHERE)),
    bound=optional(_value(float, _WHERE)),
    repeats=one_of(_WHERE, REPEATS),
    details=Codec(lambda details: dict(sorted(details.items())), _details),
)
_COUNT = _value(int, "prior", lambda count: 0 < count < MOST_COUNT, "is about no places")
_BELIEFS = record(
    Beliefs,
    "prior",
    places=_COUNT,
    entropy=_amount("prior"),
    seen=_amount("prior"),
    blind=_amount("prior"),
    date=optional(_text("prior")),
)
_FIGURE = _value(float, "loss")
_LOSS = record(
    Loss,
    "loss",
    objective=one_of("loss", OBJECTIVES),
    design=_FIGURE,
    packed=_FIGURE,
    increase=_FIGURE,
)
_SHARE = _value(float, "quantile", lambda share: 0 < share < 1, "is not between 0 and 1")
_RADII = Codec(lambda radius: typed(list(radius), 86), _radii)
_ACCURACY = record(Accuracy, "accuracy", quantile=_SHARE, radius=_RADII)
_DIGEST = _value(bytes, "design", lambda digest: len(digest) == DIGEST, "is no digest")
_ENTRIES = record(
    dict,
    "header",
    title=_text("title"),
    promises=listing(_CLAUSE),
    prior=optional(_BELIEFS),
    loss=_LOSS,
    design=Codec(bytes.fromhex, lambda plain: _DIGEST.read(plain).hex()),
    outside=one_of("outside", OUTSIDE),
    accuracy=optional(_ACCURACY),
)
