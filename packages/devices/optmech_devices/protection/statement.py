"""One page in plain words about a design or a protected table, for people who are no engineers.

Every sentence follows from what a file says and proves. The law decides nothing here: what its
words ask for is set beside what can be said, and what cannot.
"""

from __future__ import annotations

import io
import json
import math
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.machine import needed
from optmech.base.storage import ending
from optmech.designs.promise import MOST, length_words, times
from optmech.errors import ProblemError
from optmech.reading.bounded import read_bytes
from optmech.spaces.domain import great_circle
from optmech_devices.protection.result import ONCE

Section = tuple[str, list[str]]
_WIDTH, _LINES = 92, 62
_KINDS = (".md", ".html", ".pdf")
_MANY = 2000
"""Places of reports, beyond which no distances between all of them are found."""
_MOST_BYTES = 2**24


def statement_of(path: str | Path) -> list[Section]:
    """What a design, a packed file or the summary of ``optmech protect`` says. Raises ProblemError
    on any other file."""
    from optmech.designs.design import Design
    from optmech.designs.promise import guess_words
    from optmech.reading.sealed import is_packed_file

    if is_packed_file(path):
        from optmech_devices.packed.documents import load_any_packed

        packed = load_any_packed(path)
        return _of_mechanism(packed.promise, packed.guess, _size(packed), _PACKED)
    if (summary := _summary(path)) is not None:
        return _of_table(summary)
    design = Design.load(path)
    guess = guess_words(design.mechanism, design.problem.prior)
    return _of_mechanism(design.promise, guess, _size(design.mechanism), _DESIGN)


def written(sections: list[Section], path: str | Path, title: str) -> bytes:
    """The page, by the ending of its name. Raises ProblemError on another ending, and where a PDF
    needs matplotlib, which is not there."""
    kind = ending(path, ".md")
    if kind not in _KINDS:
        raise ProblemError(
            f"{path}: is not the name of a page",
            where="--output",
            remedy="Use a name that ends in .md, .html or .pdf",
        )
    if kind == ".pdf":
        return _pdf(sections, title)
    lines = [f"# {title}", ""]
    for head, said in sections:
        lines += [f"## {head}", "", *(f"* {text}" for text in said), ""]
    if kind == ".md":
        return "\n".join(lines).encode()
    return _html(sections, title).encode()


def _summary(path: str | Path) -> dict[str, Any] | None:
    try:
        found = json.loads(read_bytes(path, _MOST_BYTES))
    except (ValueError, UnicodeDecodeError):
        return None
    if isinstance(found, dict) and isinstance(found.get("person"), dict) and "rows" in found:
        return found
    return None


_AGAINST = (
    "It holds against everybody who sees the reports, whatever else they know, and however long "
    "they compute: what the reports add is within the odds below, and what they know already comes "
    "on top. The method need not be secret."
)
_AS_STATED = (
    "It holds as the promise below says it, of guesses, averages or distributions, and not against "
    "everybody whatever else they know."
)
_NOT_AGAINST = (
    "It does not hold against those who have the original data, {key}or the random numbers that "
    "were drawn."
)
_KEY = "the key by which reports repeat, "
_COUNTED = (
    "A design that was made of the original rows (by optmech init without --uniform) tells how "
    "many of them lie where, and so where homes are. Keep its file, its report and its problem "
    "file like the original data. This page holds none of that."
)
_DESIGN = (
    "Every inequality behind these sentences was decided in whole numbers when the file was read "
    "for this page. A second program, optmech_audit, which shares no code with the first, decides "
    "them again."
)
_PACKED = "Every inequality behind these sentences was proved when the file was read for this page."


def _of_mechanism(promise: Any, guess: str, size: str, checked: str) -> list[Section]:
    one = [promise.sentence]
    if promise.odds:
        one.append(_odds(promise.odds, "One report can"))
    if guess:
        one.append(guess)
    return [
        (
            "Who is protected, and against whom",
            _who(
                promise.scope,
                "A person whose place is reported: where the person was, not that there was one."
                if promise.scope in _POSITIONS
                else "A person whose secret is reported: what it was, not that there was one.",
            ),
        ),
        ("What one report promises", [text for text in (*one, size) if text]),
        (
            "A day, and a person",
            [
                promise.repeats or "Nothing is promised of several reports about one person.",
                "How many reports a person makes is not known here. The summary of a protected "
                "table counts them, and a page like this one can be made of it.",
            ],
        ),
        (
            "What is not promised",
            [
                *([] if promise.pairs == "all" else [_STATED]),
                *_open(promise.scope, promise.measure is not None),
                *_ALWAYS,
            ],
        ),
        ("How it was checked", [checked]),
        ("Where law has words for it", _law(promise.scope)),
    ]


