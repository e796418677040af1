"""What files of every kind claim, held against what is proved of their numbers: decided here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from optmech.certificate.check import Check, CheckReport
from optmech.certificate.objective import Figures, status_of


class Claim(NamedTuple):
    """One entry of a file, and what its numbers prove."""

    name: str
    said: object
    proved: object
    is_enough: bool = False
    """Whether what is said claims less than what is proved: no fault."""

    @property
    def holds(self) -> bool:
        """Whether the file claims nothing that is not so."""
        return self.said == self.proved or self.is_enough


def bounded(name: str, said: float, proved: float, sign: float = 1.0) -> Claim:
    """A lower bound; an upper one where ``sign`` is -1. A file may claim less than it proves."""
    return Claim(name, said, proved, sign * said <= sign * proved)


def report_on(
    path: str,
    checks: tuple[Check, ...],
    claims: Sequence[Claim],
    status: object,
    figures: Figures,
    *,
    notes: tuple[str, ...] = (),
    total_gap: float | None = None,
) -> CheckReport:
    """The verdict on a file with these figures, which follow from what it claims where that holds.
    Its status has to be the one of its gap."""
    proper = status_of(figures.gap)
    faults = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    faults += [
        f"{claim.name} is {claim.said!r} in the file and {claim.proved!r} recomputed"
        for claim in (*claims, Claim("the status", status, proper))
        if not claim.holds
    ]
    return CheckReport(
        path=path,
        status="failed" if faults else proper,
        checks=checks,
        objective=figures.objective,
        bound=figures.bound,
        gap=figures.gap,
        loss=figures.loss,
        lower_bound=figures.lower_bound,
        faults=tuple(faults),
        notes=notes,
        total_gap=total_gap,
    )
