"""Puts data, template, style and script together into one file that needs no network."""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import numpy as np

from optmech.base.storage import write_atomically
from optmech.designs.design import Design
from optmech.designs.notes import about_bounds
from optmech.errors import ProblemError
from optmech.reading.errors import printable
from optmech.show.backdrop import Source, backdrop_of, border, lattice_of, plane_of_mesh
from optmech.show.figures import measure_constraints
from optmech.show.reports.payload import (
    STEPS,
    Plain,
    Store,
    client_script,
    constraints,
    design_payload,
    domain_payload,
    framed,
    heading,
    number,
    sampler,
    script_json,
)
from optmech.show.words import subject
from optmech.spaces.arguments import checked_arguments

_SCRIPTS = (
    "data.js",
    "draw.js",
    "plane.js",
    "takeaway.js",
    "chart.js",
    "sampler.js",
    "explore.js",
    "matrix.js",
    "ratios.js",
    "region.js",
    "facts.js",
    "frontier.js",
    "main.js",
)
_MOST = 64
"""Designs that are shown with their mechanisms; of more the page has the figures only."""
_MOST_COMPARED = 1000
_DOUBLE = 2**19
"""Up to this many probabilities in all are embedded as float64, more as float32 logarithms."""
MARGIN = 0.06
"""Share of the larger side of a map that is left around it, so that a backdrop is seen. The script
knows it too."""
_WIDEST = 0.72
"""Maps that are higher than wide are shown in a box of at least this share of their height."""


@checked_arguments
def report(
    designs: Design | Iterable[Design],
    path: str | Path,
    names: Sequence[str] | None = None,
    *,
    backdrop: Source | None = None,
    groups: Sequence[str] | None = None,
    title: str | None = None,
) -> int:
    """Write one HTML page about a design, or one that compares several.

    The page works from a file without any network: maps of what each secret is reported as and
    of what each report reveals, the matrix, measured against allowed log ratios, the verdict on
    every constraint, prices, and the frontier of several designs. The same designs give the same
    bytes. Numbers are the design's, matrices float64; beyond 2^19 probabilities in all they are
    float32 logarithms, and the page says so. Of a design for every point of a region the page shows
    p(o|x) over the region and the distribution of reports at a point, from a lattice of values in
    sixteen bits; the page says how close they are. Reports are drawn by the client of packed
    mechanisms (``pack``), from the design packed once more.

    Parameters
    ----------
    designs:
        One design or several, of any problems; infeasible ones too.
    path:
        Where to write the page.
    names:
        A name for each design, default their titles.
    backdrop:
        Lines behind the maps of designs in longitude and latitude: a file of GeoJSON (districts, a
        coast, roads; also .gz), ``"package:resource"`` of an installed package, the file's content,
        or a GeoDataFrame. Cut to what the maps show and simplified to 20,000 corners; the page says
        by how much.
    groups:
        What each design belongs to, such as a user: the frontier has a line for each.
    title:
        Of the page, default that of the design that is shown.

    Returns
    -------
    int
        The size of the page in bytes.

    Raises
    ------
    ProblemError
        Without designs, with more than 1,000, with names or groups that do not fit, where the page
        cannot be written, on a backdrop that is no GeoJSON or lies elsewhere, or for designs
        without degrees.

    Examples
    --------
    >>> cells, km = om.Grid(2, 2, unit="km"), om.distances.euclidean()
    >>> promise = om.MetricPrivacy(1, km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(cells), km, constraints=[promise]))
    >>> size = om.report(design, "cells.html")
    >>> open("cells.html", encoding="utf-8").readline().strip()
    '<!doctype html>'
    """
    chosen = (designs,) if isinstance(designs, Design) else tuple(designs)
    if not 1 <= len(chosen) <= _MOST_COMPARED:
        raise ProblemError(
            f"{len(chosen)} designs", where="designs", remedy=f"Give 1 to {_MOST_COMPARED} designs"
        )
    for where, texts in (("names", names), ("groups", groups)):
        if texts is not None and len(texts) != len(chosen):
            raise ProblemError(
                f"{len(texts)} {where} for {len(chosen)} designs",
                where=where,
                remedy=f"Give one of the {where} for each design, or none",
            )
    titles = names or [
        design.problem.title or (f"design {k}" if len(chosen) > 1 else subject(design.problem))
        for k, design in enumerate(chosen, start=1)
    ]
    finite = [design for design in chosen if design.gradient is None]
    store = Store(sum(design.problem.loss_matrix.size for design in finite) <= _DOUBLE)
    store.light = len(chosen) > _MOST
    listed = [
        payload_of(design)(design, name, store) for design, name in zip(chosen, titles, strict=True)
    ]
    if groups is not None:
        listed = [{**one, "group": group} for one, group in zip(listed, groups, strict=True)]
    if title is not None:
        listed = [{**one, "title": title} for one in listed]
    behind = None if backdrop is None else _packed(backdrop, listed, store)
    data = {
        "designs": listed,
        "arrays": store.entries,
        "double": store.double,
        "backdrop": behind,
    }
    if title is None:
        title = listed[0]["title"] if len(listed) == 1 else f"{len(listed)} designs"
    content = _page(title, script_json(data)).encode("utf-8", "backslashreplace")
    write_atomically(path, content)
    return len(content)


