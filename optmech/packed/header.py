"""What a packed file says of itself, beside places and numbers: entries of its header, checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys
from optmech.packed.cbor import typed, untyped

Plain = Any
OUTSIDE = ("refuse", "nearest")
_FIGURES = ("design", "packed", "increase")
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


def header_entries(header: Header) -> dict[str, Plain]:
    """The entries that files of every format have."""
    accuracy = header.accuracy
    return {
        "title": header.title,
        "protects": list(header.protects),
        "does not promise": list(header.does_not_promise),
        "constraints": list(header.constraints),
        "region": header.region,
        "prior": {"words": header.prior, "date": header.prior_date},
        "loss": vars(header.loss),
        "design": bytes.fromhex(header.design),
        "outside": header.outside,
        "accuracy": None
        if accuracy is None
        else {"quantile": accuracy.quantile, "radius": typed(list(accuracy.radius), 86)},
    }


def read_header(body: Plain, columns: int) -> Header:
    """The header of a file with as many ``columns``. Raises ProblemError on an entry of another
    type or out of its range; the caller has checked the keys of ``body``."""
    prior, loss, accuracy = body["prior"], body["loss"], body["accuracy"]
    require_keys(prior, {"words", "date"}, "prior")
    require_keys(loss, {"objective", *_FIGURES}, "loss")
    if accuracy is not None:
        accuracy = _accuracy(accuracy, columns)
    if body["outside"] not in OUTSIDE:
        raise ProblemError("is neither refuse nor nearest", where="outside")
    if len(of_type(bytes, body["design"], "design")) != DIGEST:
        raise ProblemError("is no digest", where="design")
    figures = {name: of_type(float, loss[name], "loss") for name in _FIGURES}
    stated = of_type(list, body["constraints"], "constraints")
    return Header(
        title=of_type(str, body["title"], "title"),
        protects=_texts(body["protects"], "protects"),
        does_not_promise=_texts(body["does not promise"], "does not promise"),
        constraints=tuple(map(_constraint, stated)),
        region=of_type(str, body["region"], "region"),
        prior=of_type(str, prior["words"], "prior"),
        prior_date=None if prior["date"] is None else of_type(str, prior["date"], "prior"),
        loss=Loss(of_type(str, loss["objective"], "loss"), **figures),
        design=body["design"].hex(),
        outside=body["outside"],
        reach=_length(body.get("reach"), "reach"),
        accuracy=accuracy,
        snap=_length(body.get("snap"), "snap"),
    )


def _accuracy(plain: Plain, columns: int) -> Accuracy:
    require_keys(plain, {"quantile", "radius"}, "accuracy")
    radius = untyped(plain["radius"], 86)
    if (radius < 0).any():
        raise ProblemError("has a number below 0", where="accuracy")
    if len(radius) != columns:
        raise ProblemError(f"{len(radius)} radii for {columns} columns", where="accuracy")
    quantile = of_type(float, plain["quantile"], "quantile")
    if not 0 < quantile < 1:
        raise ProblemError("is not between 0 and 1", where="quantile")
    return Accuracy(quantile, tuple(radius.tolist()))


def _constraint(plain: Plain) -> dict[str, Any]:
    require_keys(plain, {"kind", "promise", "epsilon", "per"}, "constraints")
    for name in ("kind", "promise", "per"):
        of_type(str, plain[name], "constraints")
    if plain["epsilon"] is not None and not of_type(float, plain["epsilon"], "constraints") >= 0:
        raise ProblemError("has an ε below 0", where="constraints")
    return dict(plain)


def _length(plain: Plain, where: str) -> float | None:
    found: float | None = None if plain is None else of_type(float, plain, where)
    if found is not None and found < 0:
        raise ProblemError("is below 0", where=where)
    return found


def of_type(kind: Callable[..., Any], value: Plain, where: str) -> Any:
    """The value, where it is of that type exactly; else ProblemError."""
    if type(value) is not kind:
        raise ProblemError(f"has a {type(value).__name__} where another value belongs", where=where)
    return value


def _texts(value: Plain, where: str) -> tuple[str, ...]:
    return tuple(of_type(str, part, where) for part in of_type(list, value, where))
