"""What the constraints of one problem are stated over; and rows of probabilities that are given
exactly: of a design, of a mechanism, or as a table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from optmech.base.arrays import Bools as Bools, Floats
from optmech.base.labels import label_text
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, inside
from optmech.exact.number import parse_fraction
from optmech.exact.numerators import MAX_BITS, Numerators
from optmech.spaces.distances import Distance, distance_name, evaluate
from optmech.spaces.domain import Domain
from optmech.spaces.losses import loss_matrix
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior
from optmech.spaces.tables import LOSSES, NAMED, distance_words, misnamed


@record
class Space(ReadOnly):
    """Secrets with their prior, observables, and the loss of every report."""

    prior: Prior
    observables: Domain
    loss: Floats
    """c(s, o), shape (S, O)."""
    lost_by: str = ""
    """The distance that the loss is; empty for any other."""

    @property
    def secrets(self) -> Domain:
        """The domain of the prior."""
        return self.prior.domain

    def apart(
        self, distance: Distance, where: str = "distance", *, infinite: bool = False
    ) -> Floats:
        """d(s, s'), shape (S, S), which may be ``infinite`` or is refused; not to be written to."""
        return evaluate(distance, self.secrets, self.secrets, where=where, infinite=infinite)

    def reach(self, distance: Distance) -> Floats:
        """d(s, o), shape (S, O), which may be infinite; not to be written to."""
        return evaluate(distance, self.secrets, self.observables, infinite=True)

    def near(self, distance: Distance, radius: float, where: str = "distance") -> Bools:
        """The pairs of different secrets that are at most ``radius`` apart, shape (S, S)."""
        values = self.apart(distance, where, infinite=True)
        return (values <= radius) & ~np.eye(len(self.secrets), dtype=bool)

    def losses(self, loss: Distance | Floats | None) -> Floats:
        """A loss of its own as an S x O array, or the problem's for None."""
        if loss is None:
            return self.loss
        return loss_matrix(loss, self.secrets, self.observables)

    def adversary(self, prior: Prior | None) -> Prior:
        """The adversary's prior, the problem's for None. Raises ProblemError where it is no prior
        over the secrets."""
        adversary = self.prior if prior is None else prior
        if not isinstance(adversary, Prior) or adversary.domain.labels != self.secrets.labels:
            raise ProblemError(
                "the adversary's prior is not a Prior over the secrets",
                where="prior",
                remedy=f"Make it with om.Prior over the same {len(self.secrets)} labels",
            )
        return adversary

    def unit_of(self, distance: str) -> str:
        """The unit of a distance called so; empty where it has none."""
        if distance == "haversine":
            return "km"
        return self.secrets.unit if distance in ("euclidean", "manhattan", "graph", "roads") else ""

    def per(self, distance: object) -> str:
        """The unit that ε is per, in words."""
        name = distance_words(distance)
        unit = self.unit_of(name)
        if unit or name.startswith("given"):
            return f"{unit or 'unit of distance'} ({name})"
        return f"unit of {name} distance"

    def length(self, value: float, distance: object) -> str:
        """A length by a distance, with its unit in words."""
        name = distance_words(distance)
        if unit := self.unit_of(name):
            return f"{value:g} {unit}"
        kind = "" if name.startswith("given") else f"{name} "
        return f"{value:g} unit{'' if value == 1 else 's'} of {kind}distance"

    def name_to_write(self, distance: object, *tables: tuple[Domain, Floats]) -> str:
        """The name of a distance for a file, from its values to other domains: never that of
        another distance."""
        name = distance_name(distance)
        return "given" if any(self._misnamed(name, *table) for table in tables) else name

    def _misnamed(
        self, name: str, to: Domain, values: Floats, known: Mapping[str, Distance] = NAMED
    ) -> bool:
        """Whether values from the secrets are not what a known name says, or nothing can be."""
        try:
            return misnamed(name, self.secrets, to, values, known) is not None
        except ProblemError:
            return True

    def loss_name(self, loss: object) -> str | None:
        """The name of the problem's loss, where it is a distance that a reader can compute
        again."""
        if not callable(loss):
            return None
        name = distance_name(loss)
        wrong = name not in LOSSES or self._misnamed(name, self.observables, self.loss, LOSSES)
        return None if wrong else name


class Place(Protocol):
    """Where a table of a problem file stands, for which sections are built; it reads the CSV files
    of numbers and the designs that are named there. Raises ProblemError where it cannot."""

    @property
    def secrets(self) -> Domain: ...
    @property
    def prior(self) -> Prior: ...
    @property
    def observed(self) -> Domain: ...
    def rows(self, file: str) -> Floats: ...
    def kept_rows(self, design: str) -> GivenRows: ...


_POWER = "Released rows are whole numbers over a power of two: give such, as a design has them"


@record
class GivenRows(Shown):
    """``exact`` has the rows of ``secrets``, in their order; ``observables`` None stands for those
    of the problem. ``source`` is the digest of the file that they come from, or empty."""

    secrets: tuple[Hashable, ...]
    observables: tuple[Hashable, ...] | None
    exact: Numerators
    source: str = ""

    @classmethod
    def of(cls, value: object) -> GivenRows:
        """What ``FixedRows`` takes; ProblemError on anything else."""
        if isinstance(value, GivenRows):
            return value
        if isinstance(value, Mapping):
            return whole_rows(value)
        mechanism = getattr(value, "mechanism", value)
        if not isinstance(mechanism, Mechanism):
            raise ProblemError(
                f"{type(value).__name__} has no rows",
                remedy="Give a design, a mechanism, or rows by the labels of their secrets",
            )
        secrets = tuple(mechanism.secrets.labels)
        seen = tuple(mechanism.observables.labels)
        # packed mechanisms know theirs
        digest = getattr(mechanism, "digest", b"")
        source = f"sha256:{digest.hex()}" if digest else ""
        if mechanism.is_everywhere:
            raise ProblemError(
                "is a mechanism for every point of a region, whose rows are those of control "
                "points and not of places",
                remedy="Give a design for finitely many secrets, or rows by their labels",
            )
        if not isinstance(mechanism.exact, Numerators):
            rows = dict(zip(secrets, mechanism.matrix.tolist(), strict=True))
            return cls(secrets, seen, whole_rows(rows).exact, source)
        return cls(secrets, seen, mechanism.exact, source)

    def over(self, observables: Domain, chosen: Sequence[int]) -> Numerators:
        """Some of the rows over these observables, which are found by their labels, over the least
        power of two that they need."""
        rows = [self.exact.rows[k] for k in chosen]
        if self.observables is None:
            if len(rows[0]) != len(observables):
                raise ProblemError(
                    f"{len(rows[0])} probabilities for {len(observables)} observables",
                    remedy="Give one for every observable",
                )
        else:
            rows = [
                self._moved(label_text(self.secrets[k]), row, self.observables, observables)
                for k, row in zip(chosen, rows, strict=True)
            ]
        common = math.gcd(1 << self.exact.bits, *(value for row in rows for value in row))
        shift = min(common.bit_length() - 1, self.exact.bits - 1)
        reduced = tuple(tuple(value >> shift for value in row) for row in rows)
        return Numerators(self.exact.bits - shift, reduced)

    def _moved(
        self, name: str, row: tuple[int, ...], old: tuple[Hashable, ...], new: Domain
    ) -> tuple[int, ...]:
        places = {label: o for o, label in enumerate(new.labels)}
        out = [0] * len(places)
        for label, value in zip(old, row, strict=True):
            if label in places:
                out[places[label]] = value
            elif value:
                raise ProblemError(
                    f"the row of {name} reports {label_text(label)} with probability "
                    f"{value / (1 << self.exact.bits):.3g}, which is no observable of this problem",
                    remedy="Keep the observables of the old design ([observables] in a file), or "
                    f"let the row of {name} be free",
                )
        return tuple(out)


def whole_rows(rows: Mapping[Hashable, Sequence[Any]]) -> GivenRows:
    """Rows of numbers by label, exactly. Raises ProblemError where they are no distributions of
    one length over a power of two."""
    found: list[list[Fraction]] = []
    for label, row in rows.items():
        with inside(f"[{label_text(label)}]"):
            unordered = isinstance(row, str | bytes | Set | Mapping)
            if unordered or not hasattr(row, "__iter__"):
                raise ProblemError("is not a list of numbers", remedy="Give one per observable")
            values = [parse_fraction(value, where=f"[{o}]") for o, value in enumerate(row)]
            if not values or (found and len(values) != len(found[0])):
                raise ProblemError(
                    f"has {len(values)} numbers", remedy="Give one for every observable"
                )
            total = sum(values, Fraction(0))
            if total != 1:
                raise ProblemError(
                    f"sums to 1 {'+' if total > 1 else '-'} {float(abs(total - 1)):.3g} and not to "
                    "one exactly",
                    remedy='Give fractions, such as "1/4", that sum to one',
                )
            found.append(values)
    if not found:
        raise ProblemError("has no rows", remedy="Give the row of one secret at least")
    unit = math.lcm(*(value.denominator for row in found for value in row))
    bits = max(unit.bit_length() - 1, 1)
    if unit & (unit - 1) or bits > MAX_BITS:
        raise ProblemError(f"has the common denominator {unit:.6g}" if unit < 10**300 else
                           "has a common denominator that is too large", remedy=_POWER)  # fmt: skip
    exact = Numerators(bits, tuple(tuple(int(v * 2**bits) for v in row) for row in found))
    return GivenRows(tuple(rows), None, exact)
