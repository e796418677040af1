"""Noise as files: everything that is needed to prove it again.

A file has the promise, the loss, the law and the multipliers as whole numbers, and the claims.
Reading computes every claim anew, in exact arithmetic.
"""

from collections.abc import Hashable
from fractions import Fraction
from typing import Any, NamedTuple

from optmech.base.numerals import int_of_text
from optmech.certificate.check import CheckReport
from optmech.certificate.proved import Proved, opened
from optmech.errors import ProblemError
from optmech.exact.codec import Codec, exact, listing, optional, record, within, worded
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
from optmech_noise.additive.cells import CellNoise
from optmech_noise.additive.design import ApproximateNoise, NoiseDesign, RealNoise
from optmech_noise.additive.entries import (
    FEW_BITS,
    LINE,
    MOST_SENSITIVITY,
    MOST_TERMS,
    NUMBER,
    NUMBERS,
    ON_CELLS,
    PROMISE,
    Plain,
    demand,
    demand_few,
    demand_small,
)
from optmech_noise.additive.pairs import MOST_EXPONENT
from optmech_noise.additive.planar import PlanarNoise
from optmech_noise.additive.planar_file import PLANAR
from optmech_noise.additive.radial import RadialNoise
from optmech_noise.additive.radial_file import RADIAL
from optmech_noise.additive.renyi import DivergenceNoise, RealRenyiNoise, RenyiNoise
from optmech_noise.additive.result import ProvedNoise
from optmech_noise.additive.rounded import WIDEST, RoundedNoise
from optmech_noise.additive.shaped_file import shaped_codec

MOST_RELEASES = 10_000
"""Of a promise that they keep together."""
MOST_TOGETHER = 50_000
"""Places of noise for several releases."""
MOST_POWERS = 200_000
"""The same of noise of a bounded Rényi divergence, where powers are taken."""
MOST_TANGENTS = 400_000
MOST_DIGITS = 10**9
"""Bits of all powers together."""
MOST_GROWTH = 4000
"""Of (α - 1)ε."""


class _Bound(NamedTuple):
    order: Fraction
    epsilon: Exact


def encode(design: ProvedNoise) -> dict[str, Any]:
    """The object of a file."""
    return design.enclosed(_codec(vars(design)).write(design))


def decode(body: dict[str, Any], where: str) -> tuple[Proved, CheckReport]:
    """Noise from a file's object, and every claim of it recomputed."""
    return opened(_codec(body), body, where)


def _codec(held: dict[str, Any]) -> Codec[Any]:
    """Of noise that has these entries, or these fields."""
    real = "cells" in held
    if "dimension" in held:
        return RADIAL
    if "curve" in held:
        return shaped_codec(real)
    if "norm" in held:
        return PLANAR
    powers = {"renyi", "zcdp", "bounds"} & set(held)
    return _renyi_codec(real) if powers else _noise_codec(real)


def _require_decidable(design: ApproximateNoise | DivergenceNoise, most: int) -> None:
    """What can be decided in little time, and has tails that are of one kind after a shift."""
    law, sensitivity = design.law, design.steps
    # where it falls from the centre only the largest shift is looked at
    terms = (law.n + len(law.tails) + sensitivity) * (1 if law.falls else sensitivity)
    demand_small(design.epsilon)
    demand(terms <= most, "has too many places for its sensitivity", "law")
    few = 0 < len(law.tails) < sensitivity
    demand(not few, "has fewer tails than the sensitivity", "law")


def _noise_codec(real: bool) -> Codec[Any]:
    """Of noise for ε, or ε and δ."""
    grid = {"grid": within("grid", 1, MOST_SENSITIVITY)} if real else {}
    stated = {**PROMISE, **(ON_CELLS if real else LINE), "multipliers": _MULTIPLIERS, **grid}
    entries = record(dict, "the file", *grid, **stated)

    def write(design: ApproximateNoise) -> Plain:
        several = {"releases": _RELEASES.write(design)} if design.releases > 1 else {}
        rounded = {"rounded": True} if isinstance(design, RoundedNoise) else {}
        return entries.write(design) | several | rounded

    def read(plain: Plain) -> ApproximateNoise:
        made: type[ApproximateNoise] = RealNoise if real else NoiseDesign
        several = _RELEASES.read(plain.pop("releases")) if "releases" in plain else {}
        if real and "rounded" in plain:
            demand(plain.pop("rounded") is True, "is not true", "rounded")
            made = RoundedNoise
        design = made(**entries.read(plain), **several)
        if isinstance(design, RoundedNoise):
            _require_rounded(design)
        _require_decidable(design, MOST_TERMS)
        places = design.law.n + len(design.law.tails)
        few = design.releases == 1 or places <= MOST_TOGETHER
        demand(few, "has too many places for several releases", "law")
        demand_few(() if design.multipliers is None else design.multipliers.shifts)
        return design

    return Codec(write, read)


