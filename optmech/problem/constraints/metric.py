"""Metric privacy: the nearer two secrets are, the less reports tell them apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Self, cast

import numpy as np
from attrs import field, frozen

from optmech.certificate.families import Approximate, Gradient, Ratio
from optmech.errors import ProblemError
from optmech.exact.number import Exact, parse_exact
from optmech.problem import fields
from optmech.problem.constraint import Constraint, Kept, Remarks, constraint
from optmech.problem.fields import Plain
from optmech.problem.ratios import (
    delta_words,
    measure_of,
    measured_everywhere,
    measured_ratio,
    ratio_families,
    require_distance,
    require_places,
    require_vertices,
    triangle_notes,
)
from optmech.problem.space import Space
from optmech.spaces.distances import Distance
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.network import Network

ONE = parse_exact(1, where="")


@constraint("metric_privacy")
@frozen(repr=False, field_transformer=fields.placed)
class MetricPrivacy(Constraint):
    """p(o|s) <= exp(ε d(s,s')) p(o|s') for all s, s', o (Shokri, PETS 2015, eq. 10, 15, 22;
    Kawamoto and Murakami, ESORICS 2019, Def. 4).

    With ``delta`` > 0: Σ_o max(0, p(o|s) - exp(ε d(s,s')) p(o|s')) <= δ for all s, s'.

    ``threshold`` and ``observable_threshold`` keep only the inequalities with d(s,s') <= τ and
    d(s,o) <= τ_o (Shokri, PETS 2015, Appendix C). That weakens what is promised: the design then
    reports the ε that really holds.

    With ``everywhere``, a ``Mesh``, the promise is p(o|x) <= exp(ε d(x,y)) p(o|y) at **all** points
    x, y of the mesh's region, for the Euclidean distance (great-circle on a mesh in degrees). The
    secrets of the problem are then places of the region that the prior and the loss speak of, and
    the design is a mechanism that reports from any point. On a line or a network
    (``Mesh.line``, ``Mesh.roads``) d is the distance along it, and the secrets are its vertices.
    Beside ``everywhere`` the distance may be left out.

    Examples
    --------
    >>> line = om.Domain.range(3, unit="km")
    >>> km = om.distances.euclidean()
    >>> promise = om.MetricPrivacy(epsilon="ln 2", distance=km)
    >>> design = om.solve(om.Problem(om.Prior.uniform(line), km, constraints=[promise]))
    >>> print(design.status, round(design.loss, 4))
    optimal 0.5556
    >>> print(round(om.measures.epsilon(design.mechanism, km), 4))  # ln 2 per km
    0.6931
    """

    later = ("everywhere",)
    epsilon: Exact = field(converter=fields.number)
    distance: Distance = field(default=cast(Distance, None), converter=fields.optional_distance)
    threshold: float | None = field(default=None, converter=fields.limit)
    observable_threshold: float | None = field(default=None, converter=fields.limit)
    delta: Exact = field(default=fields.ZERO, converter=fields.delta)
    everywhere: Mesh | None = field(default=None, converter=fields.mesh)

    def __attrs_post_init__(self) -> None:
        if self.everywhere is not None:
            measured = require_distance(self.epsilon, self.distance, self.everywhere)
            object.__setattr__(self, "distance", measured)
            for name in ("threshold", "observable_threshold", "delta"):
                if getattr(self, name):
                    raise ProblemError(
                        "has no meaning for privacy at every point",
                        where=name,
                        remedy="Drop it, or leave everywhere out",
                    )
        elif self.distance is None:
            raise ProblemError(
                "is missing: None is not a distance",
                where="distance",
                remedy="Use a member of om.distances, such as om.distances.hamming()",
            )
        if self.observable_threshold is not None and self.delta > 0:
            raise ProblemError(
                "an observable threshold has no meaning together with delta > 0",
                where="observable_threshold",
                remedy="Drop one of the two",
            )

    def plain(self, space: Space) -> dict[str, Plain]:
        """The fields as JSON values; a distance that is compared with observables has those values
        too. Privacy at every point has the distance by its name."""
        if self.everywhere is not None:
            return {
                "epsilon": self.epsilon.text,
                "distance": measure_of(self.everywhere)[0],
                "everywhere": self.everywhere.to_dict(),
            }
        reach = self.observable_threshold is not None
        written = fields.write_distance(self.distance, space, reach=reach)
        return {**super().plain(space), "distance": written}

    @classmethod
    def load(cls, plain: Plain, space: Space) -> Self:
        """The inverse of ``plain``."""
        if "everywhere" not in plain:
            return super().load(plain, space)
        mesh = Mesh.from_dict(plain["everywhere"], "everywhere")
        name, distance = measure_of(mesh)
        if plain["distance"] != name:
            raise ProblemError(f"{plain['distance']!r} is not {name}", where="distance")
        return cls(plain["epsilon"], distance, everywhere=mesh)

    def families(self, index: int, space: Space) -> Iterator[Ratio | Approximate | Gradient]:
        if isinstance(self.everywhere, Network):
            # what holds between neighbours holds along all paths
            require_vertices(self.everywhere, space)
            yield Ratio(index, ONE, self.everywhere.log_ratios(self.epsilon))
            return
        if self.everywhere is not None:
            points = require_places(self.everywhere, space)
            yield Gradient(index, self.epsilon, self.everywhere, points)
            return
        distance = np.array(space.apart(self.distance))
        if self.threshold is not None:
            distance[distance > self.threshold] = np.inf
        window = None
        if self.observable_threshold is not None:
            window = space.reach(self.distance) <= self.observable_threshold
        yield from ratio_families(index, self.epsilon, distance, self.delta, window)

    def promise(self, space: Space) -> str:
        text = f"ε = {self.epsilon.words} per {space.per(self.distance)}"
        if isinstance(self.everywhere, Network):
            unit = self.everywhere.unit or "unit of length"
            text = f"ε = {self.epsilon.words} per {unit}"
        if self.everywhere is not None:
            text += f", at every point of {self.everywhere.words}"
        if self.threshold is not None:
            text += f", for secrets up to {self.threshold:g} apart"
        if self.observable_threshold is not None:
            text += f", where observables are up to {self.observable_threshold:g} away"
        return text + delta_words(self.delta)

    def measured(self, m: Mechanism, space: Space) -> Kept | None:
        if self.everywhere is not None:
            return measured_everywhere(m, self.everywhere, self.epsilon)
        if self.observable_threshold is not None:
            return None
        pairs = None
        if self.threshold is not None:
            pairs = np.argwhere(space.near(self.distance, self.threshold))
        return measured_ratio(m, self.epsilon, self.delta, self.distance, pairs)

    def idle(self, space: Space) -> Remarks:
        if self.everywhere is not None:
            return []
        if self.delta >= 1:
            return [("", "δ is 1")]
        if self.threshold is None:
            kept = len(space.secrets) > 1
        else:
            kept = bool(space.near(self.distance, self.threshold).any())
        if not kept:
            return [("", "no pair of secrets is kept")]
        if (
            self.observable_threshold is not None
            and not (space.reach(self.distance) <= self.observable_threshold).any()
        ):
            return [("", "no observable is near enough to any secret")]
        return []

    def notes(self, space: Space) -> Remarks:
        if self.everywhere is not None:
            return []
        found = triangle_notes(self.distance, space)
        if self.threshold is not None or self.observable_threshold is not None:
            kept = "thresholds drop inequalities; the promise of metric privacy holds only for the "
            found.append(("", f"{kept}pairs that are kept"))
        return found
