"""Noise as files: everything that is needed to prove it again.

A file has the promise, the loss, the law and the multipliers as whole numbers, and the claims.
Reading computes every claim anew, in exact arithmetic.
"""

from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

from optmech.base.numerals import int_of_text
from optmech.certificate.check import CheckReport
from optmech.certificate.proved import Proved, opened
from optmech.errors import ProblemError
from optmech.exact.arguments import probability, require_keys
from optmech.exact.codec import Codec, digits, exact, listing, optional, record, within, worded
from optmech.exact.number import Exact
from optmech_noise.additive.bound import (
    MOST_ORDERS,
    NoiseMultipliers,
    ShiftWindow,
    Tangents,
    at_every_order,
    order_of,
    require_bounds,
)
from optmech_noise.additive.cells import MOST_CELLS, CellNoise
from optmech_noise.additive.design import ApproximateNoise, NoiseDesign, RealNoise
from optmech_noise.additive.law import MOST_ENTRIES, Law
from optmech_noise.additive.loss import LARGEST, MOST_VALUES, NAMES, NoiseLoss, require_losses
from optmech_noise.additive.pairs import MOST_EXPONENT
from optmech_noise.additive.planar import PlanarMultipliers, PlanarNoise, shape_of
from optmech_noise.additive.planar_law import PlanarLaw, PlanarLoss, shifts_within
from optmech_noise.additive.radial import RadialNoise
from optmech_noise.additive.radial_file import RADIAL
from optmech_noise.additive.real_loss import MOST_CORNERS, PARTS, RealLoss, rational
from optmech_noise.additive.renyi import DivergenceNoise, RealRenyiNoise, RenyiNoise
from optmech_noise.additive.result import ProvedNoise
from optmech_noise.additive.rounded import WIDEST, RoundedNoise
from optmech_noise.additive.shaped import (
    MOST_PAIRS_OF,
    CurveNoise,
    Part,
    Parts,
    ShapedLaw,
    ShapedNoise,
    ShapedRealNoise,
    SidedLoss,
    require_curve,
    shaped_range,
)

Plain = Any
_PARTS: dict[str, tuple[str, ...]] = {
    "absolute": (),
    "square": (),
    "threshold": ("width",),
    "table": ("values",),
    "function": ("values", "most", "least"),
}
"""What files say of losses on whole numbers, by their names."""
LARGEST_EPSILON = 64
MOST_SENSITIVITY = 1000
MOST_RELEASES = 10_000
"""Of a promise that they keep together."""
MOST_MULTIPLIERS = 4_000_000
MOST_TOGETHER = 50_000
"""Places of noise for several releases."""
MOST_TERMS = 4_000_000
"""Places times shifts: what the decision looks at."""
MOST_POWERS = 200_000
"""The same of noise of a bounded Rényi divergence, where powers are taken."""
MOST_TANGENTS = 400_000
MOST_DIGITS = 10**9
"""Bits of all powers together."""
MOST_GROWTH = 4000
"""Of (α - 1)ε."""
MOST_PLANAR_SENSITIVITY = 40
MOST_SHAPED = 40_000_000
"""Places times multipliers of noise of any shape."""
MOST_WIDTH = 300
"""The largest radius of a window of pairs."""
MOST_PAIRS = 6_000_000
"""Places times shifts up to symmetry: what the decision about pairs looks at."""
MOST_PLANAR_DIGITS = 4 * 10**8
"""Bits of all probabilities of pairs that are compared."""


class _Bound(NamedTuple):
    order: Fraction
    epsilon: Exact


def encode(design: ProvedNoise) -> dict[str, Any]:
    """The object of a file."""
    if isinstance(design, RadialNoise):
        return design.enclosed(RADIAL.write(design))
    if isinstance(design, CurveNoise):
        return design.enclosed(_shaped(isinstance(design, CellNoise)).write(design))
    norm = getattr(design, "norm", None)
    codec = _codec(norm, isinstance(design, DivergenceNoise), isinstance(design, CellNoise))
    return design.enclosed(codec.write(design))


def decode(body: dict[str, Any], where: str) -> tuple[Proved, CheckReport]:
    """Noise from a file's object, and every claim of it recomputed."""
    if "dimension" in body:
        return opened(RADIAL, body, where)
    if "curve" in body:
        return opened(_shaped("cells" in body), body, where)
    powers = "renyi" in body or "zcdp" in body
    return opened(_codec(body.get("norm"), powers, "cells" in body), body, where)


