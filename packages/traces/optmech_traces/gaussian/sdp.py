"""min tr(L N Lᵀ) subject to N ≽ A_j for all j and N ≽ φ I: candidates, and a proved bound.

With one A the answer is closed: for L = I, the matrix with the eigenvalues of A raised to φ.
With several it is a semidefinite program. Nothing here is believed: candidates are checked
elsewhere, and the bound is evaluated from multipliers that are made feasible first.

For the box of Meehan and Chaudhuri 2019, Definition 2.2 the A_j are cuts at its vertices: the loss
over |Δ_i| <= r is at most ε exactly when ΔᵀMΔ <= κ = 2ε/(λ r²) for all Δ of ±1, and that exactly
when N ≽ (BΔ)(BΔ)ᵀ/κ − C (docs/theory/trace-privacy.md, "The least noise for the box"). Of the
2^{m-1} vertices of m secret coordinates few matter: the worst one of the noise at hand is added
until none is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TypeVar

import flint
import numpy as np
import scipy.sparse as sp

from optmech.base import conic
from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import ReadOnly, record
from optmech.errors import ProblemError
from optmech_traces.gaussian.balls import (
    BallMatrix,
    Enclosure,
    at_first_precision,
    below,
    elimination_bits,
    enclose,
    of_floats,
    over_box,
    positive_definite,
)
from optmech_traces.gaussian.prior import Axes, conditional

_ROUNDS = 3000
_REGULAR = 1e-8
_APART = 1e-5
"""Weight of directions that the query does not see, so that their noise stays bounded."""


@record
class Candidate:
    """A matrix N that should be feasible, and multipliers Z_j ≽ 0 of N ≽ A_j with Σ Z_j ≼ I,
    in the coordinates of L: Z_j stands for Lᵀ Z_j L."""

    matrix: Floats
    multipliers: dict[int, Floats]


def raised(matrix: Floats, floor: float) -> Floats:
    """The least matrix in trace above both ``matrix`` and ``floor`` times the identity."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor)) @ vectors.T)


def single(matrix: Floats, query: Floats, floor: float) -> Candidate:
    """The optimum for one A and an L of full column rank: L⁻¹(L A Lᵀ)₊L⁻ᵀ, up to the floor."""
    inverse = np.linalg.pinv(query)
    inner = query @ matrix @ query.T
    values, vectors = np.linalg.eigh((inner + inner.T) / 2)
    positive = vectors[:, values > 0]
    above = inverse @ raised((inner + inner.T) / 2, 0.0) @ inverse.T
    return Candidate(raised((above + above.T) / 2, floor), {0: positive @ positive.T})


def several(
    matrices: Sequence[Floats], query: Floats, floor: float, diagonal: bool, solver: str
) -> Candidate | None:
    """The solver's answer, or None where it has none."""
    unit = max(float(np.abs(a).max()) for a in matrices) or 1.0
    size, least = len(matrices[0]), floor / unit
    i, j = conic.places(size)
    entries = len(i)
    # the columns are entries of the triangle of the noise
    free = np.flatnonzero(i == j) if diagonal else np.arange(entries)
    weight = query.T @ query
    weight = weight + _REGULAR * np.trace(weight) / size * np.eye(size)
    own = -sp.eye_array(entries, format="csc")[:, free]
    bounds = [conic.triangle(a / unit) for a in (*matrices, least * np.eye(size))]
    program = conic.ConeProgram(
        conic.triangle(weight)[free],
        sp.csr_array(sp.vstack([own] * len(bounds))),
        -np.concatenate(bounds),
        (conic.Cone("semidefinite", entries),) * len(bounds),
    )
    try:
        found = conic.solve(program, solver, {})
    except ArithmeticError:
        return None
    if found.x is None or not np.isfinite(found.x).all():
        return None
    triangle = np.zeros(entries)
    triangle[free] = found.x
    inverse = np.linalg.pinv(query)
    duals = found.multipliers.reshape(len(bounds), entries)
    multipliers = {k: inverse.T @ conic.symmetric(duals[k]) @ inverse for k in range(len(matrices))}
    return Candidate(unit * conic.symmetric(triangle), multipliers)


def consensus(matrices: Sequence[Floats], query: Floats, floor: float) -> Candidate:
    """The answer for invertible L without a solver, where cones are too large for one.

    Alternating directions on copies X_j ≽ L A_j Lᵀ of one L N Lᵀ, one of them for the floor: a
    round costs an eigenvalue problem for each, and multipliers are positive semidefinite by
    construction.
    """
    bounds = [query @ a @ query.T for a in (*matrices, floor * np.eye(len(matrices[0])))]
    size = len(query)
    unit = max(float(np.linalg.eigvalsh(a)[-1]) for a in bounds)
    bounds = [a / unit for a in bounds]
    step, copies = 1.0, [raised(a, 0.0) for a in bounds]
    scaled = [np.zeros((size, size)) for _ in bounds]
    joint = np.mean(copies, axis=0)
    for k in range(_ROUNDS):
        joint = np.mean([x - u for x, u in zip(copies, scaled, strict=True)], axis=0)
        joint -= np.eye(size) / (step * len(bounds))
        copies = [a + raised(joint + u - a, 0.0) for a, u in zip(bounds, scaled, strict=True)]
        scaled = [u + joint - x for u, x in zip(scaled, copies, strict=True)]
        apart = float(np.sqrt(sum(((joint - x) ** 2).sum() for x in copies)))
        missing = float(np.linalg.norm(np.eye(size) + step * sum(scaled)))
        primal, dual = apart / float(np.linalg.norm(joint)), missing / np.sqrt(size)
        if max(primal, dual) <= _APART:
            break
        factor = 2.0 if primal > 5 * dual else 0.5 if dual > 5 * primal else 1.0
        if k % 10 == 9 and factor != 1.0:
            step *= factor
            scaled = [u / factor for u in scaled]
    inverse = np.linalg.inv(query)
    multipliers = {j: -step * u for j, u in enumerate(scaled[:-1])}
    return Candidate(raised(unit * inverse @ joint @ inverse.T, floor), multipliers)


