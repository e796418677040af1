"""The words in which a packed mechanism says what is promised."""

from __future__ import annotations

from collections.abc import Callable

from optmech.audit.document import Body, listing, text
from optmech.audit.inequalities import order_of
from optmech.audit.numbers import Real, real
from optmech.audit.places import NAMED, Places
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
    sides = list(zip(*places.points, strict=True))
    if places.globe:
        (west, east), (south, north) = ((min(side), max(side)) for side in sides)
        return f"{len(places.labels)} places within {box_said(west, south, east, north)}"
    spans = ", ".join(f"{min(side):g} to {max(side):g}" for side in sides)
    return f"{len(places.labels)} places at {spans} {places.unit}".rstrip()


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
    name = distance_said(distance)
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
    mesh = c.get("everywhere")
    if isinstance(mesh, dict):
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


def differential_said(c: Body, _: Statement) -> str:
    adjacency, pairs = c["adjacency"], "all pairs"
    if isinstance(adjacency, dict):
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