def _codec(norm: str | None, renyi: bool, real: bool) -> Codec[Any]:
    if norm is not None:
        return _planar(norm)
    lattice = _ON_CELLS if real else _LINE
    if renyi:
        entries = record(dict, "the file", **lattice, tangents=("multipliers", _TANGENTS))
        kind = RealRenyiNoise if real else RenyiNoise
        return Codec(partial(_encode_renyi, entries), partial(_decode_renyi, kind, entries))
    grid = {"grid": within("grid", 1, MOST_SENSITIVITY)} if real else {}
    stated = {**_PROMISE, **lattice, "multipliers": _MULTIPLIERS, **grid}
    parts = record(dict, "the file", *grid, **stated)
    made = RealNoise if real else NoiseDesign
    return Codec(partial(_encode_noise, parts), partial(_decode_noise, made, parts))


def _require(condition: bool, message: str, where: str) -> None:
    if not condition:
        raise ProblemError(message, where=where)


def _encode_loss(loss: NoiseLoss) -> Plain:
    """A loss by its name, or its values."""
    known = {
        "width": loss.last - 1,
        "values": _floats(loss.values),
        "most": _floats((loss.slope, loss.curvature)),
        "least": _floats((loss.minorant.slope, loss.minorant.curvature)),
    }
    return {"name": loss.name, **{part: known[part] for part in _PARTS[loss.name]}}


def _floats(values: Sequence[Fraction]) -> list[float]:
    return [float(value) for value in values]


def _decode_loss(plain: Plain) -> NoiseLoss:
    """Also from values and the two polynomials between which a function goes on."""
    name = plain["name"]
    _require(name in tuple(_PARTS), "is no loss of noise", "loss")
    require_keys(plain, {"name", *_PARTS[name]}, "loss")
    if name in NAMES:
        return NoiseLoss.of(name, width=plain.get("width"))
    parts = {part: _losses(plain[part]) for part in _PARTS[name]}
    values = parts["values"]
    if name == "table":
        return NoiseLoss.of(_floats(values))
    most, least = parts["most"], parts["least"]
    ends = len(most) == len(least) == 2 and all(a <= b for a, b in zip(least, most, strict=True))
    _require(ends and 1 <= len(values) <= MOST_VALUES, "is no function that goes on", "loss")
    require_losses(values)
    found = (least[0], least[1]) if least != most else None
    return NoiseLoss("function", values, most[0], most[1], found)


def _losses(plain: Plain) -> tuple[Fraction, ...]:
    """Floats >= 0."""
    fits = type(plain) is list and all(type(v) is float and 0 <= v < LARGEST for v in plain)
    _require(fits, "is no loss of noise", "loss")
    return tuple(map(Fraction, plain))


def _require_decidable(design: ApproximateNoise | DivergenceNoise, most: int) -> None:
    """What can be decided in little time, and has tails that are of one kind after a shift."""
    law, sensitivity = design.law, design.steps
    # where it falls from the centre only the largest shift is looked at
    terms = (law.n + len(law.tails) + sensitivity) * (1 if law.falls else sensitivity)
    _require(design.epsilon <= LARGEST_EPSILON, f"is above {LARGEST_EPSILON}", "epsilon")
    _require(terms <= most, "has too many places for its sensitivity", "law")
    few = 0 < len(law.tails) < sensitivity
    _require(not few, "has fewer tails than the sensitivity", "law")


def _encode_noise(parts: Codec[Any], design: ApproximateNoise) -> Plain:
    several = {"releases": _RELEASES.write(design)} if design.releases > 1 else {}
    rounded = {"rounded": True} if isinstance(design, RoundedNoise) else {}
    return parts.write(design) | several | rounded


def _decode_noise(
    made: type[ApproximateNoise], entries: Codec[Any], plain: Plain
) -> ApproximateNoise:
    several = _RELEASES.read(plain.pop("releases")) if "releases" in plain else {}
    if made is RealNoise and "rounded" in plain:
        _require(plain.pop("rounded") is True, "is not true", "rounded")
        made = RoundedNoise
    design = made(**entries.read(plain), **several)
    if isinstance(design, RoundedNoise):
        _require_rounded(design)
    _require_decidable(design, MOST_TERMS)
    places = design.law.n + len(design.law.tails)
    few = design.releases == 1 or places <= MOST_TOGETHER
    _require(few, "has too many places for several releases", "law")
    parts = () if design.multipliers is None else design.multipliers.shifts
    count = sum(len(part.inner) for part in parts)
    _require(count <= MOST_MULTIPLIERS, f"are more than {MOST_MULTIPLIERS:,}", "multipliers")
    return design


