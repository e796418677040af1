"""A design as the plain values that its page displays: arrays and text inside HTML, compact, exact
and unable to end the script they are in, and the packed mechanism that the page samples."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis import measures
from optmech.base.arrays import Floats, ends_of
from optmech.base.extensions import FILES, installed
from optmech.certificate.families import Ratio
from optmech.designs import prices
from optmech.designs.design import Design
from optmech.designs.notes import threshold_notes
from optmech.designs.promise import guess_words, length_words, times
from optmech.designs.sentences import figures as figures_of, nearness
from optmech.problem import MetricPrivacy, Problem
from optmech.problem.attack import choose_distance
from optmech.show import figures, words
from optmech.show.figures import Measured, blind_error, measure_constraints
from optmech.spaces.distances import Distance
from optmech.spaces.domain import Domain
from optmech.spaces.layout import Layout, Plane, layout
from optmech.spaces.observables import Suppressible

Plain = Any

_TYPES = {"f64": "<f8", "f32": "<f4", "u32": "<u4", "u16": "<u2"}
_ESCAPES = {code: f"\\u{code:04x}" for code in map(ord, "<>&")}


class Store:
    """Arrays by content, so that designs of one problem share theirs.

    ``entries`` maps a name to little-endian numbers in base64; ``double`` says whether matrices
    are kept exactly, ``light`` that there are too many designs for their mechanisms.
    """

    def __init__(self, double: bool = True) -> None:
        self.entries: dict[str, Plain] = {}
        self.double = double
        self.light = False

    def put(self, values: ArrayLike, kind: str) -> str:
        """Keep an array as ``kind`` ("f64", "f32", "u32" or "u16"); returns its name."""
        array = np.ascontiguousarray(values, dtype=_TYPES[kind])
        raw = array.tobytes()
        name = f"{kind}-{hashlib.sha256(raw).hexdigest()[:16]}-{array.size}"
        if name not in self.entries:
            self.entries[name] = {"kind": kind, "base64": base64.b64encode(raw).decode("ascii")}
        return name

    def matrix(self, values: Floats) -> Plain:
        """Keep probabilities, as they are or as logarithms (relative error below 1e-5)."""
        if self.double:
            return {"array": self.put(values, "f64"), "form": "p"}
        with np.errstate(divide="ignore"):
            return {"array": self.put(np.log(values), "f32"), "form": "log"}


def number(value: float) -> Plain:
    """A float for JSON, which has no infinities: these become text, nan becomes null."""
    value = float(value)
    if math.isnan(value):
        return None
    return value if math.isfinite(value) else str(value)


def script_json(value: Plain) -> str:
    """JSON that can stand inside a ``<script>`` element whatever text it holds."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).translate(_ESCAPES)


def sampler(design: Design) -> Plain:
    """The packed file of a design, and at what loss; None where it is large, no whole numbers were
    found that keep its promises at a similar loss, or what packs is not installed."""
    packing = installed(FILES, "packed")
    return None if packing is None else packing.sampler(design)


def client_script() -> str:
    """``const client = …;``, which samples packed files; nothing where what packs is not
    installed."""
    packing = installed(FILES, "packed")
    return "" if packing is None else str(packing.client_script())


_PAIRS = 12
_TELLING_GAP = 0.01
"""Multipliers that prove less say little of what a change is worth: no prices are shown."""
STEPS = 2**16 - 1


def heading(design: Design, name: str, notes: Sequence[str]) -> Plain:
    """What the page says of either sort of design."""
    problem = design.problem
    loss = figures.loss_name(problem)
    points = None
    if design.exact is not None:
        promise = design.promise
        odds = [
            [f"{length_words(metres)} {promise.apart}", times(factor)]
            for metres, factor in promise.odds.items()
        ]
        # a figure and its sign stay on one line
        guess = guess_words(design.mechanism, problem.prior).replace(" %", "\N{NO-BREAK SPACE}%")
        repeats = promise.repeats
        points = {"sentence": promise.sentence, "odds": odds, "guess": guess, "repeats": repeats}
    known = {key: number(getattr(design, key)) for key in ("loss", "lower_bound", "bound", "gap")}
    stated = [] if design.exact is None else list(figures_of(design))
    return known | {
        "why": {own.field: own.why for own in stated},
        "unproved": [own.field for own in stated if not own.known],
        "nearness": nearness(design) if stated else "",
        "name": name,
        "title": problem.title or name,
        "status": design.status,
        "reason": design.reason,
        "verified": design.verified,
        "notes": [*design.notes, *notes],
        "lead": words.lead(design, loss),
        "points": points,
        "words": [list(row) for row in words.describe(problem, loss)],
        "objective": problem.statement.objective,
        "value": number(design.objective),
        "engine": f"{design.engine} ({design.engine_reason})",
        "seconds": number(design.seconds),
        "bits": None if design.exact is None else design.exact.bits,
        "lossName": loss,
        "lossUnit": problem.space.unit_of(loss),
        "checks": [
            {"name": c.name, "constraint": c.constraint, "inequalities": c.inequalities,
             "passed": c.passed, "detail": c.detail}
            for c in design.certificate.checks
        ],
    }  # fmt: skip