def lower_bound(
    matrices: Sequence[Enclosure], query: Floats, multipliers: dict[int, Floats], diagonal: bool
) -> float:
    """A number that tr(L N Lᵀ) of no feasible N falls short of, whatever the multipliers.

    Z_j is made G_j G_jᵀ, and all are scaled so that Σ Z_j ≼ I is proved. Then
    tr(L N Lᵀ) ≥ Σ tr(L N Lᵀ Z_j) ≥ Σ tr(A_j Lᵀ Z_j L). With a diagonal N only the diagonal of
    Lᵀ(Σ Z_j)L has to stay below that of LᵀL.
    """
    roots = {j: root for j, z in multipliers.items() if (root := _root(z)).shape[1]}
    if not roots:
        return 0.0
    total = np.sum([root @ root.T for root in roots.values()], axis=0)
    if diagonal:
        ratio = np.einsum("ji,jk,ki->i", query, total, query) / (query**2).sum(axis=0)
        largest = float(ratio.max())
    else:
        largest = float(np.linalg.eigvalsh(total)[-1])
    with flint.ctx.workprec(elimination_bits(len(total))):
        for margin in (1e-13, 1e-11, 1e-8):
            factor = 1.0 / np.sqrt(largest * (1 + margin))
            scaled = {j: of_floats(query.T) * of_floats(factor * root) for j, root in roots.items()}
            if _feasible([of_floats(factor * r) for r in roots.values()], scaled, query, diagonal):
                return max(below(sum(_gain(matrices[j], z) for j, z in scaled.items())), 0.0)
    return 0.0


def _feasible(
    roots: list[flint.arb_mat], scaled: dict[int, flint.arb_mat], query: Floats, diagonal: bool
) -> bool:
    size = roots[0].nrows()
    rest = of_floats(query.T) * of_floats(query) if diagonal else flint.arb_mat(size, size, 1)
    for root in scaled.values() if diagonal else roots:
        rest -= root * root.transpose()
    if diagonal:
        return all(rest[i, i] >= 0 for i in range(rest.nrows()))
    return positive_definite(rest)


def _gain(matrix: Enclosure, root: flint.arb_mat) -> flint.arb:
    """tr(A R Rᵀ) for every A of the enclosure."""
    weight = (root * root.transpose()).entries()
    total = flint.arb(0)
    for w, mid, rad in zip(weight, matrix.mid.flat, matrix.rad.flat, strict=True):
        total += w * (flint.arb(float(mid)) + flint.arb(0, 1) * flint.arb(float(rad)))
    return total


def _root(matrix: Floats) -> Floats:
    """G with G Gᵀ the positive part of a matrix."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > 1e-14 * max(float(values[-1]), 1e-300)
    return np.asarray(vectors[:, kept] * np.sqrt(values[kept]))


LARGEST = 24
"""Coordinates beyond which a conic solver takes minutes for a few cuts."""
_CUTS = 100

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


@record
class Hypotheses(ReadOnly):
    """Hypotheses about one secret set under one prior: ΔᵀMΔ <= κ for all |Δ_i| <= 1."""

    group: Axes
    steps: Ints
    kappa: float

    @cached_property
    def parts(self) -> tuple[Floats, Floats]:
        """B and C in floats."""
        return given_secrets(
            self.group, self.steps, lambda *both: (_floats(both[0]), _floats(both[1]))
        )

    def cut(self, vertex: Floats | None = None) -> Enclosure:
        """(BΔ)(BΔ)ᵀ/κ − C, which N is above exactly where it keeps the limit at Δ; without one
        B Bᵀ/κ − C, for the limit in the ball."""

        def made(mean: BallMatrix, rest: BallMatrix) -> Enclosure | None:
            pushed = mean if vertex is None else mean * of_floats(vertex[:, None])
            found = enclose(pushed * pushed.transpose() * (1 / flint.arb(self.kappa)) - rest)
            return found if found is not None and found.narrow else None

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
    cuts: list[Enclosure], violated: Callable[[Floats], list[Enclosure]], query: Floats,
    floor: float, *, diagonal: bool, solver: str,
) -> tuple[Floats | None, float]:  # fmt: skip
    """The noise of least variance above some cuts and those that it violates, until it violates
    none but for the solver's errors; None where the solver has no answer. And a proved bound of
    the variance of every noise above them."""
    noise, multipliers = None, dict[int, Floats]()
    for _ in range(_CUTS):
        found = several([cut.mid for cut in cuts], query, floor, diagonal, solver)
        if found is None:
            break
        noise, multipliers = found.matrix, found.multipliers
        more = violated(noise)
        if not more:
            break
        cuts = cuts + more
    return noise, lower_bound(cuts, query, multipliers, diagonal)
