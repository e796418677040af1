"""What a protected table says of each of its persons: how many reports carry one key, what they
promise together, and what somebody who counts them finds."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.labels import is_missing, parts_of
from optmech.exact.number import Number, parse_exact

_NAMES = """id uid uuid guid user userid rider driver person customer client member subscriber
device imei imsi mac phone msisdn email mail name username login account bike vehicle car plate
card ssn passenger patient employee cyclist runner hiker athlete courier participant respondent
visitor resident student traj trajectory tid
nom nome naam nachname vorname telefon handy telefono telefoon gerat geraet persona"""
_IN_NAMES = """kunde nutzer fahrer fahrgast fahrzeug kennung kennzeichen ausweis mitarbeiter
personen utilisateur usager conducteur personne usuario cliente conductor vehiculo utente autista
gebruiker klant bestuurder voertuig persoon passagier passager pasajero passeggero"""
_KINDS = "casual type kind class gender sex age birth count number status group plan since"
"""Words that say of a column that it is of many persons."""
_PERSONS = """user userid uid rider driver person personid customer client subscriber device imei
imsi phone msisdn email username login account passenger patient employee cyclist runner hiker
athlete courier participant respondent visitor resident student member"""
_PLACES = """lon lat lng long longitude latitude x y easting northing geometry geom wkt wkb geohash
h3 s2 address street zip zipcode postcode postal place location position altitude pluscode coord
coords station stations dock ort zielort startort plz rue via calle lieu lugar luogo plaats locatie
positie cap cp"""
_IN_PLACES = """address adress strasse street straat direccion indirizz domicil wohnort standort
hausnummer huisnummer postleitzahl postcode postal coordinate coordonnee coordenada coordinata
koordinate coordinaat longitud latitud breitengrad langengrad laengengrad breedtegra lengtegra
rechtswert hochwert geohash ubicacion posicion posizion emplacement"""
_TIMES = """time utc ts timestamp datetime date when at recorded local_time starttime started heure
hora ora orario"""
_EPOCHS = """day week month year hour weekday epoch period jour semaine mois annee tag woche monat
jahr stunde dia semana mes ano giorno settimana mese anno dag week maand jaar uur"""
_IN_TIMES = "zeit datum tijd horodat fecha timestamp"
"""Words, and parts of words, in English, French, Spanish, Italian, German and Dutch."""

_NUMBERS = re.compile(r"[-+]?\d+(?:[.,]\d+)?")
_WKT = re.compile(
    r"\s*(?:SRID=\d+;)?\s*(?:(?:MULTI)?(?:POINT|LINESTRING|POLYGON|CURVE|SURFACE)"
    r"|LINEARRING|CIRCULARSTRING|COMPOUNDCURVE|CURVEPOLYGON|GEOMETRYCOLLECTION)"
    r"\s*[ZM]{0,2}\s*\(",
    re.IGNORECASE,
)
_HEX = re.compile("0[01](?:[0-9A-Fa-f]{2}){20,}")
_LEAST_WKB = 21
"""Bytes of a point."""
_SCALES, _SMALL, _CLOSE = (1e5, 1e6, 1e7), 5.0, 0.01
"""By which degrees are multiplied where they are whole numbers, how wide a small region is, and how
near to the row's own place such a number is."""
SAMPLE, _MOST_OF, _BESIDE, _LEAST_BESIDE = 2000, 0.75, 0.5, 0.01
_MAPPED = 1e4
"""Numbers of a column that are looked at, how many of them tell places, how far from the rows, as a
part of where most are and in degrees, and from where on numbers look like metres of a map."""


def words_of(name: str) -> list[str]:
    """The parts of a column's name, in small letters without accents."""
    plain = unicodedata.normalize("NFKD", parts_of(name).casefold())
    return "".join(c if c.isalnum() else " " for c in plain if not unicodedata.combining(c)).split()


def is_place(name: str) -> bool:
    """Whether a column is called like one that says where somebody is."""
    return _is_called(name, _PLACES, _IN_PLACES, last=2)


def is_key(name: str) -> bool:
    """Whether a column is called like one that says who somebody is."""
    return _is_called(name, _NAMES, _IN_NAMES)


def is_person(name: str) -> bool:
    """Whether a column is plainly called like one that says whose a row is."""
    return _is_called(name, _PERSONS, _IN_NAMES) and set(_KINDS.split()).isdisjoint(words_of(name))


def is_time(name: str) -> bool:
    """Whether a column is called like a time."""
    return _is_called(name, _TIMES, _IN_TIMES)


def is_epoch(name: str) -> bool:
    """Whether a column is called like a time, or like a day or another stretch of it."""
    return is_time(name) or _is_called(name, _EPOCHS, "")


