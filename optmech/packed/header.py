"""What a packed file says of itself, beside places and numbers: entries of its header, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.arguments import require_keys
from optmech.exact.codec import Codec, listing, one_of, optional, record
from optmech.packed.cbor import typed, untyped

Plain = Any
BEST_GUESS = "The best guess from one report"
"""How a sentence begins."""
OUTSIDE = ("refuse", "nearest")
_NEAR = 1e-9
DIGEST = 32
"""Bytes of SHA-256."""
COMMON = {
    "title", "protects", "does not promise", "constraints", "region", "prior", "loss", "design",
    "outside", "accuracy",
}  # fmt: skip
"""Entries of the header of files of every format."""


@dataclass(frozen=True)
class Loss:
    """What the mechanism costs: the ``design``'s value of the objective, that of the ``packed``
    numbers (rounded to the safe side), and the relative ``increase``."""

    objective: str
    design: float
    packed: float
    increase: float


@dataclass(frozen=True)
class Accuracy:
    """For every column the ``radius`` within which the secret lies with probability ``quantile``,
    given that report, under the design's prior."""

    quantile: float
    radius: tuple[float, ...]


@dataclass(frozen=True)
class Header(ReadOnly):
    """What a packed file says of itself, beside places and numbers."""

    title: str
    protects: tuple[str, ...]
    does_not_promise: tuple[str, ...]
    constraints: tuple[dict[str, Any], ...]
    region: str
    prior: str
    prior_date: str | None
    loss: Loss
    design: str
    """SHA-256 of the design's problem and mechanism, in hexadecimal digits."""
    outside: str
    reach: float | None
    accuracy: Accuracy | None
    snap: float | None = None
    """How far positions are moved before a draw, at most; of mechanisms for every point only."""

    @property
    def guess(self) -> str:
        """The sentence about the best guess from a report; empty where there is none."""
        said = (text for text in self.does_not_promise if text.startswith(BEST_GUESS))
        return next(said, "")


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
    return (entry.quantile, entry.radius) if isinstance(entry, Accuracy) else (None, [entry])


def _spelled(value: object) -> str:
    """An entry as text, in which 0.0 and -0.0 differ."""
    if isinstance(value, tuple):
        return repr([sorted(part.items()) if isinstance(part, dict) else part for part in value])
    return repr(value)


def header_entries(header: Header) -> dict[str, Plain]:
    """The entries that files of every format have."""
    prior = {"words": header.prior, "date": header.prior_date}
    return {**_ENTRIES.write(header), "prior": prior}


def read_header(body: Plain, columns: int) -> Header:
    """The header of a file with as many ``columns``. Raises ProblemError on an entry of another
    type or out of its range; the caller has checked the keys of ``body``."""
    entries = _ENTRIES.read({name: body[name] for name in COMMON - {"prior"}})
    prior, accuracy = body["prior"], entries["accuracy"]
    require_keys(prior, {"words", "date"}, "prior")
    if accuracy is not None and len(accuracy.radius) != columns:
        said = f"{len(accuracy.radius)} radii for {columns} columns"
        raise ProblemError(said, where="accuracy")
    return Header(
        **entries,
        prior=_text("prior").read(prior["words"]),
        prior_date=optional(_text("prior")).read(prior["date"]),
        reach=_length("reach").read(body.get("reach")),
        snap=_length("snap").read(body.get("snap")),
    )


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


def _length(where: str) -> Codec[float | None]:
    return optional(_value(float, where, lambda length: length >= 0, "is below 0"))


def _radii(plain: Plain) -> tuple[float, ...]:
    radius = untyped(plain, 86)
    if (radius < 0).any():
        raise ProblemError("has a number below 0", where="accuracy")
    return tuple(radius.tolist())


_CONSTRAINT = record(
    dict,
    "constraints",
    **dict.fromkeys(("kind", "promise", "per"), _text("constraints")),
    epsilon=optional(
        _value(float, "constraints", lambda epsilon: epsilon >= 0, "has an ε below 0")
    ),
)
_FIGURE = _value(float, "loss")
_LOSS = record(
    Loss, "loss", objective=_text("loss"), design=_FIGURE, packed=_FIGURE, increase=_FIGURE
)
_SHARE = _value(float, "quantile", lambda share: 0 < share < 1, "is not between 0 and 1")
_RADII = Codec(lambda radius: typed(list(radius), 86), _radii)
_ACCURACY = record(Accuracy, "accuracy", quantile=_SHARE, radius=_RADII)
_DIGEST = _value(bytes, "design", lambda digest: len(digest) == DIGEST, "is no digest")
_ENTRIES = record(
    dict,
    "header",
    title=_text("title"),
    protects=listing(_text("protects")),
    constraints=listing(Codec(dict, _CONSTRAINT.read)),
    region=_text("region"),
    loss=_LOSS,
    design=Codec(bytes.fromhex, lambda plain: _DIGEST.read(plain).hex()),
    outside=one_of("outside", OUTSIDE),
    accuracy=optional(_ACCURACY),
    **{"does not promise": ("does_not_promise", listing(_text("does not promise")))},
)
