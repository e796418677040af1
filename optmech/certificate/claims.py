"""What files of every kind claim, held against what is proved of their numbers: decided here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from optmech.certificate.check import Check, CheckReport
from optmech.certificate.objective import Figures, status_faults, status_of
from optmech.errors import VerificationError

T = TypeVar("T")


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
    others: Sequence[str] = (),
    notes: tuple[str, ...] = (),
) -> CheckReport:
    """The verdict on a file with these figures, which follow from what it claims where that holds.
    Its status has to be the one of its gap; ``others`` are faults that only its kind has."""
    faults = [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    faults += [
        f"{claim.name} is {claim.said!r} in the file and {claim.proved!r} recomputed"
        for claim in claims
        if not claim.holds
    ]
    faults += [*others, *status_faults(status, figures.gap)]
    return CheckReport(
        path=path,
        status="failed" if faults else status_of(figures.gap),
        checks=checks,
        objective=figures.objective,
        bound=figures.bound,
        gap=figures.gap,
        loss=figures.loss,
        lower_bound=figures.lower_bound,
        faults=tuple(faults),
        notes=notes,
    )


def proved(
    decode: Callable[[dict[str, Any], str], tuple[T, CheckReport]],
    body: dict[str, Any],
    where: str,
    remedy: str,
) -> T:
    """What a file's content is decoded to; raises VerificationError where a claim does not hold."""
    found, report = decode(body, where)
    if not report.passed:
        raise VerificationError(report.faults[0], where=where, remedy=remedy)
    return found
