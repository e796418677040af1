"""The words in which a packed mechanism says what is promised."""

from __future__ import annotations

import math
from collections.abc import Callable

from optmech.audit.document import Body, fields, listing, reals, text
from optmech.audit.inequalities import order_of
from optmech.audit.numbers import Real, real
from optmech.audit.places import NAMED, Places, spans
from optmech.audit.statements import Statement

IN_WORDS = {"max": "ε =", "kl": "KL divergence at most",
               "reverse_kl": "reverse KL divergence at most", "tv": "total variation at most",
               "chi2": "χ² divergence at most",
               "hellinger": "squared Hellinger distance at most"}  # fmt: skip
GAINS = {"maximal": "e to the maximal leakage", "additive": "additive capacity",
         "identity": "the secret itself is guessed"}  # fmt: skip


def region_said(places: Places) -> str:
    """Where places are, in words."""
    if places.points is None:
        return f"{len(places.labels)} labels"
    if places.size is not None:
        rows, columns, width, height = places.size
        said = f"{rows} rows x {columns} columns of cells"
        if places.bounds is None:
            return f"{said} of {width:g} x {height:g} {places.unit}".rstrip()
        return f"{said} over {box_said(*places.bounds)}"
    ends = spans(places.points)
    if places.globe:
        (west, east), (south, north) = ends
        return f"{len(places.labels)} places within {box_said(west, south, east, north)}"
    sides = ", ".join(f"{low:g} to {high:g}" for low, high in ends)
    return f"{len(places.labels)} places at {sides} {places.unit}".rstrip()


def box_said(west: float, south: float, east: float, north: float) -> str:
    return f"longitude {west:.5f} to {east:.5f}, latitude {south:.5f} to {north:.5f} degrees"


def amount(value: object) -> str:
    """A number as it was written, short."""
    words = Real.read(value).text
    return words if isinstance(words, str) else f"{words:g}"


def distance_said(distance: object) -> str:
    """A name that was computed again, or that there is none."""
    name = text(distance["name"] if isinstance(distance, dict) else distance, "a name")
    if name in NAMED:
        return name
    called = "" if name in ("matrix", "given") else f", called {name!r} in the file"
    return f"given as a matrix{called}"


def per_said(distance: object, stated: Statement) -> str:
    name = "roads" if distance == "roads" else distance_said(distance)
    unit = {"haversine": "km", "hamming": ""}.get(name, stated.secrets.unit)
    if name.startswith("given"):
        return f"unit of distance ({name})"
    return f"{unit} ({name})" if unit else f"unit of {name} distance"


def delta_said(c: Body) -> str:
    return "" if Real.read(c["delta"]).zero else f", δ = {amount(c['delta'])}"


def pairs_said(count: int) -> str:
    return "one pair" if count == 1 else f"{count} pairs"


def against_said(c: Body) -> str:
    against = "the prior" if c["prior"] is None else "another prior"
    if c.get("radius") is None:
        return against
    within = c.get("within")
    metric = "total variation" if within is None else distance_said(within)
    return f"any prior within {amount(c['radius'])} of {against} ({metric})"


def gain_said(gain: object) -> str:
    if isinstance(gain, str):
        return GAINS[gain]
    count = len(listing(gain))
    return f"{count} guess{'' if count == 1 else 'es'}"


def objective_said(goal: object) -> str:
    if isinstance(goal, dict):
        if "gain" in goal:
            return f"leakage ({gain_said(goal['gain'])})"
        return "distortion of the best attack"
    return text(goal, "the objective").replace("_", " ")


def metric_said(c: Body, stated: Statement) -> str:
    words = f"ε = {amount(c['epsilon'])} per {per_said(c['distance'], stated)}"
    mesh = fields(c.get("everywhere"))
    if "ways" in mesh:
        unit = "km" if mesh["coordinates"] == "lonlat" else mesh["unit"] or "unit of length"
        return f"ε = {amount(c['epsilon'])} per {unit}, at every point of {roads_said(mesh)}"
    if mesh:
        degree = mesh.get("degree", 1)
        corners, triangles = (len(listing(mesh[name])) for name in ("vertices", "triangles"))
        curved = f", by polynomials of degree {degree}" if degree != 1 else ""
        region = f"a region of {triangles} triangles with {corners} corners{curved}"
        return f"{words}, at every point of {region}"
    if c["threshold"] is not None:
        words += f", for secrets up to {real(c['threshold']):g} apart"
    if c["observable_threshold"] is not None:
        words += f", where observables are up to {real(c['observable_threshold']):g} away"
    return words + delta_said(c)


def roads_said(mesh: Body) -> str:
    """A line or a network in words."""
    vertices = [reals(v) for v in listing(mesh["vertices"])]
    count = sum(len(listing(road)) - 1 for road in listing(mesh["ways"]))
    if len(vertices[0]) > 1:
        return f"a network of {count} segments between {len(vertices)} vertices"
    unit = f" {mesh['unit']}" if mesh["unit"] else ""
    return f"the line from {vertices[0][0]:g} to {vertices[-1][0]:g}{unit} in {count} segments"


