"""Two versions of a design: which rows are the same, and what the two reveal together."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from optmech.analysis.leakage.composition import Parallel, parallel, require_mechanism
from optmech.analysis.leakage.vulnerability import fractions, rational_rows
from optmech.base.labelled import label_text
from optmech.base.shown import Shown
from optmech.errors import ProblemError
from optmech.exact.number import Exact
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Prior


class Change(NamedTuple):
    """How well a report of one secret tells which of two versions made it."""

    epsilon: float
    """max_o |ln p'(o|s) / p(o|s)|: an ``Exact`` unless infinite; 0 for a row that is kept."""
    variation: Exact
    """Their total variation: the share of reports that a change of the row must move."""


@dataclass(frozen=True, eq=False, repr=False)
class Versions(Shown):
    """Two mechanisms whose secrets and observables are told apart by their labels."""

    old: Mechanism
    new: Mechanism

    @cached_property
    def common(self) -> tuple[Hashable, ...]:
        """The secrets of both, in the order of the new version."""
        before = set(self.old.secrets.labels)
        return tuple(label for label in self.new.secrets.labels if label in before)

    @cached_property
    def added(self) -> tuple[Hashable, ...]:
        """Secrets of the new version only."""
        return tuple(label for label in self.new.secrets.labels if label not in set(self.common))

    @cached_property
    def removed(self) -> tuple[Hashable, ...]:
        """Secrets of the old version only."""
        return tuple(label for label in self.old.secrets.labels if label not in set(self.common))

    @cached_property
    def _rows(self) -> tuple[dict[Hashable, dict[Hashable, Fraction]], ...]:
        """p(o|s) where it is positive, by label, of the old and the new version."""
        return tuple(
            {
                label: {o: p for o, p in zip(m.observables.labels, row, strict=True) if p}
                for label, row in zip(m.secrets.labels, fractions(m), strict=True)
            }
            for m in (self.old, self.new)
        )

    @cached_property
    def kept(self) -> tuple[Hashable, ...]:
        """Secrets whose rows are the same in both, exactly."""
        before, after = self._rows
        return tuple(label for label in self.common if before[label] == after[label])

    @cached_property
    def changed(self) -> tuple[Hashable, ...]:
        """Secrets of both whose rows differ."""
        same = set(self.kept)
        return tuple(label for label in self.common if label not in same)

    @cached_property
    def together(self) -> Parallel:
        """A report of each version about one of the common secrets, drawn independently: what is
        revealed to whoever sees both when every device draws anew."""
        secrets = self.new.secrets
        if len(self.common) < len(secrets):
            chosen = [secrets.index(label) for label in self.common]
            points = None if secrets.points is None else secrets.points[chosen]
            secrets = Domain(self.common, points, secrets.unit, coordinates=secrets.coordinates)
        return parallel(_restricted(self.old, secrets), _restricted(self.new, secrets))

    def prior(self, given: Prior) -> Prior:
        """A prior over the new version's secrets, of the common ones alone. Raises ProblemError
        where these have no mass."""
        weights = given.weights[[given.domain.index(label) for label in self.common]]
        return Prior(self.together.first.secrets, weights)

    def change(self, label: Hashable) -> Change:
        """What a report about one of the common secrets says of its version. Raises ProblemError
        on a label of another."""
        if label not in self._rows[0] or label not in self._rows[1]:
            raise ProblemError(
                f"{label_text(label)} is no secret of both versions",
                where="label",
                remedy="Give one of common",
            )
        before, after = (rows[label] for rows in self._rows)
        apart = sum(
            (abs(before.get(o, Fraction(0)) - after.get(o, Fraction(0))) for o in before | after),
            Fraction(0),
        )
        told = math.inf
        if before.keys() == after.keys():
            ratios = [before[o] / after[o] for o in before]
            told = Exact(Fraction(1), max(max(ratio, 1 / ratio) for ratio in ratios))
        return Change(told, Exact(apart / 2))

    @cached_property
    def most_changed(self) -> Hashable | None:
        """The secret whose row moved most, in total variation; None where none did."""
        found = ((self.change(label).variation.factor, label) for label in self.changed)
        return max(found, key=lambda pair: pair[0], default=(None, None))[1]


@checked_arguments
def versions(old: Mechanism, new: Mechanism) -> Versions:
    """Two versions of a mechanism, matched by the labels of secrets and observables: ``kept`` and
    ``changed`` rows, ``together`` (what a report of each reveals), ``change(label)``.

    Raises
    ------
    ProblemError
        Where they have no secret in common.
    """
    require_mechanism(old, "old")
    require_mechanism(new, "new")
    found = Versions(old, new)
    if not found.common:
        raise ProblemError(
            "has no secret in common with the old version",
            where="new",
            remedy="Compare designs whose secrets have the same labels",
        )
    return found


def _restricted(m: Mechanism, secrets: Domain) -> Mechanism:
    """The rows of some secrets, which are found by their labels."""
    if secrets == m.secrets:
        return m
    rows = fractions(m)
    chosen = [rows[m.secrets.index(label)] for label in secrets.labels]
    return Mechanism.of(secrets, m.observables, rational_rows(chosen))