def _require_rounded(design: RoundedNoise) -> None:
    """Of whole numbers, and of losses for which it is known what rounding does."""
    loss = design.measure
    fits = design.sensitivity.denominator == 1 and design.sensitivity <= WIDEST
    _require(fits, "is no whole number up to a thousand million", "sensitivity")
    known = loss.degree is not None or (loss.name == "threshold" and loss.width.denominator == 2)
    _require(known, "is not known after rounding", "loss")


def _encode_renyi(entries: Codec[Any], design: DivergenceNoise) -> Plain:
    if design.rho is not None:
        stated = {"zcdp": _CONCENTRATED.write(design)}
    else:
        rows = [_BOUND.write(_Bound(*bound)) for bound in design.bounds]
        stated = {"renyi": rows[0] if len(rows) == 1 else rows}
    return {**stated, **entries.write(design)}


def _decode_renyi(kind: type[DivergenceNoise], entries: Codec[Any], plain: Plain) -> Any:
    rho = None
    if "zcdp" in plain:
        stated = _CONCENTRATED.read(plain.pop("zcdp"))
        rho = stated["rho"]
        bounds = at_every_order(rho, stated["orders"])
    else:
        given = plain.pop("renyi")
        alone = type(given) is dict
        rows = [_BOUND.read(given)] if alone else _BOUNDS.read(given)
        _require(alone or len(rows) > 1, "are several, or one that is not in a list", "renyi")
        bounds = tuple(map(tuple, rows))
    require_bounds(bounds)
    design = kind(bounds=bounds, rho=rho, **entries.read(plain))
    _require_decidable(design, MOST_POWERS)
    law = design.law
    largest = max(max(a.numerator, a.denominator) for a, _ in bounds)
    growth = max(float(order - 1) * rate for order, rate in bounds)
    _require(growth <= MOST_GROWTH, "is too large", "epsilon")
    shifts = design.steps if rho is not None or not law.falls else 1
    terms = (law.n + len(law.tails) + design.steps) * shifts * len(bounds)
    longest = terms * (law.bits + 3 * law.ratio_bits) * largest
    _require(longest <= MOST_DIGITS, "has too many digits for its order", "law")
    if design.multipliers is not None:
        # powers are taken of the numbers and of their unit
        bits, parts = design.multipliers.bits, design.multipliers.shifts
        sizes = [(len(part.inner), max(*part.inner, *part.tail).bit_length()) for part in parts]
        count = sum(wide for wide, _ in sizes)
        _require(count <= MOST_TANGENTS, "are too many", "tangents")
        longest = sum((wide + 2) * max(bits, size) for wide, size in sizes)
        few = longest * largest <= MOST_DIGITS
        _require(few, "have too many digits for the order", "tangents")
    return design


def _decode_real_loss(plain: Plain) -> RealLoss:
    _require(plain["name"] in _REAL_LOSSES, "is no loss of noise", "loss")
    loss: RealLoss = _REAL_LOSSES[plain["name"]].read(plain)
    return loss


def _planar(norm: str) -> Codec[PlanarNoise]:
    """Of noise for pairs, in this norm."""
    width = ("n", within("width", 0, MOST_WIDTH))
    law = record(
        partial(PlanarLaw, shape_of(norm)),
        "law",
        width=width,
        bits=within("bits"),
        core=_NUMBERS,
        **_TAILS,
    )
    place = listing(within("shift"), 2)
    shift = record(
        partial(ShiftWindow, tail=()),
        "multipliers",
        shift=place,
        values=("inner", _NUMBERS),
        limit=("price", _NUMBER),
    )
    multipliers = record(
        PlanarMultipliers, "multipliers", bits=_FEW_BITS, width=width, shifts=listing(shift)
    )
    return record(
        _planar_noise,
        "the file",
        **_PROMISE,
        sensitivity=within("sensitivity", 1, MOST_PLANAR_SENSITIVITY),
        norm=Codec(str, lambda plain: plain),
        loss=("measure", _PLANAR_LOSS),
        law=law,
        multipliers=optional(multipliers),
    )