def differential_said(c: Body, _: Statement) -> str:
    adjacency, pairs = c["adjacency"], "all pairs"
    if mesh := fields(c.get("everywhere")):
        pairs = f"all points of {roads_said(mesh)}"
    elif isinstance(adjacency, dict):
        pairs = f"pairs up to {real(adjacency['radius']):g} apart"
    elif adjacency != "all":
        pairs = f"{len(listing(adjacency))} pairs"
    return f"ε = {amount(c['epsilon'])}, {pairs}{delta_said(c)}"


def distribution_said(c: Body, _: Statement) -> str:
    kind = text(c["divergence"], "the divergence")
    order = order_of(kind)
    words = IN_WORDS[kind] if order is None else f"Rényi divergence of order {order} at most"
    scaled = "" if c["scale"] is None else ", scaled"
    counted = pairs_said(len(listing(c["pairs"])))
    return f"{words} {amount(c['epsilon'])} for {counted} of distributions{scaled}{delta_said(c)}"


def loss_said(c: Body, _: Statement) -> str:
    which = "loss of every secret" if c["worst_case"] else "expected loss"
    own = "" if c["loss"] is None else " (its own loss)"
    return f"{which} at most {amount(c['maximum'])}{own}"


def renyi_said(c: Body, stated: Statement) -> str:
    per = "" if c["distance"] is None else f" per {per_said(c['distance'], stated)}"
    return f"Rényi divergence of order {amount(c['order'])} at most {amount(c['epsilon'])}{per}"


def fixed_said(c: Body, stated: Statement) -> str:
    source = text(c["source"], "the source")
    return (f"the rows of {len(listing(c['secrets']))} of {stated.n} secrets exactly as given"
            f"{f' ({source[:19]}…)' if source else ''}")  # fmt: skip


def graph_said(c: Body, _: Statement) -> str:
    count = len(listing(c["graph"]))
    edges = "one edge" if count == 1 else f"{count} edges"
    return f"ε = {amount(c['epsilon'])} per unit of length in a graph of {edges}"


def odds_said(constraints: list[Body], places: Places | None, snap: float) -> list[str]:
    """The sentence that says the first promise by a distance in odds, at three lengths, rounded up
    to three digits; between points, where there are no places."""
    metric = next((c for c in constraints if c["kind"] == "metric_privacy"), Body())
    unit, _, name = str(metric.get("per")).partition(" (")
    limited = any(words in str(metric.get("promise")) for words in (" up to ", ", δ = "))
    if limited or unit not in ("km", "m"):
        return []
    size = None if places is None or name != "euclidean)" else places.size
    slack = 2 * snap if places is None else 0.0 if size is None else math.hypot(*size[2:])
    who = "points" if places is None else "places" if size is None else "positions"
    said = []
    for metres, words in ((100, "100 m"), (1000, "1 km"), (10000, "10 km")):
        rate = real(metric["epsilon"]) * (metres / (1000 if unit == "km" else 1) + slack)
        if rate > math.log(1e6):
            said.append(f"{words} apart over a million times: not hidden")
            continue
        factor = math.exp(rate)
        place = 10.0 ** (2 - math.floor(math.log10(factor)))
        times = math.ceil(factor * place * (1 - 1e-9)) / place
        said.append(f"{words} apart at most {times:,.6g} times as likely")
    return [f"in odds: a report from {who} " + "; ".join(said)]


PROMISES: dict[str, Callable[[Body, Statement], str]] = {
    "metric_privacy": metric_said,
    "differential_privacy": differential_said,
    "distribution_privacy": distribution_said,
    "loss_bound": loss_said,
    "renyi_privacy": renyi_said,
    "fixed_rows": fixed_said,
    "policy_graph": graph_said,
    "support": lambda c, _: "observables of a given mask only",
    "maximal_leakage": lambda c, _: (
        f"maximal leakage at most {amount(c['maximum'])} nats, for every prior"
    ),
    "pointwise_maximal_leakage": lambda c, _: (
        f"pointwise maximal leakage at most {amount(c['epsilon'])} nats"
        f"{'' if c['prior'] is None else ', under another prior'}"
    ),
    "additive_capacity": lambda c, _: (
        f"additive capacity at most {amount(c['maximum'])}, for every prior and gain up to 1"
    ),
    "mutual_information": lambda c, _: (
        f"mutual information at most {amount(c['maximum'])} nats"
        f"{'' if c['prior'] is None else ', of another prior'}"
    ),
    "distortion_privacy": lambda c, _: (
        f"error of the best attack with {against_said(c)} at least {amount(c['minimum'])} "
        f"({distance_said(c['distance'])})"
    ),
    "gain_leakage": lambda c, _: (
        f"the best guess with {against_said(c)} gains at most {amount(c['maximum'])} "
        f"({gain_said(c['gain'])})"
    ),
    "pufferfish": lambda c, _: (
        f"ε = {amount(c['epsilon'])} for {pairs_said(len(listing(c['pairs'])))} of secrets behind "
        f"the answer{delta_said(c)}"
    ),
    "bias": lambda c, _: (
        f"reports are right on average, {'the coordinates' if c['values'] is None else 'a value'} "
        f"within {amount(c['maximum'])}, for every secret"
    ),
}
