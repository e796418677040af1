"""A design that is private at every point of a region: a row for every control point of a mesh."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

import numpy as np

from optmech.base import html
from optmech.base.arrays import Floats
from optmech.base.shown import Shown
from optmech.certificate import Check, Multipliers
from optmech.certificate.everywhere import Edges, check_gradients, check_mesh
from optmech.certificate.joint import check_joint, joint_bound
from optmech.certificate.mesh_program import MeshMultipliers, MeshProgram
from optmech.certificate.objective import relative_gap, status_of
from optmech.designs.design import OuterProof as OuterProof
from optmech.errors import AbsentError
from optmech.exact.number import rounded_down, rounded_up
from optmech.exact.numerators import Numerators
from optmech.mesh import Mesh
from optmech.mesh.mechanism import EverywhereMechanism
from optmech.problem import Problem
from optmech.problem.everywhere import Gradient, gradient_of, over_places
from optmech.spaces.mechanism import Mechanism


@dataclass(frozen=True, eq=False, repr=False)
class EverywhereDesign(Shown):
    """The result of ``solve`` for ``MetricPrivacy(…, everywhere=mesh)``.

    ``loss`` is the exact expected loss of the released mechanism over the places of the prior,
    rounded up. ``bound`` is proved for all mechanisms of the mesh's degree whose coefficients meet
    its condition, in degree 1 for all that are linear in every triangle; ``gap`` is the relative
    difference of the two, and ``status`` follows from it alone.

    ``lower_bound`` is proved for **every** mechanism that is private at every point of the region,
    whatever its form (and, where others stand beside that and places are few, keeps these as
    well); ``total_gap`` is the relative difference to it, which a finer mesh reduces.
    It is 0 where none was looked for.
    """

    problem: Problem
    exact: Numerators
    """What is released: a row of whole numbers over a power of two for every control point of the
    mesh, its vertices first."""
    loss: float
    bound: float
    lower_bound: float
    gap: float
    verified: bool
    checks: tuple[Check, ...]
    multipliers: MeshMultipliers
    outer: OuterProof | None
    engine: str
    engine_reason: str
    seconds: float
    reason: str = ""
    notes: tuple[str, ...] = ()
    joint: Multipliers = field(default_factory=Multipliers)
    """Those of the constraints beside the promise, which speak of the places."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise AbsentError.of(self, name)

    def __repr__(self) -> str:
        title = f"{self.problem.title[:60]!r}, " if self.problem.title else ""
        checked = "verified" if self.verified else "NOT verified"
        return (
            f"EverywhereDesign({title}{self.status}, {checked}, {len(self.mesh)} vertices, "
            f"{len(self.problem.observables)} observables, loss {self.loss:.6g}, gap "
            f"{self.gap:.2g} on the mesh; lower bound {self.lower_bound:.6g} for every mechanism, "
            f"gap {self.total_gap:.2g}; {self.seconds:.2f} s)"
        )

    def _repr_html_(self) -> str:
        title = f"Design: {self.problem.title}" if self.problem.title else "Design"
        return html.card(
            title,
            [
                ("private at every point of", self.mesh),
                ("observables", self.problem.observables),
                ("status", f"{self.status}, {'verified' if self.verified else 'NOT verified'}"),
                ("loss", f"{self.loss:.6g}"),
                ("gap on this mesh", f"{self.gap:.2g}"),
                ("lower bound for every mechanism", f"{self.lower_bound:.6g}"),
                ("gap to it", f"{self.total_gap:.2g}"),
                ("time", f"{self.seconds:.2f} s"),
            ],
        )

    @property
    def gradient(self) -> Gradient:
        """What is promised."""
        return gradient_in(self.problem)

    @property
    def mesh(self) -> Mesh:
        """The mesh of the region."""
        return self.gradient.mesh

    @property
    def status(self) -> Literal["optimal", "feasible"]:
        """ "optimal" where the certified gap on this mesh is at most 1e-6, else "feasible"."""
        return status_of(self.gap)

    @property
    def total_gap(self) -> float:
        """The relative difference of ``loss`` and ``lower_bound``."""
        return relative_gap(self.loss, self.lower_bound)

    def to_geopandas(self, report: Any = None) -> Any:
        """The triangles, see ``om.exchange.features``, as a GeoDataFrame in WGS 84."""
        from optmech.designs.cells import to_geopandas

        return to_geopandas(self, report)

    def explore(self, report: Any = None, **options: Any) -> Any:
        """The same on a map of folium; see ``om.exchange.explore``."""
        from optmech.designs.cells import explore

        return explore(self, report, **options)

    @property
    def matrix(self) -> Floats:
        """The float64 numbers nearest to the released rows, (control points, observables)."""
        return self.exact.matrix

    @property
    def mechanism(self) -> EverywhereMechanism:
        """The mechanism, which reports from any point of the region."""
        return EverywhereMechanism(self.mesh, self.problem.observables, self.exact)

    @property
    def at_places(self) -> Mechanism:
        """What is reported from the places of the prior, as floats: what the constraints beside
        the promise speak of."""
        places = self.problem.secrets
        matrix = self.mechanism.at(places.require_points("report from them"))
        return Mechanism(places, self.problem.observables, matrix)

    @property
    def indicator(self) -> Floats:
        """What the loss owes, to first order, to the width of every triangle, (T,), for
        ``design.mesh.refine``: where it is large a finer mesh helps most."""
        from optmech.lp.gradients import indicator

        vectors = np.array(self.multipliers.vectors, dtype=np.float64)
        pairs = vectors.reshape(*vectors.shape[:2], -1, 2).transpose(1, 0, 2, 3)
        size = np.ldexp(np.hypot(pairs[..., 0], pairs[..., 1]), -self.multipliers.bits)
        area = Edges(self.mesh).floats[2]
        epsilon = float(self.gradient.epsilon)
        return indicator(self.mesh, epsilon, self.matrix, size * area[None, :, None])

    def summary(self) -> dict[str, Any]:
        """The design's figures as plain values, ready for JSON."""
        return {
            "status": self.status,
            "loss": self.loss,
            "objective": self.loss,
            "bound": self.bound,
            "gap": self.gap,
            "lower_bound": self.lower_bound,
            "total_gap": self.total_gap if np.isfinite(self.total_gap) else None,
            "verified": self.verified,
            "bits": self.exact.bits,
            "engine": self.engine,
            "engine_reason": self.engine_reason,
            "seconds": self.seconds,
            "secrets": len(self.problem.secrets),
            "places": len(self.problem.secrets),
            "vertices": len(self.mesh),
            "degree": self.mesh.degree,
            "rows": self.mesh.rows,
            "triangles": len(self.mesh.triangles),
            "observables": len(self.problem.observables),
            "reason": self.reason,
            "notes": list(self.notes),
        }

    def save(self, path: str | Path) -> None:
        """Write the design, with its mesh, to one JSON file, atomically."""
        from optmech.designs.everywhere_file import save_everywhere

        save_everywhere(self, path)