def _is_called(name: str, whole: str, parts: str, last: int = 0) -> bool:
    """Whether one of the ``last`` words of a name, or of all, is known, or any has a known part."""
    words = words_of(name)
    known = not set(whole.split()).isdisjoint(words[-last:])
    return known or any(part in word for part in parts.split() for word in words)


def is_shape(cell: Any) -> bool:
    """Whether a cell is a geometry, in any reference system: an object, WKT, WKB or GeoJSON."""
    if isinstance(cell, str):
        if _WKT.match(cell) or ('"coordinates"' in cell and '"type"' in cell):
            return True
        return bool(_HEX.fullmatch(cell)) and _is_wkb(bytes.fromhex(cell))
    if isinstance(cell, bytes | bytearray | memoryview):
        return _is_wkb(bytes(cell))
    return hasattr(cell, "__geo_interface__") or (isinstance(cell, dict) and "coordinates" in cell)


def _is_wkb(content: bytes) -> bool:
    """Whether bytes begin like a geometry: their order, and a type from 1 to 17, of points with two
    to four coordinates, with flags of PostGIS or without."""
    if len(content) < _LEAST_WKB or content[0] > 1:
        return False
    kind = int.from_bytes(content[1:5], "little" if content[0] else "big") & 0x1FFFFFFF
    return 1 <= kind % 1000 <= 17 and kind < 4000


def tells_place(cells: Sequence[Any], coordinates: Sequence[Floats], degrees: bool) -> bool:
    """Whether most cells hold a number that lies where one of the rows' ``coordinates`` do: one
    with two decimals of degrees, or one as large as metres of a map; or degrees that were made
    whole numbers, times 10^5 to 10^7, near the row's own or in a region that is small."""
    texts = [(k, str(cell)) for k, cell in enumerate(cells) if not is_missing(cell)]
    numbers = [(k, found) for k, text in texts if (found := _NUMBERS.findall(text))][:SAMPLE]
    spans = [_span(values[np.isfinite(values)], degrees) for values in coordinates]
    known = [span for span in spans if span is not None]
    small = [(low, high) for low, high in known if high - low < _SMALL]

    def told(text: str, row: int) -> bool:
        decimal = text.replace(",", ".")
        value, (_, _, decimals) = float(decimal), decimal.partition(".")
        sharp = len(decimals) >= 2 if degrees else abs(value) >= _MAPPED
        if sharp:
            return any(low <= value <= high for low, high in known)
        scaled = [value / scale for scale in _SCALES if degrees and abs(value) >= scale]
        own = [float(values[row]) for values in coordinates]
        return any(
            any(low <= v <= high for low, high in small) or any(abs(v - w) < _CLOSE for w in own)
            for v in scaled
        )

    most = sum(any(told(text, k) for text in found) for k, found in numbers)
    return bool(numbers) and most >= _MOST_OF * len(numbers)


def stands_still(cells: Sequence[Any], coordinates: Sequence[Floats]) -> bool:
    """Whether most values that several rows have, and two of them at least, stand at one and the
    same pair of ``coordinates`` in all of these rows, as a station's name does."""
    for x, y in zip(coordinates[::2], coordinates[1::2], strict=False):
        found: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for cell, *place in zip(cells[:SAMPLE], x.tolist(), y.tolist(), strict=False):
            if not is_missing(cell) and str(cell).strip() and np.isfinite(place).all():
                found[str(cell)].append((place[0], place[1]))
        several = [set(places) for places in found.values() if len(places) > 1]
        still = [places for places in several if len(places) == 1]
        # where all rows are at one place, every value is
        apart = len(set().union(*still)) > 1
        if apart and len(still) >= max(2.0, _MOST_OF * len(several)):
            return True
    return False


def _span(values: Floats, degrees: bool) -> tuple[float, float] | None:
    """Where nineteen of twenty values lie, and a little more; None for none."""
    if not len(values):
        return None
    low, high = np.quantile(values, [0.025, 0.975]).tolist()
    beside = max(_BESIDE * (high - low), _LEAST_BESIDE if degrees else 0.0)
    return low - beside, high + beside


Counts = defaultdict[str, Counter[Any]]


