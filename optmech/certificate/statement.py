"""What is to be proved: a design problem as plain arrays and families of inequalities."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeVar

import numpy as np

from optmech.base.arrays import Bools, Floats, Ints
from optmech.base.read_only import ReadOnly, read_only, record
from optmech.certificate.variance import Survey
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators, wholes

if TYPE_CHECKING:
    from optmech.spaces.mesh import Mesh


@record
class Spread(ReadOnly):
    """From the rows of ``mesh``'s control points to the secrets, which lie at ``places`` (S, 2):
    p(o|x) = Σ_α B_α(x) P[α,o] with exact weights B_α(x)."""

    mesh: Mesh
    places: Floats

    @property
    def rows(self) -> int:
        """Control points: rows of a released matrix."""
        return self.mesh.rows

    @cached_property
    def weights(self) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """For every secret the control points around it, and whole numbers that they count for,
        over the sum of these. Raises ProblemError on a place outside of the region."""
        from optmech.spaces.mesh.elements import whole_basis

        out = []
        for x, place in enumerate(self.places.tolist()):
            found = self.mesh.locate_exactly(place)
            if found is None:
                raise ProblemError(
                    "lies outside of the region",
                    where=f"places[{x}]",
                    remedy="Use a mesh around all places of the prior",
                )
            own = whole_basis(found[1], self.mesh.degree)
            out.append((tuple(self.mesh.control[found[0]].tolist()), own))
        return tuple(out)


@record
class Held(ReadOnly):
    """P[secrets[k], :] is row k of ``exact``, for the k secrets (k,), in increasing order."""

    secrets: Ints
    exact: Numerators

    @property
    def matrix(self) -> Floats:
        """The nearest floats, (k, O)."""
        return self.exact.matrix

    def free(self, secrets: int) -> Ints:
        """The secrets out of so many whose rows are not fixed."""
        return np.setdiff1d(np.arange(secrets), self.secrets)

    def has(self, secrets: int) -> Bools:
        """Which of so many secrets have fixed rows."""
        out = np.zeros(secrets, dtype=bool)
        out[self.secrets] = True
        return out

    @cached_property
    def rows(self) -> Mapping[int, tuple[int, ...]]:
        """Every fixed row by its secret, over 2^bits of ``exact``."""
        return dict(zip(self.secrets.tolist(), self.exact.rows, strict=True))


def joined(parts: Iterable[Held]) -> Held | None:
    """The rows that all parts fix, over one power of two; of a secret that two fix, the row of the
    first. None where nothing is fixed."""
    given = list(parts)
    if not given:
        return None
    bits = max(part.exact.bits for part in given)
    rows = [wholes(part.exact.rows) << (bits - part.exact.bits) for part in given]
    secrets, first = np.unique([s for part in given for s in part.secrets], return_index=True)
    return Held(secrets, Numerators.of(bits, np.vstack(rows)[first]))


@record
class Segments(ReadOnly):
    """Pairs of secrets (E, 2) between which a mechanism is linear and the worst loss counts.

    At the share t of the way the loss of a report is (1 - t) times that at the first end plus t
    times that at the second, less t (1 - t) times ``bends`` (E,), which are >= 0: none where the
    loss is straight, and the square of the length for squares of distances.
    """

    ends: Ints
    bends: Floats

    def __len__(self) -> int:
        return len(self.ends)


Objective = Literal[
    "expected_loss", "worst_loss", "maximize_distortion", "minimize_leakage", "minimize_variance"
]
T = TypeVar("T")


class Family(Protocol):
    """Inequalities of one shape that one stated constraint leads to."""

    kind: ClassVar[str]
    """Its name."""
    index: int
    """Number of the constraint that it comes from."""

    agree: ClassVar[str] = ""
    """Fields whose shapes, or values that have none, are part of its signature."""

    def signature(self) -> Hashable:
        """What has to agree for multipliers of one family to be multipliers of another."""
        own = (attrgetter(name)(self) for name in self.agree.split())
        return self.kind, *(np.shape(value) or value for value in own)

    def forced_zeros(self, zero: Bools) -> Bools:
        """Entries (S, O) known to be zero in every mechanism whose entries ``zero`` are."""
        return zero

    def pair_limits(self) -> Floats | None:
        """Log ratios r (S, S) with P[i,o] <= e^{r_ij} P[j,o] for all o; None where it has none."""
        return None

    def held_rows(self) -> Held | None:
        """Rows that it fixes; None where it fixes none."""
        return None

    def spread(self) -> Spread | None:
        """How rows of control points make those of the secrets, where it is a promise about all
        points of a region; None where it is one about the secrets."""
        return None


@record
class Statement(ReadOnly):
    """What is minimised, and the families of inequalities that are promised; read-only.

    ``prior`` (S,) and ``loss`` (S, O). ``target_factors`` are, for maximize_distortion, d(t,s)
    (estimates, S) and the adversary's π(s) (S,); for minimize_leakage g(w,s) (guesses, S) and
    weights (S,); ``survey`` is what minimize_variance estimates. ``segments`` are between secrets:
    where there are some, the worst loss is the largest of every point of them.
    """

    prior: Floats
    loss: Floats
    objective: Objective
    families: tuple[Family, ...] = ()
    target_factors: tuple[Floats, Floats] | None = None
    segments: Segments | None = None
    survey: Survey | None = None

    @cached_property
    def _known(self) -> dict[object, Any]:
        return {}

    @property
    def secrets(self) -> int:
        return len(self.prior)

    @cached_property
    def spread(self) -> Spread | None:
        """How released rows make those of the secrets; None where they are these."""
        found = (family.spread() for family in self.families)
        return next((part for part in found if part is not None), None)

    @property
    def rows(self) -> int:
        """Rows of a released matrix."""
        return self.secrets if self.spread is None else self.spread.rows

    @property
    def loss_terms(self) -> int:
        """How many weights the worst loss has: of every secret, and of a point of every segment,
        divided between its ends."""
        return self.secrets + (0 if self.segments is None else 2 * len(self.segments))

    @property
    def observables(self) -> int:
        return int(self.loss.shape[1])

    @cached_property
    def cost(self) -> Floats:
        """π(s) c(s,o), rounded, shape (S, O)."""
        return self.prior[:, None] * self.loss

    @cached_property
    def target(self) -> Floats | None:
        """π(s) d(t,s) or π(s) g(w,s), rounded, shape (estimates, S), where there are factors."""
        factors = self.target_factors
        return None if factors is None else factors[0] * factors[1]

    @property
    def sign(self) -> int:
        """-1 where a distortion is maximised, whose negative is minimised; else 1."""
        return -1 if self.objective == "maximize_distortion" else 1

    @property
    def regrets(self) -> tuple[Floats, Floats] | None:
        """``target_factors`` of what guesses miss, d(t,s) or -g(w,s): what the best of them misses
        is maximised."""
        factors = self.target_factors
        return None if factors is None else (-self.sign * factors[0], factors[1])

    @cached_property
    def allowed(self) -> Bools:
        """Entries (S, O) that no family by itself forces to zero."""
        none = np.zeros(self.loss.shape, dtype=bool)
        out = np.ones(self.loss.shape, dtype=bool)
        for family in self.families:
            out &= ~family.forced_zeros(none)
        return out

    @cached_property
    def log_ratio(self) -> Floats:
        """The tightest log ratio of every pair (S, S), rounded; inf where it has no limit that
        holds for all observables."""
        limits = [own for family in self.families if (own := family.pair_limits()) is not None]
        if len(limits) == 1:
            return limits[0]
        out = np.full((self.secrets, self.secrets), np.inf)
        for own in limits:
            np.minimum(out, own, out=out)
        return out

    @cached_property
    def held(self) -> Held | None:
        """The rows that families fix; None where none does."""
        found = (family.held_rows() for family in self.families)
        return joined(part for part in found if part is not None)

    def of_kind(self, kind: type[T]) -> tuple[T, ...]:
        """Its families of one class, in their order."""
        return tuple(family for family in self.families if isinstance(family, kind))

    def once(self, key: object, compute: Callable[[], T]) -> T:
        """What ``compute`` finds, which follows from the statement; evaluated once for a key."""
        if key not in self._known:
            self._known[key] = read_only(compute())
        found: T = self._known[key]
        return found