def _require_rounded(design: RoundedNoise) -> None:
    """Of whole numbers, and of losses for which it is known what rounding does."""
    loss = design.measure
    fits = design.sensitivity.denominator == 1 and design.sensitivity <= WIDEST
    demand(fits, "is no whole number up to a thousand million", "sensitivity")
    known = loss.degree is not None or (loss.name == "threshold" and loss.width.denominator == 2)
    demand(known, "is not known after rounding", "loss")


def _renyi_codec(real: bool) -> Codec[Any]:
    """Of noise for bounded divergences."""
    lattice = ON_CELLS if real else LINE
    entries = record(dict, "the file", **lattice, tangents=("multipliers", _TANGENTS))
    made: type[DivergenceNoise] = RealRenyiNoise if real else RenyiNoise

    def write(design: DivergenceNoise) -> Plain:
        if design.rho is not None:
            stated = {"zcdp": _CONCENTRATED.write(design)}
        else:
            rows = [_BOUND.write(_Bound(*bound)) for bound in design.bounds]
            stated = {"renyi": rows[0] if len(rows) == 1 else rows}
        return {**stated, **entries.write(design)}

    def read(plain: Plain) -> Any:
        rho = None
        if "zcdp" in plain:
            stated = _CONCENTRATED.read(plain.pop("zcdp"))
            rho = stated["rho"]
            bounds = at_every_order(rho, stated["orders"])
        else:
            given = plain.pop("renyi")
            alone = type(given) is dict
            rows = [_BOUND.read(given)] if alone else _BOUNDS.read(given)
            demand(alone or len(rows) > 1, "are several, or one that is not in a list", "renyi")
            bounds = tuple(map(tuple, rows))
        require_bounds(bounds)
        design = made(bounds=bounds, rho=rho, **entries.read(plain))
        _require_decidable(design, MOST_POWERS)
        law = design.law
        largest = max(max(a.numerator, a.denominator) for a, _ in bounds)
        growth = max(float(order - 1) * rate for order, rate in bounds)
        demand(growth <= MOST_GROWTH, "is too large", "epsilon")
        shifts = design.steps if rho is not None or not law.falls else 1
        terms = (law.n + len(law.tails) + design.steps) * shifts * len(bounds)
        longest = terms * (law.bits + 3 * law.ratio_bits) * largest
        demand(longest <= MOST_DIGITS, "has too many digits for its order", "law")
        if design.multipliers is not None:
            # powers are taken of the numbers and of their unit
            bits, parts = design.multipliers.bits, design.multipliers.shifts
            sizes = [(len(part.inner), max(*part.inner, *part.tail).bit_length()) for part in parts]
            count = sum(wide for wide, _ in sizes)
            demand(count <= MOST_TANGENTS, "are too many", "tangents")
            longest = sum((wide + 2) * max(bits, size) for wide, size in sizes)
            few = longest * largest <= MOST_DIGITS
            demand(few, "have too many digits for the order", "tangents")
        return design

    return Codec(write, read)


_SHIFT = {"shift": within("shift", 1, MOST_SENSITIVITY)}
_SHIFT_MULTIPLIERS = record(
    ShiftWindow,
    "multipliers",
    **_SHIFT,
    inner=NUMBERS,
    tail=listing(NUMBER, 3),
    limit=("price", NUMBER),
)
_MULTIPLIERS = optional(
    record(NoiseMultipliers, "multipliers", bits=FEW_BITS, shifts=listing(_SHIFT_MULTIPLIERS))
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
    price=NUMBER,
    inner=NUMBERS,
    tail=listing(NUMBER, 2),
    bound=within("bound", 1, MOST_ORDERS - 1),
)
_TANGENTS = optional(
    record(
        Tangents,
        "tangents",
        bits=FEW_BITS,
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
