"""Privacy at every point: gradients and pairs of points evaluated here from the released numbers,
losses and other constraints in fractions, and bounds against linear programs over the places."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

import optmech as om
from tests.referee_constraints import Drawn, draw, least, room

from .resolution import FAR, losses, places, weights

SIDE = 4.0
_RADIUS = 6371.0088
_NEAR = 1e-9
"""What pairs in floats may be off."""
_ROOM = 1e-6
"""What is to spare where a mechanism has to be found."""


def judge(rng: np.random.Generator) -> Iterator[str]:
    n, m = int(rng.integers(1, 9)), int(rng.integers(1, 5))
    at, globe = places(rng, n), bool(rng.random() < 0.4)
    prior, cost = weights(rng, n), losses(rng, at, m)
    epsilon = float(rng.choice([1e-12, 1e-7, 0.1, 1.0, 3.0, 30.0]))
    degree = int(rng.integers(1, 4))
    box = np.array([0.0, 0, SIDE, SIDE])
    if globe:
        # a hundredth of a degree for a unit
        at, epsilon = [10.0, 45.0] + 0.01 * at, epsilon / 1.1
        box = np.array([9.995, 44.995, 10.045, 45.045])
    kind = {"coordinates": "lonlat"} if globe else {}
    distance = om.distances.haversine() if globe else om.distances.euclidean()
    width = float(rng.choice([1.4, 2.0, 4.0])) * (1.2 if globe else 1.0)
    mesh = om.Mesh.grid(tuple(box.tolist()), width, degree=degree, **kind)
    domain = om.Domain(range(n), at, **kind)
    stated_prior = om.Prior(domain, prior)
    prior = stated_prior.weights
    beside = list(draw(rng, prior, n, m))
    promise = om.MetricPrivacy(epsilon, distance, everywhere=mesh)
    stated = om.Problem(
        stated_prior,
        cost,
        om.Domain(range(m)),
        constraints=[promise, *(drawn.stated for drawn in beside)],
    )
    try:
        design = om.solve(stated, gap=1e-4, time_limit=10)
    except (om.SolverError, om.VerificationError) as error:
        # said where others leave no room, and there is no proof that they leave nothing
        if (spare := room(cost, beside)) > _ROOM:
            yield f"one row keeps everything with {spare} to spare: {error}"
        return
    if design.status == "infeasible":
        yield from _infeasible(design, cost, beside)
        return
    if not design.verified:
        # without others, what always reports the same keeps everything stated here
        yield f"{design!r} is not verified"
        return
    own = _Own(mesh, design.exact.rows, design.exact.bits)
    yield from own.gradients(epsilon, globe)
    yield from own.pairs(rng, epsilon, globe, box)
    yield from _figures(design, own, at, prior, cost, beside)
    least_loss = least(prior, cost, epsilon * _apart(at, at, globe), beside, FAR)
    scale = 1e-6 * max(float(cost.max()), 1e-300)
    if not design.lower_bound <= design.loss:
        yield f"the lower bound {design.lower_bound} is above the loss {design.loss}"
    if not design.lower_bound <= least_loss + scale:
        yield f"the lower bound is {design.lower_bound}, and a program has {least_loss}"
    # where a solver finds none, the fractions above have shown one
    if math.isfinite(least_loss) and not design.loss >= least_loss - scale:
        yield f"the loss is {design.loss}, and a program has {least_loss}"
    if not design.bound <= design.loss:
        yield f"the bound {design.bound} is above the loss {design.loss}"
    free = not cost[prior > 0].any(axis=0).all()
    if free and not beside and (design.loss, design.status) != (0, "optimal"):
        yield f"one report costs nothing anywhere, and the loss is {design.loss}"


def _infeasible(design: om.Design, cost: np.ndarray, beside: list[Drawn]) -> Iterator[str]:
    """What always reports the same is private at every point: others alone may forbid it."""
    if design.exact is not None or not design.reason:
        yield f"{design!r} is infeasible, with a mechanism or without a reason"
    if (spare := room(cost, beside)) > _ROOM:
        yield f"{design!r}, and one row keeps everything with {spare} to spare"


def _apart(one: np.ndarray, other: np.ndarray, globe: bool) -> np.ndarray:
    if not globe:
        return np.asarray(np.hypot(*(one[:, None] - other).transpose(2, 0, 1)))
    a, b = np.radians(one)[:, None], np.radians(other)
    half = (
        np.sin((b[..., 1] - a[..., 1]) / 2) ** 2
        + np.cos(a[..., 1]) * np.cos(b[..., 1]) * np.sin((b[..., 0] - a[..., 0]) / 2) ** 2
    )
    return np.asarray(2 * _RADIUS * np.arcsin(np.sqrt(half)))


def _figures(
    design: om.Design,
    own: _Own,
    at: np.ndarray,
    prior: np.ndarray,
    cost: np.ndarray,
    beside: list[Drawn],
) -> Iterator[str]:
    if any(sum(row) != own.unit or min(row) < 0 for row in own.rows):
        yield "a row is no distribution"
    loss, rows = Fraction(0), [own.exactly(point) for point in at.tolist()]
    for point, p, costs, row in zip(at.tolist(), prior.tolist(), cost.tolist(), rows, strict=True):
        if sum(row) != 1:
            yield f"probabilities at {point} sum to {float(sum(row))}"
        loss += Fraction(p) * sum(Fraction(c) * v for c, v in zip(costs, row, strict=True))
    if not loss <= Fraction(design.loss) <= loss * (1 + Fraction(1, 2**50)) + Fraction(1, 2**310):
        yield f"the loss is {float(loss)!r} and not {design.loss!r}"
    for drawn in beside:
        if (over := drawn.over(rows)) > 0:
            yield f"{drawn.stated!r} is broken by {float(over)}"
    for note in (*design.notes, design.reason):
        if "failed" in note or "Error" in note:
            yield note


class _Own:
    """A mechanism on triangles by de Casteljau's scheme; coefficients of a triangle of degree d
    are in the order of its third index, then of its second (docs/packed.md)."""

    def __init__(self, mesh: om.Mesh, rows: tuple[tuple[int, ...], ...], bits: int) -> None:
        self.rows, self.unit, self.degree = rows, 1 << bits, mesh.degree
        d = mesh.degree
        self.indices = [(d - j - k, j, k) for k in range(d + 1) for j in range(d + 1 - k)]
        self.control = mesh.control.tolist()
        self.corners = [[mesh.vertices[v].tolist() for v in t] for t in mesh.triangles.tolist()]
        self.floats = np.array(rows, dtype=object) / self.unit
        self.floats = self.floats.astype(float)

    def weights(self, corners: list[list[float]], point: list[float]) -> list[Fraction]:
        (ax, ay), (bx, by), (cx, cy) = ([Fraction(v) for v in c] for c in corners)
        x, y = map(Fraction, point)
        area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        two = ((x - ax) * (cy - ay) - (y - ay) * (cx - ax)) / area
        three = ((bx - ax) * (y - ay) - (by - ay) * (x - ax)) / area
        return [1 - two - three, two, three]

    def exactly(self, point: list[float]) -> list[Fraction]:
        """The probabilities at a point, in the first triangle that holds it."""
        found = ((t, self.weights(corners, point)) for t, corners in enumerate(self.corners))
        t, weights = next((t, weights) for t, weights in found if min(weights) >= 0)
        parts = [
            math.factorial(self.degree)
            * math.prod(w**k / math.factorial(k) for w, k in zip(weights, index, strict=True))
            for index in self.indices
        ]
        own = [self.rows[r] for r in self.control[t]]
        return [
            sum((b * row[o] for b, row in zip(parts, own, strict=True)), Fraction(0)) / self.unit
            for o in range(len(self.rows[0]))
        ]

    def gradients(self, epsilon: float, globe: bool) -> Iterator[str]:
        """Slopes of p at corners and random points of all triangles, against ε p."""
        d = self.degree
        rng = np.random.default_rng(len(self.rows))
        for t, corners in enumerate(self.corners):
            (ax, ay), (bx, by), (cx, cy) = corners
            area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
            slopes = np.array([[by - cy, cx - bx], [cy - ay, ax - cx], [ay - by, bx - ax]]) / area
            own = self.floats[self.control[t]]
            # constants do not rise: differences keep the digits of small ratios
            first = self.rows[self.control[t][0]]
            rises = np.array(
                [
                    [
                        float(Fraction(v - u, self.unit))
                        for v, u in zip(self.rows[r], first, strict=True)
                    ]
                    for r in self.control[t]
                ]
            )
            spots = [*np.eye(3), *(rng.dirichlet([0.5] * 3) for _ in range(4))]
            for spot in spots:
                value, slope = np.zeros(own.shape[1]), np.zeros((2, own.shape[1]))
                for index, row, rise in zip(self.indices, own, rises, strict=True):
                    value += _term(index, spot, d) * row
                    for k in range(3):
                        if index[k]:
                            less = tuple(v - (i == k) for i, v in enumerate(index))
                            part = d * _term(less, spot, d - 1)
                            slope += part * slopes[k][:, None] * rise
                if globe:
                    # a degree is so many kilometres here
                    latitude = spot @ [ay, by, cy]
                    unit = math.pi / 180 * _RADIUS
                    slope = slope / [[unit * math.cos(math.radians(latitude))], [unit]]
                steep = np.hypot(*slope)
                for o in np.flatnonzero(steep > epsilon * value * (1 + _NEAR)):
                    yield f"triangle {t} at {spot}: p({o}) = {value[o]} rises by {steep[o]}"

    def pairs(
        self, rng: np.random.Generator, epsilon: float, globe: bool, box: np.ndarray
    ) -> Iterator[str]:
        """Ratios of exact probabilities at pairs of points, corners among them."""
        points = np.vstack(
            [
                box[:2] + (box[2:] - box[:2]) * rng.random((4, 2)),
                [self.corners[k][j] for k, j in ((0, 0), (-1, 2))],
            ]
        )
        inside = np.clip(points, box[:2], box[2:])
        exact = [self.exactly(point) for point in inside.tolist()]
        most = epsilon * _apart(inside, inside, globe)
        for i, row in enumerate(exact):
            for j, other in enumerate(exact):
                over = max(_rise(a, b) for a, b in zip(row, other, strict=True))
                if over > most[i, j] * (1 + _NEAR):
                    yield f"{inside[i]} and {inside[j]}: {over} and not {most[i, j]}"


def _rise(a: Fraction, b: Fraction) -> float:
    """ln (a / b)."""
    if a <= b:
        return 0.0
    return math.inf if b == 0 else math.log1p(float(a / b - 1))


def _term(index: tuple[int, ...], spot: np.ndarray, degree: int) -> float:
    found = float(math.factorial(degree))
    for w, k in zip(spot, index, strict=True):
        found *= float(w) ** k / math.factorial(k)
    return found