def _page(title: str, data: str) -> str:
    folder = files("optmech.show.reports") / "static"
    style = (folder / "style.css").read_text(encoding="utf-8")
    parts = [(folder / name).read_text(encoding="utf-8") for name in _SCRIPTS]
    script = '"use strict";\n(() => {\n' + "\n".join([client_script(), *parts]) + "})();\n"
    # one pass, so that nothing put in is looked at again
    pieces = {
        "TITLE": html.escape(printable(title)),
        "POLICY": f"default-src 'none'; img-src data:; script-src {_hashed(script)}; "
        f"style-src {_hashed(style)}; base-uri 'none'; form-action 'none'",
        "STYLE": style,
        "SCRIPT": script,
        "DATA": data,
    }
    parts = (folder / "page.html").read_text(encoding="utf-8").split("%%")
    return "".join(pieces[part] if k % 2 else part for k, part in enumerate(parts))


def _hashed(text: str) -> str:
    """How a content security policy names the one text that it lets run."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def _packed(source: Source, listed: list[Plain], store: Store) -> Plain:
    """What the page needs of a backdrop, for the maps of some designs' payloads: lines in degrees,
    in sixteen bits."""
    boxes = [
        _box(place)
        for design in listed
        for place in (
            design.get("region"),
            (design.get("secrets") or {}).get("map"),
            (design.get("observables") or {}).get("map"),
        )
        if place and place["degrees"]
    ]
    if not boxes:
        raise ProblemError(
            "the designs have no longitudes and latitudes",
            where="backdrop",
            remedy="Use it with points in degrees, or a grid over bounds in degrees",
        )
    low, high = np.min(boxes, axis=0)[:2], np.max(boxes, axis=0)[2:]
    found = backdrop_of(source, (*low.tolist(), *high.tolist()))
    points = (np.vstack(found.lines) - low) / (high - low) * STEPS
    return {
        "low": low.tolist(),
        "high": high.tolist(),
        "points": store.put(np.rint(points), "u16"),
        "ends": store.put(np.cumsum([len(line) for line in found.lines]), "u32"),
        "said": f"{found.corners:,} of the backdrop's {found.given:,} corners are drawn, within "
        f"{1000 * found.tolerance:.2g} m.",
    }


def _box(place: Plain) -> list[float]:
    """West, south, east, north of what a map shows."""
    x, y, across, along = place["degrees"]
    margin = 2 * MARGIN * max(place["width"], place["height"])
    room = margin + max(0.0, _WIDEST * place["height"] - place["width"])
    left, bottom = place["origin"]
    right, top = left + place["width"] + room, bottom + place["height"] + margin
    return [
        x + (left - room) / across,
        y + (bottom - margin) / along,
        x + right / across,
        y + top / along,
    ]


_PLACES = 2000
_TRIANGLES = 20_000


def payload_of(design: Design) -> Callable[[Design, str, Store], Plain]:
    """What makes the page of a design: one for every point of a region has a page of its own."""
    return region_payload if design.gradient and design.exact else design_payload


def region_payload(design: Design, name: str, store: Store) -> Plain:
    """Everything that the page says about one design for every point."""
    problem = design.problem
    alone = len(problem.constraints) == 1
    measured = [] if alone else measure_constraints(problem, design.mechanism)
    return heading(design, name, about_bounds(design)) | {
        "rounding_cost": None,
        "mechanism": None,
        "pairs": [],
        "attack": None,
        "constraints": constraints(problem, measured, []),
        "total_gap": number(design.total_gap),
        "region": _region(design, store),
        "sampler": None if store.light else sampler(design),
    }


def _region(design: Design, store: Store) -> Plain:
    mesh, problem = design.region.mesh, design.problem
    plane = plane_of_mesh(mesh, problem.prior)
    lattice = lattice_of(design.region)
    ends = np.array([(lattice.x[k], lattice.y[k]) for k in (0, -1)])
    # places of the prior and reports may lie outside of the region, and are then left out
    frame, placed = framed(plane.into(ends), plane, store)
    top = float(lattice.values.max())
    coded = np.rint(np.sqrt(lattice.values / top) * STEPS)
    places = problem.secrets.require_points("draw them")
    weights = problem.prior.weights
    heaviest = np.argsort(-weights, kind="stable")[:_PLACES]
    drawn = np.sort(heaviest[weights[heaviest] > 0])
    # the heaviest place; of equal ones that nearest to the middle
    away = np.linalg.norm(places - weights @ places / weights.sum(), axis=1)
    start = places[np.lexsort((away, -weights))[:1]]
    triangles = mesh.triangles if len(mesh.triangles) <= _TRIANGLES else mesh.triangles[:0]
    return frame | {
        "stretch": list(plane.stretch),
        "border": placed(plane.into(border(mesh))),
        "vertices": placed(plane.into(mesh.vertices)) if len(triangles) else None,
        "triangles": store.put(triangles, "u32") if len(triangles) else None,
        "places": placed(plane.into(places[drawn])),
        "weights": store.put(weights[drawn], "f32"),
        "placesLeftOut": int(np.count_nonzero(weights) - len(drawn)),
        "reports": domain_payload(problem.observables, store),
        "start": plane.into(start)[0].tolist(),
        "field": {
            # square roots of the shares of the largest probability, report by report
            "values": store.put(np.moveaxis(coded, 2, 0), "u16"),
            "columns": len(lattice.x),
            "rows": len(lattice.y),
            "top": top,
            "error": replace(lattice, values=(coded / STEPS) ** 2 * top).error(design.region),
        },
    }
