"""Constraints over the places of the prior, beside privacy at every point of their region: decided
of the mechanism at the places, and their part in the bound (theory: "Joint constraints of
mechanisms on a mesh").

At a place x the mechanism is Q[x,o] = Σ_α B_α(x) P[α,o], a rational number. Q is enclosed between
whole numbers over a power of two, and every family is decided on the side that is harder to keep.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from optmech.certificate import values
from optmech.certificate.bound import lagrangian_of
from optmech.certificate.check import Check
from optmech.certificate.families import Distortion, Leakage, LossLimit, Support, known
from optmech.certificate.mesh_program import MeshMultipliers, MeshProgram
from optmech.certificate.multipliers import Multipliers
from optmech.errors import ProblemError, VerificationError
from optmech.exact.exponentials import at_most
from optmech.exact.numerators import Numerators
from optmech.mesh import elements
from optmech.statement import Family, Statement

_LEAST = 2.0**-300
"""Costs nearer to zero count as minus this."""
_FINER = 64
"""Bits that numbers at the places have more than the released ones."""


@dataclass(frozen=True, eq=False)
class Enclosed:
    """Whole numbers over 2^bits."""

    bits: int
    rows: tuple[tuple[int, ...], ...]


def at_places(program: MeshProgram, released: Numerators) -> tuple[Enclosed, Enclosed]:
    """Lower and upper bounds of Q (places, O), equal or one unit apart.

    Raises
    ------
    ProblemError
        On a place outside of the region.
    """
    mesh, low, high = program.mesh, [], []
    for x, place in enumerate(program.places.tolist()):
        found = mesh.locate_exactly(place)
        if found is None:
            raise ProblemError(
                f"({place[0]}, {place[1]}) lies outside of the region", where=f"places[{x}]"
            )
        own = elements.whole_basis(found[1], mesh.degree)
        rows = [released.rows[k] for k in mesh.control[found[0]].tolist()]
        total = sum(own)
        parts = [
            divmod(sum(map(operator.mul, own, column)) << _FINER, total)
            for column in zip(*rows, strict=True)
        ]
        low.append(tuple(whole for whole, _ in parts))
        high.append(tuple(whole + (rest > 0) for whole, rest in parts))
    bits = released.bits + _FINER
    return Enclosed(bits, tuple(low)), Enclosed(bits, tuple(high))


def check_joint(program: MeshProgram, statement: Statement, released: Numerators) -> list[Check]:
    """Whether every family of a statement over the places holds."""
    families = known(statement)
    if not families:
        return []
    low, high = at_places(program, released)
    return [_decided(family, statement, low, high) for family in families]


def _decided(family: Family, statement: Statement, low: Enclosed, high: Enclosed) -> Check:
    if isinstance(family, LossLimit):
        # losses and weights are >= 0
        found = values.losses(family.loss, high)
        spent = found if family.per_secret else [values.expected(statement.prior, found)]
        passed = max(spent) <= family.most(statement)[0]
        detail = f"largest {float(max(spent)):.12g}, allowed {float(family.maximum):.12g}"
        return Check("loss bound", family.index, len(spent), passed, float(max(spent)), detail)
    if isinstance(family, Distortion):
        # distances and weights are >= 0
        value = values.distortion(family.distance, family.prior, low)
        detail = f"distortion {float(value):.12g}, required {float(family.minimum):.12g}"
        passed = value >= family.least[1]
        return Check("distortion", family.index, 1, passed, float(value), detail)
    if isinstance(family, Leakage):
        # gains have any sign: every term is above that of the lower bound by a unit at most
        value = values.gained(family.gain, family.weights, low)
        if low.rows != high.rows:
            most = values.blind_gain(np.abs(family.gain), family.weights)
            value += most * statement.observables / (1 << low.bits)
        passed = value <= family.most[0]
        if not passed and family.natural and value > 0:
            passed = at_most(value.numerator, value.denominator, family.maximum, 1.0)
        limit = f"{'e^' if family.natural else ''}{float(family.maximum):.12g}"
        detail = f"gain of the best guess {float(value):.12g}, allowed {limit}"
        return Check("leakage", family.index, 1, passed, float(value), detail)
    if isinstance(family, Support):
        outside = [high.rows[s][o] for s, o in np.argwhere(~family.allowed).tolist()]
        most_used = max(outside, default=0)
        detail = f"largest entry {most_used / (1 << high.bits):.3g}"
        passed = most_used == 0
        worst = most_used / (1 << high.bits)
        return Check("support", family.index, len(outside), passed, worst, detail)
    raise VerificationError(
        f"nothing is decided of {family.kind} families beside privacy at every point",
        where=f"constraints[{family.index}]",
    )


def reportable(statement: Statement) -> tuple[int, ...]:
    """The reports that no support excludes from any place: what is private at every point of a
    region and never reported from one point is not reported from any other."""
    return tuple(np.flatnonzero(statement.allowed.all(axis=0)).tolist())


def joint_bound(
    program: MeshProgram,
    statement: Statement,
    multipliers: Multipliers,
    vectors: MeshMultipliers,
    *,
    objective: bool = True,
) -> tuple[Fraction, Fraction] | None:
    """Numbers that the expected loss goes not below under all constraints: what is proved here,
    and what is to be reported, which another machine's roundings prove as well. Without the
    ``objective`` a number above 0 proves that no matrix satisfies all of them. None where the
    multipliers prove nothing.
    """
    lagrangian = lagrangian_of(statement, multipliers, objective=objective)
    if lagrangian is None:
        return None
    out = []
    ones = np.ones(len(program.places))
    for costs in lagrangian.below():
        if not np.isfinite(costs).all():
            return None
        # lower still, so that whole numbers stay short
        low = np.where(np.abs(costs) < _LEAST, -_LEAST, costs)
        costly = replace(program, weights=ones, costs=low, columns=reportable(statement))
        out.append(costly.bound(vectors) + lagrangian.constant)
    return out[0], out[1]
