"""What kinds share that bound ratios of probabilities: between pairs of secrets, or at every point
of a meshed region, line or network, as a part of a problem over places.

The places of such a problem are what the prior and the loss speak of. In a region what is promised
is not about them: the mechanism has a row for every control point of the mesh. Of a mesh of
dimension one they are its vertices, and the promise is one about ratios of neighbouring rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import scipy.sparse as sp

from optmech.analysis import measures
from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import Approximate, Gradient, Ratio, known
from optmech.certificate.families.gradient import check_gradients
from optmech.certificate.families.ratio import rounded_product
from optmech.certificate.statement import Statement
from optmech.errors import ProblemError
from optmech.exact.number import Exact
from optmech.problem.constraint import Kept
from optmech.problem.space import Bools, Space
from optmech.spaces.arguments import taken
from optmech.spaces.distances import (
    Distance,
    is_metric,
    manhattan,
    triangle_report,
)
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh


def ratio_families(
    index: int, epsilon: Exact, distance: Floats, delta: Exact, window: Bools | None = None
) -> Iterator[Ratio | Approximate]:
    """p(o|s) <= exp(ε d(s,s')) p(o|s'), but for a mass δ, for the pairs with finite ``distance``,
    of shape (S, S); the diagonal is left out. ``window`` of shape (S, O) goes with δ = 0."""
    distance = np.array(distance)
    np.fill_diagonal(distance, np.inf)
    if not delta > 0:
        yield Ratio(index, epsilon, distance, window)
        return
    left, right = np.nonzero(np.isfinite(distance))
    if not len(left):
        return  # one secret, or a threshold or radius below every distance: no inequality
    unit = sp.eye_array(len(distance), format="csr")
    apart = distance[left, right]
    chosen = rounded_product(epsilon, apart)
    yield Approximate(index, unit[left], unit[right], chosen, delta, epsilon, apart)


def measured_ratio(
    m: Mechanism, epsilon: Exact, delta: Exact, distance: Distance | None, pairs: Ints | None
) -> Kept:
    """δ at the stated ε where there is a δ, else ε: per unit of ``distance`` if there is one, over
    ``pairs`` of secrets (k, 2) or all of them for None."""
    if pairs is not None and not len(pairs):
        return Kept("epsilon", float(epsilon), 0.0)
    if delta > 0:
        return Kept("delta", float(delta), measures.delta(m, epsilon, distance, pairs=pairs))
    return Kept("epsilon", float(epsilon), measures.epsilon(m, distance, pairs))


def delta_words(delta: Exact) -> str:
    """δ as the end of a promise."""
    return f", δ = {delta.words}" if delta > 0 else ""


def triangle_notes(distance: Distance, space: Space) -> list[tuple[str, str]]:
    """Where a distance is no metric, as a note of its constraint."""
    if is_metric(distance):
        return []
    report = triangle_report(space.apart(distance, infinite=True))
    if report.triple is None:
        return []
    i, j, s = (space.secrets.labels[index] for index in report.triple)
    return [
        (
            ".distance",
            f"not a metric: d({i}, {s}) exceeds d({i}, {j}) + d({j}, {s}) by {report.excess:g}",
        )
    ]


def mesh_of(constraints: Sequence[object]) -> Mesh | None:
    """The mesh at every point of which constraints promise something; None without one. Raises
    ProblemError where they name two."""
    found: Mesh | None = None
    for k, stated in enumerate(constraints):
        mesh = getattr(stated, "everywhere", None)
        if found is not None and mesh is not None and mesh != found:
            raise ProblemError(
                "another mesh than that of a constraint before",
                where=f"constraints[{k}].everywhere",
                remedy="State all promises for every point on one mesh",
            )
        found = mesh if found is None else found
    return found


def gradient_in(statement: Statement) -> Gradient:
    """The promise at every point of a region that a statement has; IndexError where it has none."""
    return statement.of_kind(Gradient)[0]


def measured_everywhere(m: Mechanism, mesh: Mesh, epsilon: Exact) -> Kept | None:
    """An ε that all points keep: of a region the largest ‖G_o[α]‖ / P[α,o], of a network the
    largest |p − p'| / (ℓ min(p, p')) of two neighbouring rows; None of mechanisms that are not on
    this mesh."""
    rows = m.rows_on(mesh)
    if rows is None:
        return None
    stated = float(epsilon)
    if mesh.is_region:
        check = check_gradients(mesh, epsilon, rows)
        share = min(check.worst, 1.0) if check.passed else check.worst
        return Kept("epsilon", stated, share * stated if share else 0.0)
    one, other = (rows.matrix[ends] for ends in mesh.triangles.T)
    with np.errstate(divide="ignore", invalid="ignore"):
        rise = np.where(one == other, 0.0, np.abs(one - other) / np.minimum(one, other))
    found = float((rise.max(axis=1) / mesh.widths).max())
    # what keeps ε exactly may seem to exceed it by a rounding
    return Kept("epsilon", stated, stated if 0 < found / stated - 1 < 1e-12 else found)


def over_places(statement: Statement) -> Statement:
    """What a statement with a promise at every point says of the places alone."""

    def made() -> Statement:
        others = tuple(f for f in statement.families if type(f) is not Gradient)
        return Statement(statement.prior, statement.loss, statement.objective, others)

    return statement.once(over_places, made)


def require_joint(statement: Statement, kinds: Sequence[str], mesh: Mesh | None) -> None:
    """Raise ProblemError where what stands beside a promise at every point cannot be kept with it,
    or the expected loss is not what is minimised; VerificationError where the certificate cannot
    decide it. ``kinds`` are those of all constraints."""
    promise = next(iter(statement.of_kind(Gradient)), None)
    if promise is None:
        if mesh is not None and statement.target_factors is not None:
            raise ProblemError(
                "privacy at every point of a line or network needs a loss as objective",
                where="objective",
                remedy='Use objective="expected_loss" or objective="worst_loss"',
            )
        return
    for family in statement.families:
        if family is not promise and getattr(family, "alone", True):
            raise ProblemError(
                f"{kinds[family.index]} cannot be combined with privacy at every point",
                where=f"constraints[{family.index}]",
                remedy="Beside it may stand what is linear in the probabilities at the places: "
                "ratios, (ε, δ), losses, distortion, leakage, bias, supports, linear inequalities",
            )
    if statement.objective != "expected_loss":
        raise ProblemError(
            "privacy at every point needs the expected loss as objective",
            where="objective",
            remedy='Use objective="expected_loss"',
        )
    known(statement)


def require_distance(epsilon: Exact, distance: Distance | None, mesh: object) -> Distance:
    """The distance that the mesh measures, which is meant where there is none.

    Raises
    ------
    ProblemError
        Where it is no mesh, ε is 0, or the distance is another one.
    """
    own: Mesh = taken(mesh, "Mesh", "everywhere")
    if not epsilon > 0:
        raise ProblemError(
            "must be above 0 for privacy at every point",
            where="epsilon",
            remedy="With ε = 0 a mechanism that always reports the same is all there is",
        )
    name, proper = own.measure
    straight = own.is_line and distance == manhattan()
    if distance is None or distance == proper or straight:
        return proper
    raise ProblemError(
        f"privacy at every point of this mesh is measured by the {name} distance",
        where="distance",
        remedy="Leave it out, as a mesh knows its own"
        if name == "roads"
        else f"Use om.distances.{name}()",
    )


def require_network(mesh: object) -> None:
    """Raise ProblemError unless the mesh is a line or a network."""
    own: Mesh = taken(mesh, "Mesh", "everywhere")
    if own.is_region:
        raise ProblemError(
            "differential privacy at every point is stated on lines and networks",
            where="everywhere",
            remedy="Use om.Mesh.line(low, high, cells), or MetricPrivacy for a region",
        )


def require_vertices(network: Mesh, space: Space) -> None:
    """Raise ProblemError unless the secrets are the vertices of the line or network."""
    secrets, own = space.secrets, network.domain
    same = secrets.labels == own.labels and secrets.coordinates == own.coordinates
    if not same or not np.array_equal(secrets.require_points("lie on it"), network.vertices):
        raise ProblemError(
            f"the {len(secrets)} secrets are not the {len(own)} vertices of {network.words}",
            where="everywhere",
            remedy="State the prior over them: om.Prior(line.domain, weights)",
        )
    _require_unit(secrets.unit, own.unit)


def _require_unit(places: str, mesh: str) -> None:
    if "" not in (places, mesh) and places != mesh:
        raise ProblemError(f"the places are in {places} and the mesh in {mesh}", where="everywhere")


def require_places(mesh: Mesh, space: Space) -> Floats:
    """Where the secrets lie, (S, 2). Raises ProblemError unless they are points of the region, in
    the mesh's coordinates."""
    secrets = space.secrets
    points = secrets.require_points("promise privacy at every point")
    if points.shape[1] != 2:
        raise ProblemError(f"places of shape {points.shape} do not lie in a plane", where="secrets")
    if secrets.coordinates != mesh.coordinates:
        raise ProblemError(
            f'the places are in coordinates "{secrets.coordinates}" and the mesh in '
            f'"{mesh.coordinates}"',
            where="everywhere",
        )
    if mesh.coordinates == "plane" and getattr(secrets, "bounds", None) is not None:
        raise ProblemError(
            "cells over degrees are measured in kilometres from a corner",
            where="everywhere",
            remedy="Give the places as a Domain of points, in the coordinates of the mesh",
        )
    _require_unit(secrets.unit, mesh.unit)
    # in floating point a place on the border may seem to lie beyond it
    seem = np.flatnonzero(mesh.locate(points)[0] < 0).tolist()
    outside = [x for x in seem if mesh.locate_exactly(points[x].tolist()) is None]
    if outside:
        raise ProblemError(
            f"{len(outside)} of {len(points)} places lie outside of the region, the first of them "
            f"number {outside[0] + 1}",
            where="everywhere",
            remedy="Use a mesh around all of the places",
        )
    return points
