"""Reading a family's file strictly: every entry known, of its type and in its range, and written in
the one way in which it is written. What the entries claim is decided elsewhere."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.designs.encoding.problem import decode_domain, encode_domain
from optmech.errors import ProblemError
from optmech.exact.checked import require_keys
from optmech.exact.number import Exact, parse_exact
from optmech.mechanisms.targets.design import TargetDesign
from optmech.spaces.domain import Domain
from optmech.spaces.rationals import Shares
from optmech.spaces.tabulated import NAMED, table
from optmech.transport.joint import Multipliers
from optmech.transport.rational import RationalPlan

Plain = Any
NAMELESS = "matrix"
"""The name of distances that cannot be computed again."""
_KEYS = {
    "digest", "format", "task", "p", "epsilon", "delta", "outside", "secrets", "observables",
    "names", "weights", "distance_name", "distance", "plans", "multipliers", "crowded", "claims",
    "seconds",
}  # fmt: skip
_CLAIMS = {"status", "loss", "lower_bound", "losses", "worst_moves"}
_PLAN = {"input", "output", "moves"}
_HEX = re.compile(r"0|-?[1-9a-f][0-9a-f]{0,99999}", re.ASCII)
_LARGEST_SHIFT = 5000


@dataclass(frozen=True, eq=False)
class StatedDesign:
    """A design as its file has it, and what the file claims of it."""

    design: TargetDesign
    distance_name: str
    claims: dict[str, Any]
    """As ``TargetDesign.claims``."""


def decode_design(body: Plain) -> StatedDesign:
    """The inverse of what ``save_target`` writes; raises ProblemError, LookupError, TypeError or
    ValueError on anything else: an entry that is missing, unknown, of a wrong type or out of range;
    plans without their marginals; distances that are not what their name says."""
    require_keys(body, _KEYS, "targets")
    _require(body["task"] in ("coupling", "target"), "the task is unknown")
    _require(body["outside"] in ("target", "nearest"), "the rule for other inputs is unknown")
    coupled = body["task"] == "coupling"
    _require(
        (type(body["p"]) is int and body["p"] == 1) or (coupled and body["p"] == "inf"),
        "p is neither 1 nor inf, or does not fit the task",
    )
    rows = _list(body["distance"])
    _require(len(rows) > 0, "there are no distances")
    shape = (len(rows), len(_list(rows[0])))
    secrets = _domain(body["secrets"], shape[0])
    observables = _domain(body["observables"], shape[1])
    distance = _matrix(rows, shape)
    name = body["distance_name"]
    known = type(name) is str and (name in NAMED or name == NAMELESS)
    _require(known, "the name of the distances is unknown")
    table(name, [(secrets, observables, distance)])
    names = _list(body["names"])
    _require(all(type(name) is str for name in names), "a name is no text")
    _require(0 < len(names) == len(set(names)), "names are missing or not distinct")
    epsilon, delta = _exact(body["epsilon"], "epsilon"), _exact(body["delta"], "delta")
    _require(delta <= 1, "delta is above 1")
    _require(not coupled or not (epsilon or delta), "outputs of a coupling are equal")
    plans = tuple(_plan(plain, shape, proof=coupled) for plain in _list(body["plans"], len(names)))
    _require(not coupled or body["multipliers"] is None, "a coupling has no multipliers")
    crowded = _list(body["crowded"], len(names) if body["p"] == "inf" else 0)
    claims = body["claims"]
    require_keys(claims, _CLAIMS, "claims")
    _require(claims["status"] in ("optimal", "feasible"), "the status is unknown")
    design = TargetDesign(
        secrets=secrets,
        observables=observables,
        names=tuple(names),
        weights=_shares(body["weights"], len(names)),
        distance=distance,
        plans=plans,
        task=body["task"],
        epsilon=epsilon,
        delta=delta,
        order=float(body["p"]),
        outside=body["outside"],
        multipliers=_multipliers(body["multipliers"], (len(names), len(names), shape[1])),
        crowded=tuple(_set(points, shape[0]) for points in crowded),
        seconds=_real(body["seconds"], "seconds"),
    )
    one = {name: _real(claims[name], name) for name in ("loss", "lower_bound")}
    every = {
        name: tuple(_real(value, name) for value in _list(claims[name], len(names)))
        for name in ("losses", "worst_moves")
    }
    return StatedDesign(design, body["distance_name"], {"status": claims["status"], **one, **every})


def _domain(plain: Plain, count: int) -> Domain:
    """A domain of as many points: a grid may be far larger than its file."""
    size = math.prod(plain["grid"]) if "grid" in plain else len(plain["labels"])
    _require(size == count, f"{size} points for {count} rows or columns of distances")
    domain = decode_domain(plain)
    _require(_text(encode_domain(domain)) == _text(plain), "a domain is written otherwise")
    return domain


def _text(plain: Plain) -> str:
    # true is not 1, nor 1 the same as 1.0
    return json.dumps(plain, sort_keys=True, allow_nan=False)


def _matrix(plain: Plain, shape: tuple[int, int]) -> Floats:
    rows = [_list(row, shape[1]) for row in _list(plain, shape[0])]
    out = np.array([[_real(value, "distance") for value in row] for row in rows])
    out.setflags(write=False)
    return out


def _exact(value: Plain, where: str) -> Exact:
    _require(type(value) in (float, str), f"{where} is no number")
    number = parse_exact(value, where=where)
    # as text, where -0.0 is not 0.0
    _require(json.dumps(number.text) == json.dumps(value), f"{where} is written otherwise")
    return number


def _plan(plain: Plain, shape: tuple[int, int], *, proof: bool) -> RationalPlan:
    """The plan, with both marginals decided in whole numbers."""
    require_keys(plain, _PLAN | {"potentials", "shift"} if proof else _PLAN, "plan")
    first, second = _shares(plain["input"], shape[0]), _shares(plain["output"], shape[1])
    flows: dict[tuple[int, int], int] = {}
    sums = [[0] * shape[0], [0] * shape[1]]
    before = (-1, -1)
    for move in _list(plain["moves"]):
        x, y, text = _list(move, 3)
        place, flow = (_index(x, shape[0]), _index(y, shape[1])), _whole(text)
        _require(before < place and flow > 0, "moves are not in order, or move nothing")
        flows[place], before = flow, place
        sums[0][x] += flow
        sums[1][y] += flow
    total = sum(flows.values())
    _require(total > 0, "a plan moves nothing")
    for side, given in zip(sums, (first, second), strict=True):
        exact = all(a * given.total == b * total for a, b in zip(side, given.units, strict=True))
        _require(exact, "a plan does not have its marginals")
    if not proof:
        return RationalPlan(first, second, flows, total, ((0,) * shape[0], (0,) * shape[1]), 0)
    u, v = (
        tuple(_whole(text) for text in _list(side, count))
        for side, count in zip(_list(plain["potentials"], 2), shape, strict=True)
    )
    for potentials, given in ((u, first), (v, second)):
        idle = [p for p, unit in zip(potentials, given.units, strict=True) if not unit]
        _require(not any(idle), "a point without mass has a potential")
    return RationalPlan(first, second, flows, total, (u, v), _shift(plain["shift"]))


def _multipliers(plain: Plain, shape: tuple[int, int, int]) -> Multipliers | None:
    if plain is None:
        return None
    require_keys(plain, {"values", "shift"}, "multipliers")
    values = tuple(
        tuple(tuple(_whole(text) for text in _list(row, shape[2])) for row in _list(part, shape[1]))
        for part in _list(plain["values"], shape[0])
    )
    _require(min(min(min(row) for row in part) for part in values) >= 0, "a multiplier is below 0")
    own = any(any(part[t]) for t, part in enumerate(values))
    _require(not own, "an input has a multiplier with itself")
    return Multipliers(values, _shift(plain["shift"]))


def _shares(texts: Plain, count: int) -> Shares:
    units = [_whole(text) for text in _list(texts, count)]
    _require(min(units) >= 0 and any(units), "no distribution")
    return Shares.reduced(units)


def _set(points: Plain, count: int) -> tuple[int, ...]:
    """Points, each once: their masses are added."""
    found = tuple(_index(x, count) for x in _list(points))
    _require(len(set(found)) == len(found), "a point occurs twice in a set")
    return found


def _list(value: Plain, count: int | None = None) -> list[Plain]:
    _require(type(value) is list, "a list is missing")
    _require(count in (None, len(value)), f"a list has {len(value)} entries, and not {count}")
    return list(value)


def _index(value: Plain, count: int) -> int:
    _require(type(value) is int and 0 <= value < count, f"{value!r} is no point")
    return int(value)


def _whole(text: Plain) -> int:
    _require(type(text) is str and _HEX.fullmatch(text) is not None, f"{text!r:.40} is no number")
    return int(text, 16)


def _real(value: Plain, where: str) -> float:
    usable = type(value) is float and math.isfinite(value) and value >= 0
    _require(usable, f"{value!r:.40} is no number >= 0 for {where}")
    return float(value)


def _shift(value: Plain) -> int:
    _require(type(value) is int and 0 <= value <= _LARGEST_SHIFT, "a shift is unusable")
    return int(value)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ProblemError(message, where="targets")