def _of_table(found: Mapping[str, Any]) -> list[Section]:
    person, budget = found["person"], found["person"].get("budget", {})
    sticky, repeated = person["repeats"].startswith(ONCE), person["repeated"]
    alone = person["by"] is None and person["persons"] > 1
    one = [found["promise"]] if found.get("promise") else []
    if found.get("odds"):
        one.append(_odds(_numbers(found["odds"]), "One report can"))
    worst, median = person["worst"], person["median"]
    together = [_whole(worst, "the person with most reports")]
    if worst != median:
        together.append(_whole(median, "the median person"))
    if person.get("worst_day"):
        together.insert(0, _whole(person["worst_day"], "the day with most reports of one person"))
    if worst["draws"] > 1 and worst["odds"]:
        together.append(
            "Averages are within these figures: whoever averages what one person's own draws about "
            "one place reported comes closer to it on average, the more draws there are. An "
            "average of all rows is none of true places where rows repeat."
        )
    limits = [
        _budget(budget, person["unit"], "row" if alone else "person"),
        *([f"{ONCE}."] if sticky else []),
    ]
    counts = (
        f"{found['rows']:,} rows were read, {person['left_out']:,} left out, "
        f"{found['moved']:,} taken to the nearest place of a report."
    )
    return [
        *([("Before anybody uses the table", [_copies(found)])] if repeated else []),
        ("Who is protected, and against whom", _who(found.get("scope", "places"), *_people(found))),
        ("What one report promises", one or ["Nothing is stated of one report."]),
        ("What all reports of a person promise", [*together, *limits]),
        (
            "What is not promised",
            [
                *_columns(found),
                *([_COPIES if person["by"] is None else _ALIKE] if sticky or repeated else []),
                _NEAR,
                *_open(found.get("scope"), found.get("measure") is not None),
                *_ALWAYS,
            ],
        ),
        (
            "How it was checked",
            [
                counts,
                "The draws of every person were counted while the table was written. That does not "
                "check the odds of one draw: those are what the mechanism's own file proves.",
            ],
        ),
        ("Where law has words for it", _law(found.get("scope", "places"))),
    ]


def _copies(found: Mapping[str, Any]) -> str:
    """Which rows have reports of their own, where others repeat one."""
    person, repeated = found["person"], found["person"]["repeated"]
    own = found["rows"] - person["left_out"] - repeated
    said = (
        f"Only {own:,} of {found['rows']:,} rows have a report of their own place. Then a person's "
        f"budget was spent: {repeated:,} rows repeat the person's report before, and say nothing "
        "of where anybody was at that row. Do not use them as positions: a row may show a city "
        "where the person was not, and a point that stands often may be one row repeated. The "
        "first rows of each person, in the order of the data, have reports of their own: where "
        "rows follow closely in time these are many looks at one place, and where they are in the "
        "order of time that tells when they were, also where times are cut."
    )
    if person["by"] is None:
        said += (
            " Where rows were sorted by person they are all of the first, who bears the whole "
            "promise below: name the column that says whose a row is (--per)."
        )
    return said


def _people(found: Mapping[str, Any]) -> tuple[str, bool]:
    """Of whom a table is, and whether reports repeat by a key."""
    person = found["person"]
    by, count = person["by"], person["persons"]
    if by is not None:
        gone = "" if by in found["columns"] else ", which is not in the table"
        people = f"The data have {count:,} person{'s'[: count != 1]}, by their column {by!r}{gone}."
    elif count == 1:
        people = (
            f"No column was named that says whose a row is. So all {found['rows']:,} rows were "
            "taken for one person's. That is not the number of persons, which is not known here, "
            "though other columns may tell it. Each of them has at least the promise below."
        )
    else:
        people = (
            f"Every row was said to be a person's own, which nobody checked: {count:,} persons. "
            "Whoever has n rows has n times the draws, and odds n times multiplied."
        )
    hidden = "How far places are hidden, the odds below say. That a person is there is not hidden."
    return f"{people} {hidden}", person["repeats"].startswith(ONCE)


