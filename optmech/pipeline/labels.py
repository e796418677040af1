"""What bounds on losses and on attacks say of the columns of a design for statistics, whose reports
are its own: each has the loss of one observable."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.certificate.families import Distortion, LossLimit
from optmech.certificate.families.base import known
from optmech.certificate.statement import Statement
from optmech.engines import limited
from optmech.errors import SolverError


@dataclass(frozen=True)
class Labels:
    """Observables ``at`` (L,) whose losses reports may have, and what limits say of columns.

    ``sizes`` (q,) are those of the rows of ``limits.losses``, and ``counts`` how many of these rows
    and attacks every family of the statement has, with whether it is one on losses.
    """

    at: Ints
    cost: Floats
    limits: limited.Limits
    counts: tuple[tuple[int, bool], ...]

    @classmethod
    def of(cls, statement: Statement) -> Labels:
        """Those that a support allows for all secrets, as what one of them may not report no other
        may either; of equal losses the first."""
        n = statement.secrets
        allowed = np.flatnonzero(statement.allowed.all(axis=0))
        if not len(allowed):
            raise SolverError(
                "the support allows no observable for all secrets, so that none can be reported",
                where="constraints",
                remedy="Allow more",
            )
        losses, most = list[Floats](), list[float]()
        errors, least = list[Floats](), list[float]()
        counts = list[tuple[int, bool]]()
        for family in known(statement):
            if isinstance(family, LossLimit):
                rows = family.loss.T if family.per_secret else family.weighted.T
                diagonal = [np.eye(n)[s] * rows for s in range(n)]
                losses += diagonal if family.per_secret else [rows]
                most += [float(family.maximum)] * (n if family.per_secret else 1)
                counts.append((n if family.per_secret else 1, True))
            elif isinstance(family, Distortion):
                errors.append(family.weighted)
                least.append(float(family.minimum))
                counts.append((1, False))
        at = allowed
        table = np.array(losses).reshape(len(losses), statement.observables, n)
        if losses:
            flat = table[:, allowed].transpose(1, 0, 2).reshape(len(allowed), -1)
            at = allowed[np.sort(np.unique(flat, axis=0, return_index=True)[1])]
            table = table[:, at]
        else:
            table = table[:, :1]
        limits = limited.Limits(table, np.array(most), tuple(errors), np.array(least))
        return cls(at, statement.cost, limits, tuple(counts))

    def chosen(self, columns: Floats) -> Ints:
        """The observable that fits each column best."""
        return np.asarray(self.at[(columns @ self.cost[:, self.at]).argmin(axis=1)])

    def kept(self, columns: Floats, weights: Floats) -> bool:
        """Whether weights keep the limits, with the labels that fit best."""
        labels = np.zeros(len(columns), dtype=np.int64)
        if len(self.limits.most):
            labels = np.searchsorted(self.at, self.chosen(columns))
        spent = self.limits.counts(columns, labels) @ weights
        return bool((spent <= self.limits.bounds - 1e-9 * np.abs(self.limits.bounds)).all())

    def charges(self, attacked: bool = False) -> tuple[Floats, Floats]:
        """(L, q, S) and (q,): what columns of each label count, of limits of about one; the attack
        comes after them."""
        own = self.limits
        size = np.maximum(own.most, 1e-9)
        most = np.append(own.most / size, -1.0) if attacked else own.most / size
        return own.losses.transpose(1, 0, 2) / size[:, None], most

    def unscaled(self, found: Floats) -> Floats:
        """Charges of the scaled limits as those of all families, in their order."""
        sizes = [*np.maximum(self.limits.most, 1e-9), *self.limits.least[:1]]
        left = [value / size for value, size in zip(found, sizes, strict=False)]
        attacks = left[len(self.limits.most) :]
        out: list[float] = []
        for count, of_losses in self.counts:
            if of_losses:
                out += [left.pop(0) for _ in range(count)]
            else:
                out.append(attacks.pop() if attacks else 0.0)
        return np.array(out)
