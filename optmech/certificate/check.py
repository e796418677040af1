"""The verdict on one family of inequalities, and on a file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """The verdict on one family of inequalities."""

    name: str
    constraint: int | None
    """Index of the constraint it comes from; None for what holds of every mechanism."""
    inequalities: int
    passed: bool
    worst: float
    """Tightest value found, in the family's own measure; see ``detail``."""
    detail: str
    ratios: bool = False
    """Whether ``worst`` is a likelihood ratio as a share of what is allowed."""


@dataclass(frozen=True)
class CheckReport:
    """What ``check`` found in a design file.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> promise = om.DifferentialPrivacy("ln 3")
    >>> problem = om.Problem(om.Prior.uniform(coin), om.distances.hamming(), constraints=[promise])
    >>> om.solve(problem).save("coin.json")
    >>> report = om.check("coin.json")
    >>> print(report.passed, report.status, round(report.loss, 6))
    True optimal 0.25
    """

    path: str
    status: str
    """That of its own gap, "infeasible" where that is proved, "failed" where anything is not."""
    checks: tuple[Check, ...]
    """One verdict per family of inequalities, recomputed from the file's numbers."""
    objective: float
    bound: float
    gap: float
    loss: float
    lower_bound: float
    faults: tuple[str, ...]
    """What does not hold, in words; empty when the design passes."""
    reason: str = ""
    """The proof, in words, that nothing is feasible."""
    notes: tuple[str, ...] = ()
    """What a reader should know although it is no fault: distances that are only matrices, and
    constraints that constrain nothing."""
    total_gap: float | None = None
    """Of what is private at every point: the relative difference of ``loss`` and ``lower_bound``,
    where ``gap`` is that to others on its mesh."""
    unit: str = ""
    """Of ``loss`` and ``lower_bound``; empty where they have none, or it is not known."""

    @property
    def inequalities(self) -> int:
        """How many inequalities were checked."""
        return sum(check.inequalities for check in self.checks)

    @property
    def tightest(self) -> Check | None:
        """The check whose likelihood ratios come closest to their limit, if there is one."""
        return max((c for c in self.checks if c.ratios), key=lambda c: c.worst, default=None)

    @property
    def passed(self) -> bool:
        return not self.faults