def design_payload(design: Design, name: str, store: Store) -> Plain:
    """Everything that the page says about one design."""
    problem = design.problem
    out = heading(design, name, threshold_notes(design)) | {
        "secrets": domain_payload(problem.secrets, store),
        "rounding_cost": number(design.rounding_cost),
    }
    if design.exact is None:
        return out | {"mechanism": None, "constraints": constraints(problem, [], [])}
    if store.light:
        m = design.mechanism
        name, distance = choose_distance(problem)
        error = measures.distortion(m, problem.prior, distance)
        return out | {
            "mechanism": None,
            "attack": _attack(design, name, distance, error),
            "constraints": constraints(problem, measure_constraints(problem, m), []),
        }
    out["sampler"] = sampler(design)
    return out | _mechanism(design, store)


def _attack(design: Design, name: str, distance: Distance, error: float) -> Plain:
    problem = design.problem
    return {
        "distance": name,
        "unit": problem.space.unit_of(name),
        "error": number(error),
        "blind": number(blind_error(problem, distance)),
        "vulnerability": number(measures.bayes_vulnerability(design.mechanism, problem.prior)),
    }


def _mechanism(design: Design, store: Store) -> Plain:
    problem, m = design.problem, design.mechanism
    name, distance = choose_distance(problem)
    adversary = figures.adversary(m, problem.prior, distance)
    per_secret = (m.matrix * problem.loss_matrix).sum(axis=1)
    limits = problem.statement.log_ratio
    spread = figures.spread(m.matrix, limits)
    same = problem.observables.labels == problem.secrets.labels
    telling = design.gap <= _TELLING_GAP
    return {
        "mechanism": store.matrix(m.matrix),
        "observables": None if same else domain_payload(problem.observables, store),
        "prior": store.put(problem.prior.weights, "f64"),
        "marginal": store.put(adversary.marginal, "f64"),
        "guess": store.put(adversary.guess, "u32"),
        "guessError": store.put(adversary.error, "f64"),
        "guessRight": store.put(adversary.right, "f64"),
        "lossPerSecret": store.put(per_secret, "f64"),
        "errorPerSecret": store.put(adversary.per_secret, "f64"),
        "allowed": None if spread is None else store.put(limits, "f64" if store.double else "f32"),
        "rate": _rate(problem),
        "windowed": any(part.window is not None for part in problem.statement.of_kind(Ratio)),
        "spread": None if spread is None else {
            "counts": store.put(spread.counts, "u32"),
            "bins": figures.BINS,
            "top": spread.top,
            "beyond": spread.beyond,
        },
        "attack": _attack(design, name, distance, adversary.total),
        "constraints": constraints(
            problem,
            measure_constraints(problem, m),
            list(prices.of_constraints(design)) if telling else [],
        ),
        "pairs": [
            [*p.indices, number(p.allowed), number(p.rate)]
            for p in (prices.of_pairs(design, _PAIRS) if telling else ())
        ],
    }  # fmt: skip


def constraints(
    problem: Problem, measured: list[Measured], priced: list[prices.Price]
) -> list[Plain]:
    """Every promise in words, what the mechanism keeps of it, and what it costs."""
    kept = {
        row.constraint: {
            "quantity": row.quantity,
            "unit": words.unit_of_promise(problem, row.constraint, row.quantity),
            "sense": row.sense,
            "promised": number(row.promised),
            "measured": number(row.measured),
        }
        for row in measured
    }
    unknown = dict.fromkeys(("quantity", "unit", "sense", "promised", "measured"))
    return [
        {
            "kind": constraint.called,
            "promise": constraint.promise(problem.space),
            **kept.get(k, unknown),
            "prices": [
                {"parameter": p.parameter, "value": number(p.value), "rate": number(p.rate)}
                for p in priced
                if p.constraint == k
            ],
        }
        for k, constraint in enumerate(problem.constraints)
    ]


def _rate(problem: Problem) -> Plain:
    """ε where one plain metric privacy is all that limits pairs: distances follow from it."""
    stated = [part for part in problem.statement.of_kind(Ratio) if part.window is None]
    if len(stated) != 1:
        return None
    constraint = problem.constraints[stated[0].index]
    if not isinstance(constraint, MetricPrivacy) or not constraint.epsilon > 0:
        return None
    per = problem.space.per(constraint.distance)
    return {"epsilon": float(constraint.epsilon), "per": per}


def domain_payload(domain: Domain, store: Store) -> Plain:
    """Labels, and what the elements are drawn with: a map, a line or bars."""
    out: Plain = {
        "labels": [words.label(label) for label in domain.labels],
        "unit": domain.unit,
        "suppressed": isinstance(domain, Suppressible),
        "map": None,
        "line": None,
    }
    if domain.points is not None and domain.points.shape[1] == 1:
        out["line"] = store.put(domain.points[:, 0], "f64")
    drawn = layout(domain)
    if drawn is not None:
        frame, placed = framed(drawn.corners, drawn, store)
        out["map"] = frame | {
            "centres": placed(drawn.centres),
            "corners": placed(drawn.corners),
            "ringEnds": store.put(drawn.ring_ends, "u32"),
            "shapeEnds": store.put(drawn.shape_ends, "u32"),
            "exact": drawn.exact,
        }
    return out


def framed(
    points: Floats, drawn: Plane | Layout, store: Store
) -> tuple[dict[str, Plain], Callable[[Floats], str]]:
    """Where the box of some points is drawn, and how points in it are kept: in sixteen bits."""
    low, high = ends_of(points)
    width, height = (high - low).tolist()
    size = max(width, height) or 1.0
    frame = {
        "origin": low.tolist(),
        "width": width,
        "height": height,
        "size": size,
        "unit": drawn.unit,
        "degrees": drawn.degrees,
    }
    return frame, lambda inner: store.put(np.rint((inner - low) / size * STEPS), "u16")