def _columns(found: Mapping[str, Any]) -> Iterator[str]:
    """What became of the columns, and of the order of rows."""
    reports, cut = found.get("places"), found.get("times") or {}
    kept = [name for name in found["columns"] if name not in [*(reports or []), *cut]]
    if reports:
        named = ", ".join(found["columns"])
        yield f"The table has {named}: of these {', '.join(reports)} are reports."
    if cut:
        said = ", ".join(f"{name} (cut to the begin of its {unit})" for name, unit in cut.items())
        yield (
            f"Nothing is promised of {said}: what is left of it still says when, and rows whose "
            "times follow on one another may be one person's."
        )
    if found.get("draws_per_row", 1) > 1:
        yield "The places of a row are of one person, and stand together."
    if kept:
        yield f"Nothing is promised of {', '.join(kept)}: released as in the data."
    if found["left_out"]:
        yield f"Left out of the table: {', '.join(found['left_out'])}."
    yield (
        "Rows are shuffled: their order says nothing."
        if found.get("shuffled", False)
        else "Rows stand in their old order, by which those of one person may be found."
    )


_ALIKE = (
    "Rows that repeat a person's report stand on one point. So many rows on a point may be of one "
    "person, and tell how many rows that person has; where few points are reported at all, many "
    "persons share one."
)
_COPIES = (
    "Rows on one point may repeat one report, whosever they are. Points that stand seldom are "
    "likely to be reports of their own."
)
_NEAR = (
    "Reports that lie near one another and far from all others may be of one person. Their average "
    "is then, as a rule, a better guess of the place than one of them."
)


_STATED = (
    "The promise is of the pairs that are stated, and of no others: between others a report may "
    "tell everything."
)
_POSITIONS = ("every point", "cells", "places")
"""Scopes of promises between positions."""


def _who(scope: str, whom: str, key: bool = True) -> list[str]:
    """Who is protected, and against whom: against everybody by ratios between two secrets alone."""
    if scope == "use":
        return ["Nobody: no privacy is promised."]
    whatever = _AGAINST if scope in (*_POSITIONS, "secrets") else _AS_STATED
    return [whom, whatever, _NOT_AGAINST.format(key=_KEY if key else ""), _COUNTED]


def _open(scope: str | None, far: bool) -> Iterator[str]:
    """What is not promised; ``far`` where a promise grows with a distance."""
    if scope in ("cells", "places"):
        yield (
            "The promise is between the places of a list or the centres of cells. Two positions on "
            "both sides of a border may be told apart more."
        )
    if far and scope in _POSITIONS:
        yield (
            "Places that are far apart are told apart: that somebody was in one city, and not in "
            "another, is not hidden."
        )
    elif far:
        yield "Secrets that are far apart by the distance of the promise are told apart."


_ALWAYS = [
    "That a person has reports, and how many, is not hidden.",
    "Persons who were together tell of each other: the reports of one are about the other too, and "
    "the odds of both multiply.",
    "What is known from elsewhere adds to it: another table about the same persons spends anew.",
]
_REACH = "whatever they have, and only of places."
_LAW = [
    "This page makes no legal claim. It says what can be proved, for those who decide.",
    "Recital 26 of the GDPR asks which means are reasonably likely to be used to identify a "
    "person. That depends on what others have, and no file can say it. What is proved here holds "
    f"{_REACH}",
    "Data with a name or number for each person are pseudonymous at best (Article 4(5)), however "
    "well their places are hidden.",
    "Singling out (Opinion 05/2014, WP 216): the odds above bound what reports add to a guess of "
    "where a person was. They do not bound what other columns single out.",
    "Linkability: rows that carry one name are linked. Of rows without a name, one and the same "
    "report, reports far from all others, times and rare values may link them, and so may their "
    "order unless shuffled.",
    "Inference: whoever believed two places equally likely may believe one of them as many times "
    "more as the odds say, and no more. What follows from the large, such as the city, is open.",
]


def _law(scope: str) -> list[str]:
    """The same without what is said of odds and places, where nothing is promised between them."""
    if scope in _POSITIONS:
        return _LAW
    reach = "as far as the promise says, and only of what is reported."
    kept = [text.replace(_REACH, reach) for text in _LAW if " odds " not in text]
    return [text.replace("their places are hidden", "it is hidden") for text in kept]