class Persons:
    """Counts the rows of every value of one column, the different places among them, and how often
    each report was made.

    Where reports repeat by other columns, a place is drawn anew for other values of these, and
    counts anew.
    """

    def __init__(self, column: str) -> None:
        self.column = column
        self._draws: defaultdict[str, set[Hashable]] = defaultdict(set)
        self._visits: Counts = defaultdict(Counter)
        self._near: Counts = defaultdict(Counter)
        self._reports: Counts = defaultdict(Counter)
        self._first: dict[tuple[str, Hashable], int] = {}

    def count(
        self,
        who: Iterable[Any],
        drawn: Iterable[Hashable],
        places: Ints,
        reports: Ints,
        near: Ints | None,
    ) -> None:
        """Note rows: whose each is, what tells its draw from others, the number of its place, its
        report, and the report that lies nearest to where it truly was. Rows of nobody are tied to
        no other."""
        truly = [-1] * len(places) if near is None else near.tolist()
        listed = places.tolist(), reports.tolist(), truly
        for name, draw, place, report, own in zip(who, drawn, *listed, strict=True):
            if is_missing(name) or not str(name).strip():
                continue
            key = str(name)
            self._draws[key].add(draw)
            self._visits[key][place] += 1
            self._reports[key][report] += 1
            if own >= 0:
                self._near[key][own] += 1
            self._first.setdefault((key, place), report)

    def summary(self, epsilon: Number | None, unit: str, sticky: bool) -> dict[str, Any]:
        """The figures as plain values; ``epsilon`` is that of a draw, per ``unit``, and ``sticky``
        says that a place repeats its report."""
        fresh, places = (
            np.array(list(map(len, of.values())), dtype=np.int64)
            for of in (self._draws, self._visits)
        )
        rate = None if epsilon is None else float(parse_exact(epsilon, where="epsilon"))

        def figures(draws: Ints, reports: Counts) -> dict[str, Any]:
            epsilon = None if rate is None else _spread(draws, rate)
            return {"draws": _spread(draws), "epsilon": epsilon, "found": self._share(reports)}

        found: dict[str, Any] = {
            "columns": [self.column],
            "persons": len(fresh),
            "epsilon_per_draw": rate,
            "unit": unit,
            "sticky": sticky,
            **figures(fresh, self._reports),
        }
        if not sticky:
            repeated: Counts = defaultdict(Counter)
            for who, visits in self._visits.items():
                for place, times in visits.items():
                    repeated[who][self._first[who, place]] += times
            found["if_sticky"] = figures(places, repeated)
        return found

    def _share(self, reports: Counts) -> float | None:
        """The share, among persons with two rows or more, of those whose commonest report is the
        one nearest to where they are most often; None where nothing is known of that."""
        known = [who for who, near in self._near.items() if near.total() > 1]
        if not known:
            return None
        right = sum(_mode(reports[who]) == _mode(self._near[who]) for who in known)
        return right / len(known)


def _mode(counts: Counter[int]) -> int:
    """The commonest; of several the least."""
    return min(counts, key=lambda value: (-counts[value], value))


def _spread(counts: Ints, rate: float = 1.0) -> dict[str, float]:
    """The worst and the median."""
    if not len(counts):
        return {"worst": 0, "median": 0}
    worst, median = float(counts.max()) * rate, float(np.median(counts)) * rate
    return {"worst": worst, "median": median}


def summed(
    persons: Sequence[Persons], epsilon: Number | None, unit: str, sticky: bool
) -> dict[str, Any] | None:
    """The figures of the column whose worst value has most draws, and in ``others`` those of the
    other columns, as each of them ties rows together by itself; None without any."""
    if not persons:
        return None
    every = [each.summary(epsilon, unit, sticky) for each in persons]
    every.sort(key=lambda each: -each["draws"]["worst"])
    return {**every[0], "others": every[1:]}


def sentences(found: dict[str, Any]) -> list[str]:
    """The figures in words."""
    lines = []
    for each in (found, *found["others"]):
        if not each["persons"]:
            continue
        (column,) = each["columns"]
        lines.append(f"{column}: {_words(each)}")
        other = each.get("if_sticky")
        if other is not None and other["draws"]["worst"] < each["draws"]["worst"]:
            lines.append(
                f"with --sticky-key-file KEY --sticky-by {column} a place repeats its report: "
                f"{_words(each | other)}"
            )
    return lines


def _words(found: dict[str, Any]) -> str:
    draws, epsilon, unit = found["draws"], found["epsilon"], found["unit"]
    text = f"{draws['worst']:,.0f} draws about the worst of {found['persons']:,}"
    text += f", {draws['median']:,.4g} about the median one"
    if epsilon is not None:
        per = f" per {unit}" if unit else ""
        text += f": together ε = {epsilon['worst']:,.4g} and {epsilon['median']:,.4g}{per}"
    if found["found"] is not None:
        share = f"{100 * found['found']:.3g} %"
        text += f"; counting reports finds the most visited place of {share}"
        text += " (a better attack may find more)"
    return text
