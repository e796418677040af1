"""What a packed mechanism says of the promises of its design, as data."""

from __future__ import annotations

from collections.abc import Callable

from optmech_audit.document import Body, fields, listing, text
from optmech_audit.inequalities import order_of
from optmech_audit.numbers import Real, real, rounded_up
from optmech_audit.places import NAMED, Places
from optmech_audit.statements import Statement

COURSES = {"euclidean": "straight", "haversine": "great circle", "manhattan": "manhattan"}
IN_THE_UNIT = ("euclidean", "manhattan", "graph", "roads")
FOR_USE = ("use", "all", "none")
FIXED = {
    "distribution_privacy": ("distributions", "listed", "unknown"),
    "pufferfish": ("answers", "listed", "unknown"),
    "policy_graph": ("secrets", "joined", "adds"),
    "maximal_leakage": ("guesses", "all", "adds"),
    "pointwise_maximal_leakage": ("guesses", "all", "unknown"),
    "additive_capacity": ("guesses", "all", "complement"),
    "gain_leakage": ("guesses", "all", "unknown"),
    "distortion_privacy": ("guesses", "all", "unknown"),
    "mutual_information": ("average", "all", "adds"),
    "linear": ("unknown", "all", "unknown"),
    **dict.fromkeys(("loss_bound", "bias", "support", "fixed_rows"), FOR_USE),
}  # of kinds that are always the same: between what, of which pairs, and of several reports


def clauses_of(constraints: object, stated: Statement) -> list[Body]:
    """The promises of a design in the form of a packed file."""
    return [clause(fields(c), stated) for c in listing(constraints)]


def clause(c: Body, stated: Statement) -> Body:
    kind = text(c["kind"], "the kind")
    ratio = kind in ("metric_privacy", "differential_privacy", "policy_graph")
    delta = c.get("delta")
    more: Body = {}
    out: Body = {"kind": kind, "limit": None, "measure": None, "details": more}
    out["epsilon"] = above(c["epsilon"]) if ratio else None
    out["delta"] = None if delta is None or Real.read(delta).zero else above(delta)
    out["bound"] = None if ratio else bound(c)
    out["scope"], out["pairs"], out["repeats"] = FIXED.get(kind, ("secrets", "all", "adds"))
    if kind == "ratios":
        whole = (
            c["of"] is None
            and c["reports"] is None
            and len(listing(fields(c["log_ratio"])["shape"])) == 2
        )
        out["scope"], out["pairs"], out["repeats"] = (
            ("secrets", "listed", "adds") if whole else ("unknown", "all", "unknown")
        )
    if kind in MORE:
        MORE[kind](c, out, more, stated)
    if c.get("prior") is not None:
        more["other"] = True
    if c.get("radius") is not None and kind in (
        "gain_leakage",
        "distortion_privacy",
        "pointwise_maximal_leakage",
    ):
        within = c.get("within")
        name = "total variation" if within is None else distance_said(within)
        more |= {"radius": above(c["radius"]), "within": name}
    return out


def above(value: object) -> float:
    """The least float that is not below a number."""
    return float(rounded_up(Real.read(value).bounds().high))


def below(value: object) -> float:
    return -float(rounded_up(-Real.read(value).bounds().low))


def bound(c: Body) -> float | None:
    """What is limited, rounded to the safe side."""
    if "minimum" in c:
        return below(c["minimum"])
    stated = c.get("maximum", c.get("epsilon"))
    return None if stated is None else above(stated)


def distance_said(distance: object) -> str:
    """A name that was computed again, or that there is none."""
    name = text(distance["name"] if isinstance(distance, dict) else distance, "a name")
    if name in NAMED:
        return name
    called = "" if name in ("matrix", "given") else f", called {name!r} in the file"
    return f"given as a matrix{called}"


def measure(distance: object, secrets: Places) -> tuple[Body, str]:
    """A distance between secrets, and between what it is one."""
    name = distance_said(distance)
    unit = "km" if name == "haversine" else secrets.unit if name in IN_THE_UNIT else ""
    course = COURSES.get(name, "")
    if secrets.bounds is not None and name != "haversine":
        course = "flat" if course == "straight" else ""
    scope = "secrets"
    if course and secrets.points is not None:
        scope = "cells" if secrets.size is not None and name == "euclidean" else "places"
    return {"name": name, "unit": unit, "course": course}, scope


def metric(c: Body, out: Body, more: Body, stated: Statement) -> None:
    if mesh := fields(c.get("everywhere")):
        name, globe = text(c["distance"], "a name"), mesh["coordinates"] == "lonlat"
        unit = "km" if globe else mesh["unit"] or stated.secrets.unit
        course = "roads" if name == "roads" else COURSES[name]
        out["measure"] = {"name": name, "unit": unit, "course": course}
        out["scope"] = "every point"
        return
    out["measure"], out["scope"] = measure(c["distance"], stated.secrets)
    if c["threshold"] is not None:
        out["pairs"], out["limit"] = "near", real(c["threshold"])
    elif any(None in listing(row) for row in listing(fields(c["distance"])["secrets"])):
        out["pairs"], more["finite"] = "listed", True
    if c["observable_threshold"] is not None:
        if out["pairs"] == "near":
            more["near"] = out["limit"]
        out["pairs"], out["limit"] = "reached", real(c["observable_threshold"])


def differential(c: Body, out: Body, more: Body, stated: Statement) -> None:
    adjacency = c["adjacency"]
    if fields(c.get("everywhere")):
        out["scope"] = "every point"
    elif isinstance(adjacency, dict):
        out["pairs"], out["limit"] = "near", real(adjacency["radius"])
        out["measure"], _ = measure(adjacency["distance"], stated.secrets)
    elif adjacency != "all":
        out["pairs"], more["listed"] = "listed", len(listing(adjacency))


def graph(c: Body, out: Body, more: Body, stated: Statement) -> None:
    out["measure"] = {"name": "graph", "unit": "", "course": ""}
    more["edges"] = len(listing(c["graph"]))


def distributions(c: Body, out: Body, more: Body, stated: Statement) -> None:
    kind = text(c["divergence"], "the divergence")
    order = order_of(kind)
    more["divergence"] = kind if order is None else "renyi"
    if order is not None:
        more["order"] = float(rounded_up(order))
    if c["scale"] is not None:
        more["scaled"] = True
    pairs(c, out, more, stated)


def pairs(c: Body, out: Body, more: Body, stated: Statement) -> None:
    more["listed"] = len(listing(c["pairs"]))


def renyi(c: Body, out: Body, more: Body, stated: Statement) -> None:
    more["order"] = above(c["order"])
    if c["distance"] is not None:
        out["measure"], out["scope"] = measure(c["distance"], stated.secrets)


def distortion(c: Body, out: Body, more: Body, stated: Statement) -> None:
    more["distance"] = distance_said(c["distance"])


def gains(c: Body, out: Body, more: Body, stated: Statement) -> None:
    if not isinstance(c["gain"], str):
        more["guesses"] = len(listing(c["gain"]))


MORE: dict[str, Callable[[Body, Body, Body, Statement], None]] = {
    "metric_privacy": metric,
    "differential_privacy": differential,
    "policy_graph": graph,
    "distribution_privacy": distributions,
    "pufferfish": pairs,
    "renyi_privacy": renyi,
    "distortion_privacy": distortion,
    "gain_leakage": gains,
}


def objective(goal: object) -> str:
    """What is optimised."""
    if isinstance(goal, dict):
        return "minimize_leakage" if "gain" in goal else "maximize_distortion"
    return text(goal, "the objective")
