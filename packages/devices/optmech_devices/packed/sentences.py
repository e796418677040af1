"""What a packed file says in plain words: sentences made of the data in its header, and of its
places. The client in JavaScript has the same table (``client/sentences.js``)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Literal

from optmech.base.arrays import Floats
from optmech.designs.promise import (
    Promise,
    at_every_point,
    between,
    per_words,
    repeats_words,
    sticky_words,
)
from optmech.designs.stated import Stated
from optmech.exact.number import parse_exact
from optmech.problem.promised import Measure, Promised
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech_devices.packed.header import Beliefs, Clause, Header

Form = Literal["labels", "places", "region", "globe", "line", "roads", "earth"]
"""Where a mechanism reports from: places without coordinates or with them, every point of a region
of the plane or of degrees, of a line, of roads, or of the earth."""
NOT_CHECKED = ("title", "date of the prior", "whether positions outside are refused")
"""What a file says by itself: no design decides it."""

CLAUSES: dict[str, tuple[str, ...]] = {
    "metric_privacy": (
        "ε = {epsilon}", " per {per}", "{?everywhere}, at every point",
        ", for secrets up to {near} apart", ", where reports are up to {reached} away",
        "{?finite}, for the pairs at a finite distance", ", δ = {delta}",
    ),
    "differential_privacy": (
        "ε = {epsilon}", "{?everywhere}, at every point", ", for secrets up to {near} apart",
        ", number of pairs: {listed}", ", δ = {delta}",
    ),
    "policy_graph": ("ε = {epsilon} per unit of length in a graph", ", number of edges: {edges}"),
    "distribution_privacy": (
        "{divergence} divergence", " of order {order}", " between distributions at most {bound}",
        "{?scaled}, scaled", ", number of pairs: {listed}", ", δ = {delta}",
    ),
    "pufferfish": (
        "ε = {bound} for secrets behind the answer", ", number of pairs: {listed}", ", δ = {delta}",
    ),
    "renyi_privacy": ("Rényi divergence of order {order} at most {bound}", " per {per}"),
    "maximal_leakage": ("at most {bound} nats, for every prior",),
    "pointwise_maximal_leakage": (
        "at most {bound} nats", "{?other}, under another prior",
        ", with any prior within {radius} of it ({within})",
    ),
    "additive_capacity": ("at most {bound}, for every prior and gain up to 1",),
    "mutual_information": ("at most {bound} nats", "{?other}, of another prior"),
    "ratios": ("log ratios of its own",),
    "linear": ("linear in the probabilities",),
    "distortion_privacy": (
        "error of the best attack at least {least}", " ({distance})",
        "{?other}, with another prior",
        ", with any prior within {radius} of it ({within})",
    ),
    "gain_leakage": (
        "the best guess gains at most {bound}", ", number of guesses: {guesses}",
        "{?other}, with another prior", ", with any prior within {radius} of it ({within})",
    ),
}  # fmt: skip
"""Of every kind that protects the parts of its sentence; a part is said where all that it names is
known. A kind that is not here has its name alone."""
ADDED = {
    "renyi_privacy": "the divergence", "maximal_leakage": "the leakage",
    "mutual_information": "the information", "ratios": "each log ratio",
}  # fmt: skip
"""What n reports promise n times, where that is not ε."""
AGAIN = "Repeat the report for as long as the place is the same."
ALWAYS = (
    "Reports from several times tell more than each of them alone: positions follow one another.",
    "That a report was made, when, how often and from which network address is not hidden.",
)
GUESSES = (
    "An adversary who knows more than the prior may guess better than the stated accuracy; what is "
    "promised of probabilities holds whatever is known."
)
REFUSED = "That a position lay outside the region is seen where no report is made for it."
_MOVED = (
    "Before a draw a position of the region is moved, by at most snap: the promise between two of "
    "them that are d apart is that for a distance of d + 2 snap."
)
_NEAREST_POINT = (
    "A position outside the region counts as the nearest point of its border, however far that is: "
    "what is promised of it is what is promised of that point."
)
_ON_THE_GLOBE = (
    "Two positions outside the region that are close to each other may have nearest points that "
    "are far apart."
)
POSITIONS: dict[Form, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "labels": ((), ()),
    "places": (
        (
            "A position counts as its place: two positions that are close to each other, on both "
            "sides of a border between places, are told apart as these places are.",
        ),
        (
            "A position outside the region counts as the nearest place, however far that is: what "
            "is promised of it is what is promised of that place.",
        ),
    ),
    "region": ((_MOVED,), (_NEAREST_POINT,)),
    "globe": ((_MOVED,), (_NEAREST_POINT, _ON_THE_GLOBE)),
    "line": (
        (_MOVED,),
        (
            "A number beyond the line counts as its nearest end, however far that is: what is "
            "promised of it is what is promised of that end.",
        ),
    ),
    "roads": (
        (
            "A position counts as the point of a road next to it, moved along the road by at most "
            "snap: the promise between two of these points that are d apart along the roads is "
            "that for a distance of d + 2 snap. Positions that are close to each other may be next "
            "to roads that are far apart.",
        ),
        (
            "A position outside the region counts as the nearest point of a road, however far that "
            "is: what is promised of it is what is promised of that point.",
        ),
    ),
    "earth": (
        (
            "A position counts as the centre of its cell, and a report as that of its own: the "
            "promise between positions that are d apart is that for a distance of d + 2 snap.",
            "Distances are those along great circles of a sphere of 6371.0088 km; on the ellipsoid "
            "they differ by up to 0.6 %.",
        ),
        (),
    ),
}
"""What is not promised of positions, by where they are, and of those outside where these are not
refused."""
_NAMES = re.compile(r"\{(\??)(\w+)\}")
_DIGITS, _SURE = 6, 1e-12


class Said:
    """What a packed file says in its ``header`` of what it ``holds``: places or a mesh, and None of
    a file for the whole earth."""

    header: Header
    _held: Domain | Mesh | None = None

    @cached_property
    def promise(self) -> Promise:
        """What the file promises about points."""
        own = self if isinstance(self, Mechanism) and isinstance(self._held, Domain) else None
        return promise_of(self.header, self._held, own)

    @property
    def protects(self) -> tuple[str, ...]:
        """What is promised, a sentence for each constraint that protects, and in odds."""
        return protects(self.header, self._held)

    @property
    def against(self) -> tuple[str, ...]:
        """What is not promised, in sentences."""
        return against(self.header, self._held)

    @property
    def guess(self) -> str:
        """How often the best guess from a report is right, in words; empty without a prior."""
        return "" if self.header.prior is None else guess_words(self.header.prior)


def increase_words(share: float) -> str:
    """By how much a loss is above or below another."""
    return f"{100 * abs(share):.2g} % {'below' if share < 0 else 'above'}"


def form_of(places: Domain | Mesh | None) -> Form:
    """Where a mechanism of these places, or at every point of a mesh, reports from; None stands
    for the earth."""
    if places is None:
        return "earth"
    if isinstance(places, Mesh):
        if not places.is_region:
            return "line" if places.is_line else "roads"
        return "globe" if places.coordinates == "lonlat" else "region"
    return "labels" if places.points is None else "places"


def protects(header: Header, places: Domain | Mesh | None) -> tuple[str, ...]:
    """A sentence for every constraint that protects, and the odds of the first ratio by a
    length."""
    kept = [clause for clause in header.promises if clause.scope != "use"]
    said = [f"{titled(clause)}: {clause_words(clause)}".removesuffix(": ") for clause in kept]
    return (*said, *_odds(header, places))


def against(header: Header, places: Domain | Mesh | None) -> tuple[str, ...]:
    """What is not promised: of several reports, of guesses, of positions."""
    guess = () if header.prior is None else (guess_words(header.prior), GUESSES)
    moved, nearest = POSITIONS[form_of(places)]
    if header.outside == "refuse" and nearest:
        nearest = (REFUSED,)
    return (*repeated(header.promises), *ALWAYS, *guess, *moved, *nearest)


def titled(clause: Clause) -> str:
    """The name of a kind, in words."""
    return clause.kind.replace("_", " ")


def clause_words(clause: Clause) -> str:
    """What one constraint promises, in words; empty of a kind without any."""
    known: dict[str, object] = {
        **clause.details,
        "epsilon": clause.epsilon,
        "delta": clause.delta,
        "bound": clause.bound,
        "per": None if clause.measure is None else per_words(clause.measure),
        "everywhere": clause.scope == "every point",
    }
    if clause.pairs in ("near", "reached") and clause.limit is not None:
        known[clause.pairs] = _length(clause.limit, clause.measure)
    said = {
        name: _shown(name, value) for name, value in known.items() if value not in (None, False)
    }
    if clause.bound is not None:
        said["least"] = rounded(-clause.bound, -1)
    return "".join(
        _NAMES.sub(lambda hit: "" if hit[1] else said[hit[2]], part)
        for part in CLAUSES.get(clause.kind, ())
        if all(name in said for _, name in _NAMES.findall(part))
    )


def _length(limit: float, measure: Measure | None) -> str:
    """How far apart two may be, with the unit."""
    said = f"{limit:.{_DIGITS}g}"
    if measure is None:
        return said
    words = per_words(measure)
    return f"{said} {words if limit == 1 else words.replace('unit of', 'units of', 1)}"


def guess_words(prior: Beliefs) -> str:
    """How often the best guess of a place is right, from one report and from none."""
    return (
        f"The best guess from one report, one of {prior.places}, is right in "
        f"{100 * prior.seen:.3g} % of cases, that without a report in {100 * prior.blind:.3g} %."
    )


def _shown(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes"
    if name in ("epsilon", "delta", "bound") and isinstance(value, float):
        return rounded(value)
    return str(value) if isinstance(value, str) else f"{value:.{_DIGITS}g}"


def rounded(value: float, sign: int = 1) -> str:
    """A number in six digits, rounded up; ``sign`` times it."""
    digits, _, power = f"{value:.{_DIGITS - 1}e}".partition("e")
    whole, shift = int(digits.replace(".", "")), int(power) - _DIGITS + 1
    if float(f"{whole}e{shift}") < value - abs(value) * _SURE:
        whole += 1
    return f"{float(f'{sign * whole}e{shift}') + 0.0:.{_DIGITS}g}"


def repeated(clauses: Sequence[Clause]) -> tuple[str, ...]:
    """What several reports about one place promise together: a sentence for each way in which
    that adds up, of which constraint where there are several."""
    rules: dict[str, list[str]] = {}
    for clause in clauses:
        if clause.repeats != "none":
            rules.setdefault(_rule(clause), []).append(titled(clause))
    if len(rules) < 2:
        return (*rules, *[AGAIN for _ in rules])
    of = (f"By {' and '.join(dict.fromkeys(kinds))}: {said}" for said, kinds in rules.items())
    return (*of, AGAIN)


def _rule(clause: Clause) -> str:
    if clause.repeats == "adds":
        what = ADDED.get(clause.kind, "ε" if clause.delta is None else "ε and δ")
        more = " where all of them are within reach" if clause.pairs == "reached" else ""
        return (
            f"Every report spends {what} again: n independent reports about one place promise only "
            f"n times {what}{more}."
        )
    if clause.repeats == "complement":
        return (
            "Every report spends the capacity c again: n independent reports about one place "
            "promise only 1 - (1 - c)^n."
        )
    return "Nothing is promised of several independent reports about one place together."


def _is_metric(clause: Clause) -> bool:
    return clause.ratio is not None and clause.is_per_distance


def slack_of(clause: Clause, header: Header, places: Domain | Mesh | None) -> float:
    """What counts on top of a distance of two positions: twice ``snap`` at every point, the
    diagonal of a cell."""
    if not isinstance(places, Domain):
        return 2 * (header.snap or 0.0)
    if clause.scope == "cells" and isinstance(places, Grid):
        return math.hypot(*places.cell)
    return 0.0


def _odds(header: Header, places: Domain | Mesh | None) -> Iterator[str]:
    """Of the first constraint that is a ratio by a length between positions."""
    for clause in filter(_is_metric, header.promises):
        slack = slack_of(clause, header, places)
        stated = Promise(clause.scope, "", clause.epsilon, clause.measure, slack=slack)
        if stated.odds:
            yield f"in odds: {stated.odds_words}"
            return


def promise_of(
    header: Header, places: Domain | Mesh | None, mechanism: Mechanism | None = None
) -> Promise:
    """What a file promises about points, between places or at every point; with the ``mechanism``
    it is measured what edges of cells reveal."""
    kept = [clause for clause in header.promises if clause.scope != "use"]
    if not kept:
        return Promise("use", "Nothing is promised.")
    first = next(filter(_is_metric, kept), None)
    stated = [_stated(k, clause) for k, clause in enumerate(kept)]
    said = [f"{one.title[:1].upper()}{one.title[1:]}: {one.words}." for one in stated]
    if first is None or first.epsilon is None or first.measure is None:
        found = Promise(kept[0].scope, " ".join(said), pairs=kept[0].pairs)
    else:
        rate = (
            first.epsilon,
            f"ε = {rounded(first.epsilon)} per {per_words(first.measure)}",
            first.measure,
        )
        if isinstance(places, Domain):
            found = between(places, rate, mechanism)
        else:
            found = at_every_point(*rate, slack=slack_of(first, header, places), mesh=places)
    repeats, sticky = repeats_words(stated, found.scope), sticky_words(stated)
    return replace(found, repeats=repeats, sticky=sticky)


def _stated(index: int, clause: Clause) -> Stated:
    """The constraint as designs have it."""
    adds = (ADDED.get(clause.kind, "ε"), *(() if clause.delta is None else ("δ",)))
    epsilon, delta = (
        None if value is None else parse_exact(value, where="promises")
        for value in (clause.epsilon, clause.delta)
    )
    promised = Promised(
        clause.scope,
        clause.repeats,
        adds,
        clause.pairs,
        clause.limit,
        clause.measure,
        epsilon,
        delta,
    )
    return Stated(index, clause.kind, titled(clause), clause_words(clause), promised)


def region_words(places: Domain | Mesh | None, bands: int = 0) -> str:
    """Where a mechanism reports from, in words; on the earth in so many ``bands``."""
    if places is None:
        return f"the whole earth, in {bands:,} bands of latitude"
    if isinstance(places, Mesh):
        globe = places.coordinates == "lonlat"
        inner = _within(places.vertices, "vertices", globe, places.unit)
        return f"every point of {len(places.triangles)} {places.pieces}: {inner}"
    if isinstance(places, Grid):
        box = places.bounds
        size = f"{places.rows} rows x {places.columns} columns of cells"
        if box is None:
            return f"{size} of {places.cell[0]:g} x {places.cell[1]:g}{_in(places.unit)}"
        return f"{size} over {_box(*box)}"
    if places.points is None:
        return f"{len(places)} labels"
    return _within(places.points, "places", places.coordinates == "lonlat", places.unit)


def _within(points: Floats, of: str, globe: bool, unit: str) -> str:
    low, high = points.min(axis=0) + 0.0, points.max(axis=0) + 0.0
    if globe:
        return f"{len(points)} {of} within {_box(low[0], low[1], high[0], high[1])}"
    spans = ", ".join(f"{a:g} to {b:g}" for a, b in zip(low, high, strict=True))
    return f"{len(points)} {of} at {spans}{_in(unit)}"


def _box(west: float, south: float, east: float, north: float) -> str:
    return f"longitude {west:.5f} to {east:.5f}, latitude {south:.5f} to {north:.5f} degrees"


def _in(unit: str) -> str:
    return f" {unit}" if unit else ""