def gradient_in(problem: Problem) -> Gradient:
    """The promise at every point that a problem states; AssertionError where it states none."""
    found = gradient_of(problem.statement.families)
    assert found is not None
    return found


def program_of(problem: Problem) -> MeshProgram:
    """What is to be minimised over the control points."""
    gradient = gradient_in(problem)
    return MeshProgram(
        gradient.mesh,
        gradient.epsilon,
        problem.secrets.require_points("promise privacy at every point"),
        problem.prior.weights,
        problem.loss_matrix,
    )


def checks_of(problem: Problem, released: Numerators) -> tuple[Check, ...]:
    """Rows, triangles and gradients, decided exactly."""
    gradient = gradient_in(problem)
    count, reports = released.shape
    detail = f"whole numbers over 2^{released.bits}, every row with sum 2^{released.bits}"
    rows = Check("distributions", None, count * (reports + 1), True, 0.0, detail)
    mesh = check_mesh(gradient.mesh)
    return (
        rows,
        mesh,
        check_gradients(gradient.mesh, gradient.epsilon, released, gradient.index),
        *check_joint(program_of(problem), over_places(problem.statement), released),
    )


def figures_of(
    problem: Problem, released: Numerators, multipliers: MeshMultipliers, joint: Multipliers
) -> tuple[float, float, float]:
    """The loss rounded up, and rounded down and at least 0 what is proved as bound and what is to
    be reported of it."""
    program, statement = program_of(problem), over_places(problem.statement)
    if statement.families:
        both = joint_bound(program, statement, joint, multipliers) or (Fraction(0),) * 2
    else:
        both = (program.bound(multipliers),) * 2
    proved, reported = (rounded_down(max(bound, Fraction(0))) for bound in both)
    return rounded_up(program.loss(released)[1]), proved, reported
