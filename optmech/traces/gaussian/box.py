"""The noise of least variance for the box of TP19 Definition 2.2, by cuts at its vertices.

The loss over |Δ_i| <= r is at most ε exactly when ΔᵀMΔ <= κ = 2ε/(λ r²) for all Δ of ±1, and that
exactly when N ≽ (BΔ)(BΔ)ᵀ/κ − C (docs/theory.md, "The least noise for the box"). Of the 2^{m-1}
vertices of m secret coordinates few matter: the worst one of the noise at hand is added until none
is left. Nothing here is believed: the noise is measured and the bound is proved elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import flint
import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly
from optmech.errors import ProblemError
from optmech.traces.gaussian import sdp
from optmech.traces.gaussian.balls import (
    BallMatrix,
    Enclosure,
    at_first_precision,
    enclose,
    of_floats,
)
from optmech.traces.gaussian.extremes import over_box
from optmech.traces.gaussian.information import Axes, conditional

LARGEST = 24
"""Coordinates beyond which a conic solver takes minutes for a few cuts."""
_ROUNDS = 100
_TOLERANCE = 1e-8

Made = TypeVar("Made")


def given_secrets(
    group: Axes, steps: Ints, make: Callable[[BallMatrix, BallMatrix], Made | None]
) -> Made:
    """What is made of B and C at the first precision that suffices for it."""
    secrets = np.searchsorted(group.coordinates, group.of_steps(steps))

    def attempt() -> Made | None:
        return make(*conditional(group.covariance(group.trace.balls()), secrets))

    found = at_first_precision(attempt)
    if found is None:
        raise ProblemError(
            f"the positions {steps.tolist()} determine each other: no finite noise protects them",
            where="secret_sets",
            remedy="Use fewer secrets, or a kernel that is not singular on them",
        )
    return found


def narrow(matrix: BallMatrix) -> Enclosure | None:
    """Its enclosure, where that is as narrow as floats allow."""
    found = enclose(matrix)
    return found if found is not None and found.narrow else None


@dataclass(frozen=True, eq=False)
class Hypotheses(ReadOnly):
    """Those about one secret set under one prior: ΔᵀMΔ <= κ for all |Δ_i| <= 1."""

    group: Axes
    steps: Ints
    kappa: float

    @cached_property
    def parts(self) -> tuple[Floats, Floats]:
        """B and C in floats."""
        return given_secrets(
            self.group, self.steps, lambda *both: (_floats(both[0]), _floats(both[1]))
        )

    def cut(self, vertex: Floats) -> Enclosure:
        """(BΔ)(BΔ)ᵀ/κ − C, which N is above exactly where it keeps the limit at Δ."""
        column = of_floats(vertex[:, None])

        def made(mean: BallMatrix, rest: BallMatrix) -> Enclosure | None:
            pushed = mean * column
            return narrow(pushed * pushed.transpose() * (1 / flint.arb(self.kappa)) - rest)

        return given_secrets(self.group, self.steps, made)

    def worst(self, noise: Floats) -> tuple[Floats, float]:
        """The worst vertex found for a noise, and ΔᵀMΔ/κ there, in floats."""
        mean, rest = self.parts
        told = mean.T @ np.linalg.solve(noise + rest, mean)
        told = (told + told.T) / 2
        point = over_box(Enclosure(told, np.zeros_like(told))).point
        return point, float(point @ told @ point) / self.kappa


def _floats(matrix: BallMatrix) -> Floats:
    """The middles of its balls."""
    return np.array([[float(entry.mid()) for entry in row] for row in matrix.tolist()])


def search(
    asked: list[Hypotheses], start: Floats, query: Floats, floor: float, *,
    diagonal: bool, solver: str,
) -> tuple[Floats, float]:  # fmt: skip
    """A noise that keeps all of them but for the solver's errors, and a proved bound of the
    variance of every noise that does. ``start`` is a noise to look for the first cuts with."""
    noise, cuts = start, list[Enclosure]()
    known: set[tuple[int, bytes]] = set()
    multipliers: dict[int, Floats] = {}
    for _ in range(_ROUNDS):
        fresh = False
        for k, one in enumerate(asked):
            vertex, excess = one.worst(noise)
            key = (k, (vertex * vertex[0]).astype(np.int8).tobytes())
            if key not in known and (not cuts or excess > 1 + _TOLERANCE):
                known.add(key)
                cuts.append(one.cut(vertex))
                fresh = True
        if not fresh:
            break
        found = sdp.several([cut.mid for cut in cuts], query, floor, diagonal, solver)
        if found is None:
            break
        noise, multipliers = found.matrix, found.multipliers
    return noise, sdp.lower_bound(cuts, query, multipliers, diagonal)
