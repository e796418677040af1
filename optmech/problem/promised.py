"""What a constraint promises, as plain data: between what, by which distance, and of several
reports. Sentences are made of it, and say nothing else (``optmech.designs.facts``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.exact.number import Exact
from optmech.spaces.domain import Domain, Grid
from optmech.spaces.mesh import Mesh
from optmech.spaces.observables import Regions
from optmech.spaces.tables import distance_words

if TYPE_CHECKING:
    from optmech.problem.space import Space

Scope = Literal[
    "every point", "cells", "places", "secrets", "distributions", "answers", "guesses", "average",
    "use", "unknown",
]  # fmt: skip
"""Between what a promise holds: every two points of a mesh, centres of cells, places, secrets,
distributions of the secret, secrets behind an answer. Of what else: of the best guess or of a mean
over all reports, which are no promises between two secrets; of "use" alone, which is no promise of
privacy; and of what is not known."""
Pairs = Literal["all", "near", "reached", "joined", "listed"]
"""Which pairs of these: all, those up to ``limit`` apart, those whose report is up to ``limit``
away from the first ("reached": the entries of the matrix where it holds), those that a graph joins,
or those that are listed."""
Course = Literal["straight", "great circle", "flat", "roads", "manhattan", ""]
"""How a length is measured: straight through the plane, along a great circle, straight on the flat
map of a box of degrees, along roads, as the sum of coordinates' differences; empty where it is no
length between two positions (labels, graphs, matrices)."""
Repeats = Literal["adds", "complement", "unknown", "none"]
"""What n independent reports about the same secret promise (theory: "Several reports about one
secret"): n times each number; a capacity of 1 - (1 - c)^n; nothing that is known; and of what is
for use alone, nothing."""

_COURSES: dict[str, Course] = {
    "euclidean": "straight", "haversine": "great circle", "manhattan": "manhattan",
}  # fmt: skip
_IN_METRES = {"km": 1000.0, "m": 1.0}


@record
class Measure(Shown):
    """A distance: its name, its unit, and how it is measured.

    Examples
    --------
    >>> from optmech.problem.promised import Measure
    >>> Measure("euclidean", "km", "straight").metres, Measure("hamming").metres
    (1000.0, None)
    """

    name: str
    unit: str = ""
    course: Course = ""

    @property
    def metres(self) -> float | None:
        """How many metres a unit has; None where this is no length between positions."""
        return _IN_METRES.get(self.unit) if self.course else None

    @classmethod
    def of(cls, distance: object, space: Space) -> Measure:
        """The distance of a constraint over finitely many secrets."""
        name = distance_words(distance)
        return cls.called(name, space.unit_of(name), space.secrets)

    @classmethod
    def called(cls, name: str, unit: str, secrets: Domain | Mesh | None) -> Measure:
        """The distance of this name, in a unit, between secrets or points of a mesh; None stands
        for a mesh of the plane."""
        course = _COURSES.get(name, "")
        if not isinstance(secrets, Domain):
            course = "roads" if name == "roads" else course
        elif secrets.frame and name != "haversine":
            # sums of coordinates' differences on the flat map are no length of the ground
            course = "flat" if course == "straight" else ""
        return cls(name, unit, course)

    def scope(self, secrets: Domain) -> Scope:
        """What this is a distance between."""
        if not self.course or secrets.points is None:
            return "secrets"
        cells = isinstance(secrets, Grid | Regions) and self.name == "euclidean"
        return "cells" if cells else "places"

    def plain(self) -> dict[str, str]:
        """For JSON."""
        return {"name": self.name, "unit": self.unit, "course": self.course}


@record
class Promised(Shown):
    """What one constraint promises. The default promises nothing of pairs, nor of several reports.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming())
    >>> promised = om.DifferentialPrivacy("ln 3", delta="1/10").promised(problem.space)
    >>> promised.scope, promised.pairs, promised.repeats, promised.adds
    ('secrets', 'all', 'adds', ('ε', 'δ'))
    >>> om.constraints.GainLeakage(0.7).promised(problem.space).repeats
    'unknown'
    """

    scope: Scope = "unknown"
    repeats: Repeats = "unknown"
    adds: tuple[str, ...] = ()
    """The numbers that n reports promise n times, in words: "ε", "δ", "the leakage"."""
    pairs: Pairs = "all"
    limit: float | None = None
    measure: Measure | None = None
    """What ``epsilon`` is per, and ``limit`` is in; None where ε is the same for all pairs."""
    epsilon: Exact | None = None
    """Of the ratios p(o|s) <= e^(ε d) p(o|s'), but for a mass δ; None where the promise is of no
    such form."""
    delta: Exact | None = None
    """None where it is 0, or the promise is of another form."""

    @property
    def ratio(self) -> Exact | None:
        """ε where every pair in ``scope`` has the ratio e^(ε d), without a δ: what odds rest on."""
        sure = self.delta is None and self.pairs == "all"
        return self.epsilon if sure else None

    def plain(self) -> dict[str, Any]:
        """For JSON, numbers as exact texts."""
        return {
            "scope": self.scope,
            "pairs": self.pairs,
            "limit": self.limit,
            "measure": None if self.measure is None else self.measure.plain(),
            "epsilon": None if self.epsilon is None else self.epsilon.text,
            "delta": None if self.delta is None else self.delta.text,
            "repeats": self.repeats,
            "adds": list(self.adds),
        }


FOR_USE = Promised("use", "none")
"""Of what keeps reports useful, and protects nobody."""
EPSILON, DELTA, DIVERGENCE, LEAKAGE, INFORMATION, LOG_RATIO = (
    "ε", "δ", "the divergence", "the leakage", "the information", "each log ratio",
)  # fmt: skip


def of_ratios(
    scope: Scope,
    epsilon: Exact,
    delta: Exact,
    *,
    pairs: Pairs = "all",
    limit: float | None = None,
    measure: Measure | None = None,
) -> Promised:
    """A promise p(o|s) <= e^(ε d) p(o|s') but for a mass δ, between two secrets: n reports keep nε
    and nδ."""
    own = delta if delta > 0 else None
    adds = (EPSILON,) if own is None else (EPSILON, DELTA)
    return Promised(scope, "adds", adds, pairs, limit, measure, epsilon, own)