def _planar_noise(**given: Any) -> PlanarNoise:
    design = PlanarNoise(**given)
    law, sensitivity = design.law, design.sensitivity
    places = (2 * (law.n + sensitivity) + 1) ** 2
    shifts = len(shifts_within(design.norm, sensitivity))
    blocks = -(-sensitivity // len(law.tails)) + 2 if law.tails else 0
    longest = places * (law.bits + blocks * law.ratio_bits)
    _require(design.epsilon <= LARGEST_EPSILON, f"is above {LARGEST_EPSILON}", "epsilon")
    _require(places * shifts <= MOST_PAIRS, "has too many places for its sensitivity", "law")
    _require(longest <= MOST_PLANAR_DIGITS, "has too many digits for its places", "law")
    _require(len(law.tails) <= sensitivity, "has more tails than the sensitivity", "law")
    if (found := design.multipliers) is not None:
        work = (2 * (found.n + sensitivity) + 1) ** 2 * len(found.shifts)
        _require(work <= MOST_PAIRS, "are too many", "multipliers")
    return design


def _decode_planar_loss(plain: Plain) -> PlanarLoss:
    stated = {name: value for name, value in plain.items() if name != "norm"}
    return PlanarLoss(_decode_loss(stated), plain["norm"])


def _shaped(real: bool) -> Codec[Any]:
    """Of noise of any shape."""
    made = ShapedRealNoise if real else ShapedNoise
    lattice = _ON_CELLS if real else _LINE | {"loss": ("measure", _SIDES), "support": _SUPPORT}
    entries = {"curve": _CURVE, **lattice, "law": _SHAPED_LAW, "multipliers": _PARTS_OF}
    return record(partial(_shaped_noise, made), "the file", **entries)


def _shaped_noise(made: Any, **given: Any) -> Any:
    require_curve(given["curve"])
    design = made(**given)
    law, rates = design.law, [rate for rate, _ in design.curve]
    _require(rates[-1] <= LARGEST_EPSILON, f"is above {LARGEST_EPSILON}", "curve")
    terms = (law.count + design.steps) * design.steps * len(rates)
    _require(terms <= MOST_TERMS, "has too many places for its sensitivity", "law")
    _require(made is ShapedNoise or law.is_even, "is not even", "law")
    if (found := design.multipliers) is None:
        return design
    loss = design.measure
    even = made is ShapedRealNoise or (loss.is_even and design.support == (None, None))
    _require(even or not found.even, "are not of even noise", "multipliers")
    for part in found.parts:
        known = part.bound < len(rates) and abs(part.shift) <= design.steps
        _require(known, "has a bound or a shift that is none", "multipliers")
    every = found.every
    count = sum(len(part.inner) for part in found.parts)
    _require(count <= MOST_MULTIPLIERS, f"are more than {MOST_MULTIPLIERS:,}", "multipliers")
    low, high = shaped_range(design.minorant, design.steps, design.support, every)
    work = (high - low) * max(1, len(every))
    _require(work <= MOST_SHAPED and low <= high, "span too many places", "multipliers")
    return design


def _decode_sides(plain: Plain) -> SidedLoss:
    if "name" in plain:
        both = _decode_loss(plain)
        return SidedLoss(both, both)
    require_keys(plain, {"below", "above"}, "loss")
    found = SidedLoss(_decode_loss(plain["below"]), _decode_loss(plain["above"]))
    _require(not found.is_even, "is written as two where it is one", "loss")
    return found


def _encode_sides(loss: SidedLoss) -> Plain:
    if loss.is_even:
        return _encode_loss(loss.above)
    return {"below": _encode_loss(loss.below), "above": _encode_loss(loss.above)}


def _truth(plain: Plain) -> bool:
    _require(plain is True or plain is False, "is neither true nor false", "even")
    return bool(plain)


_NUMBER = digits(1201)
_NUMBERS = listing(_NUMBER, most=2 * MOST_ENTRIES)
_FEW_BITS = within("bits", 0, 4096)
_PROMISE: dict[str, Codec[Any]] = {
    "epsilon": exact("epsilon"),
    "delta": exact("delta", probability),
}
_TAILS: dict[str, Codec[Any]] = {
    "tails": _NUMBERS,
    "ratio": _NUMBER,
    "ratio_bits": within("ratio_bits"),
}
_PLANAR_LOSS = Codec(
    lambda loss: _encode_loss(loss.loss) | {"norm": loss.norm},
    _decode_planar_loss,
)
_SHIFT = {"shift": within("shift", 1, MOST_SENSITIVITY)}
_LINE: dict[str, Any] = {
    "sensitivity": within("sensitivity", 1, MOST_SENSITIVITY),
    "loss": ("measure", Codec(_encode_loss, _decode_loss)),
    "law": record(Law, "law", bits=within("bits"), window=_NUMBERS, **_TAILS),
}
_SHIFT_MULTIPLIERS = record(
    ShiftWindow,
    "multipliers",
    **_SHIFT,
    inner=_NUMBERS,
    tail=listing(_NUMBER, 3),
    limit=("price", _NUMBER),
)
_MULTIPLIERS = optional(
    record(NoiseMultipliers, "multipliers", bits=_FEW_BITS, shifts=listing(_SHIFT_MULTIPLIERS))
)
_FRACTION = worded(partial(rational, where="the file", positive=False), "the file")
_CORNERS = listing(listing(_FRACTION, 2), most=MOST_CORNERS)
_REAL_PARTS: dict[str, Codec[Any]] = {
    "width": _FRACTION,
    "corners": _CORNERS,
    "most": listing(_FRACTION, 2),
}
_REAL_LOSSES = {
    name: record(RealLoss, "loss", name=Codec(str, str), **{k: _REAL_PARTS[k] for k in parts})
    for name, parts in PARTS.items()
}
_ON_CELLS: dict[str, Any] = {
    "sensitivity": worded(partial(rational, where="the file"), "the file"),
    "cells": within("cells", 1, MOST_CELLS),
    "loss": ("measure", Codec(lambda loss: _REAL_LOSSES[loss.name].write(loss), _decode_real_loss)),
    "law": _LINE["law"],
}
_END = within("support", -(10**9), 10**9)
_SUPPORT = listing(optional(_END), 2)
_SIDES = Codec(_encode_sides, _decode_sides)
_PAIR = (exact("curve"), exact("curve", probability))
_CURVE = listing(
    Codec(
        lambda pair: [pair[0].text, pair[1].text],
        lambda plain: tuple(_PAIR[k].read(v) for k, v in zip((0, 1), plain, strict=True)),
    ),
    most=MOST_PAIRS_OF,
)
_SHAPED_LAW = record(ShapedLaw, "law", bits=within("bits"), low=_END, masses=_NUMBERS)
_PARTS_OF = optional(
    record(
        Parts,
        "multipliers",
        bits=_FEW_BITS,
        even=Codec(bool, _truth),
        parts=listing(
            record(
                Part,
                "multipliers",
                bound=within("bound", 0, MOST_PAIRS_OF - 1),
                shift=within("shift", -MOST_CELLS, MOST_CELLS),
                first=_END,
                inner=_NUMBERS,
                tail=_NUMBER,
                limit=("price", _NUMBER),
            )
        ),
    )
)
_RELEASES = record(
    dict,
    "releases",
    count=("releases", within("releases", 2, MOST_RELEASES)),
    exponent=within("exponent", 0, MOST_EXPONENT),
)
_ORDER = worded(order_of, "renyi")
_BOUND = record(_Bound, "renyi", order=_ORDER, epsilon=exact("epsilon"))
_BOUNDS = listing(_BOUND, most=MOST_ORDERS)
_CONCENTRATED = record(dict, "zcdp", rho=exact("rho"), orders=listing(_ORDER, most=MOST_ORDERS))
_SHIFT_TANGENTS = record(
    ShiftWindow,
    "tangents",
    "bound",
    **_SHIFT,
    price=_NUMBER,
    inner=_NUMBERS,
    tail=listing(_NUMBER, 2),
    bound=within("bound", 1, MOST_ORDERS - 1),
)
_TANGENTS = optional(
    record(
        Tangents,
        "tangents",
        bits=_FEW_BITS,
        price_bits=within("price_bits", 0, 4096),
        shifts=listing(_SHIFT_TANGENTS),
    )
)


def sampled(path: str, text: str, count: int, seed: int | None) -> list[Hashable]:
    """The number that a text states, or as many as the noise in a file is for, with noise,
    ``count`` times. Raises what ``ProvedNoise.load`` raises, and ProblemError without them."""
    design = ProvedNoise.load(path)
    if isinstance(design, RadialNoise):
        return list(design.release(text.split(","), count, seed=seed))
    if isinstance(design, CellNoise) and not isinstance(design, RoundedNoise):
        released: Any = design.release(text, count, seed=seed)
        return list(map(float, released))
    planar = isinstance(design, PlanarNoise)
    try:
        values = [int_of_text(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 1 + planar:
        raise ProblemError(
            f"{text[:60]!r} is no {'pair of whole numbers' if planar else 'whole number'}",
            remedy="Give what the noise is added to" + (": X,Y" if planar else ""),
        )
    if isinstance(design, RoundedNoise):
        return list(design.release(values[0], count, seed=seed))
    noise = design.drawn(count, seed).reshape(count, len(values)).tolist()
    drawn = [tuple(v + n for v, n in zip(values, row, strict=True)) for row in noise]
    return [pair if planar else pair[0] for pair in drawn]