def _odds(odds: Mapping[int, float], what: str) -> str:
    said = [
        f"{length_words(metres)} apart by "
        + (
            f"at most {times(factor)} times, at worst from 50 % to {_sure(factor)} %"
            if factor <= MOST
            else "more than a million times, which hides nothing"
        )
        for metres, factor in sorted(odds.items())
    ]
    return f"{what} shift the odds between two places {'; '.join(said)}."


def _sure(factor: float) -> str:
    """What of two things that were equally likely becomes at most, in per cent, rounded up."""
    doubt = 100 / (1 + factor)
    digits = max(0, 1 - math.floor(math.log10(doubt))) if doubt < 10 else 0
    return f"{100 - math.floor(doubt * 10**digits) / 10**digits:.{digits}f}"


def _numbers(odds: Mapping[str, Any]) -> dict[int, float]:
    # infinities are null in JSON
    return {int(k): np.inf if v is None else float(v) for k, v in odds.items()}


def _whole(figure: Mapping[str, Any], who: str) -> str:
    count = f"{figure['draws']:,.4g} draw{'' if figure['draws'] == 1 else 's'}"
    odds = _numbers(figure["odds"])
    if not odds:
        return f"Of {who}: {count}."
    return _odds(odds, f"All reports of {who} together ({count}) can")


def _budget(budget: Mapping[str, Any], unit: str, whose: str) -> str:
    if budget.get("none"):
        return f"No budget was set: nothing limits what a {whose}'s reports tell together."
    if budget.get("epsilon") is None:
        return f"A {whose} has at most {budget.get('draws')} draws."
    per = f" per {unit}" if unit else ""
    of = f"of a {whose}'s day" if budget.get("per") == "day" else f"of a {whose}"
    return f"The budget {of} is ε = {budget['epsilon']:g}{per}, and was enforced."


def _size(mechanism: Any) -> str:
    """How far apart the places of reports are, in words."""
    points = getattr(getattr(mechanism, "observables", None), "points", None)
    if points is None or len(points) < 2:
        return ""
    domain = mechanism.observables
    said = f"Reports are one of {len(points):,} places"
    if len(points) > _MANY:
        return f"{said}."
    pair = points[:, None], points[None, :]
    globe = getattr(domain, "coordinates", "") == "lonlat"
    apart = great_circle(*pair) if globe else np.linalg.norm(pair[0] - pair[1], axis=2)
    np.fill_diagonal(apart, np.inf)
    unit = "km" if globe else getattr(domain, "unit", "")
    far = f"{np.median(apart.min(axis=1)):.3g}{f' {unit}' if unit else ''}"
    of = "" if unit else " in the unit of the coordinates"
    return f"{said}; the next one is {far} away in the median{of}."


def _html(sections: list[Section], title: str) -> str:
    from html import escape

    body = "".join(
        f"<h2>{escape(head)}</h2><ul>{''.join(f'<li>{escape(t)}</li>' for t in said)}</ul>"
        for head, said in sections
    )
    style = "body{font:16px/1.5 sans-serif;max-width:45em;margin:2em auto;padding:0 1em}"
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>{escape(title)}</title><style>{style}</style><h1>{escape(title)}</h1>{body}</html>"
    )


def _pdf(sections: list[Section], title: str) -> bytes:
    needed("matplotlib", "plot", where="--output")
    from matplotlib.backends.backend_pdf import PdfPages
    from matplotlib.figure import Figure

    lines = [(title, 14, "bold"), ("", 9, "normal")]
    for head, said in sections:
        lines.append((head, 10, "bold"))
        for text in said:
            wrapped = textwrap.wrap(text, _WIDTH, initial_indent="– ", subsequent_indent="   ")
            lines += [(line, 9, "normal") for line in wrapped]
        lines.append(("", 5, "normal"))
    out = io.BytesIO()
    with PdfPages(out, metadata={"CreationDate": None, "Title": title}) as pages:
        for begin in range(0, len(lines), _LINES):
            figure = Figure(figsize=(8.27, 11.69))
            for k, (text, size, weight) in enumerate(lines[begin : begin + _LINES]):
                figure.text(0.08, 0.95 - k * 0.0147, text, size=size, weight=weight, va="top")
            pages.savefig(figure)
    return out.getvalue()
