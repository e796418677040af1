"""Rows of probabilities that are given exactly: of a design, of a mechanism, or as a table."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence, Set
from fractions import Fraction
from typing import Any

from optmech.base.labelled import label_text
from optmech.base.read_only import record
from optmech.base.shown import Shown
from optmech.errors import ProblemError, inside
from optmech.exact.number import parse_fraction
from optmech.exact.numerators import MAX_BITS, Numerators
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh.mechanism import MeshMechanism

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
        if isinstance(mechanism, MeshMechanism):
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
