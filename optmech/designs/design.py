"""A design: the mechanism, its value, the bound that was proved, and the proof."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from optmech.analysis.counts import Counts, counts_of
from optmech.analysis.surveys import Estimate, estimated
from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.base.shown import Shown, card
from optmech.base.storage import plain_values
from optmech.certificate import Bound, Check, Multipliers, lower_bound
from optmech.certificate.families import Gradient
from optmech.certificate.objective import Figures, claimable, relative_gap
from optmech.certificate.proved import Proved
from optmech.certificate.statement import Statement
from optmech.certificate.variance import VarianceProof
from optmech.designs.promise import (
    MEASURED,
    Approximation,
    Promise,
    guess_shares,
    guess_words,
    promise_of,
)
from optmech.errors import InfeasibleError, ProblemError
from optmech.exact.number import from_above, from_below
from optmech.exact.numerators import Numerators
from optmech.problem import MaximizeDistortion, MinimizeLeakage, MinimizeVariance, Problem
from optmech.reading.sealed import DESIGN
from optmech.spaces.arguments import LOAD, kind
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.mesh import Mesh
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech.spaces.statistics import as_statistic, statistic_matrix
from optmech.spaces.tables import distance_words

if TYPE_CHECKING:
    from optmech.reductions.witness import Witness

_SUMMARY = (
    "status", "loss", "lower_bound", "gap", "objective", "bound", "verified", "bits",
    "rounding_cost", "engine", "engine_reason", "seconds",
)  # fmt: skip


@record
class OuterProof(Shown):
    """Multipliers of a coarser problem, whose optimum is no larger: of its ``statement``, which
    follows from the problem and ``cells`` of its secrets (n,), or from the problem alone."""

    cells: Ints | None
    statement: Statement
    multipliers: Multipliers
    witness: Witness | None = None
    """What proves the numbers of the statement; without it they are found again."""

    @cached_property
    def bound(self) -> Bound:
        """What the multipliers prove here, as far as it is claimed."""
        found = lower_bound(self.statement, self.multipliers)
        # all that is proved, and a little less of it to be claimed, for other roundings' sake
        return Bound(claimable(found.value), found.rounding, max(found.proved, 0.0))


@record
class Certificate(Shown):
    """What a third party needs to check the design: verdicts, bound and multipliers."""

    checks: tuple[Check, ...]
    multipliers: Multipliers
    bound: Bound
    outer: OuterProof | None = None
    """What proves the bound where multipliers of the problem itself do not."""


@kind(
    "Give what om.solve returns, or read one with om.load(path)",
    {
        "Mechanism": "A mechanism alone has no problem and no proof: om.exchange.adopt(mechanism, "
        "problem) makes a design of it",
        "str": LOAD,
    },
)
@record
class Design(Proved):
    """The result of ``solve``. Numbers are nan where the problem is infeasible.

    All figures are of the released numerators, computed exactly and rounded to the safe side.

    ``objective`` is the optimised quantity of the released matrix and ``bound`` what was proved
    about it: no feasible mechanism has less loss (or more distortion, where that is maximised).
    ``gap`` is their relative difference, and ``status`` follows from it alone.

    ``loss`` is the released matrix's loss: worst case where that is the objective, expected
    otherwise. ``lower_bound`` bounds that loss from below. When distortion is maximised, it is
    the least loss at which the released distortion could be had, by the same multipliers.

    Of ``MetricPrivacy(…, everywhere=mesh)`` ``bound``, ``status`` and infeasibility are proved for
    all mechanisms of the mesh's degree whose coefficients meet its condition, in degree 1 in the
    plane, on lines and along roads for all that are linear on every piece. ``lower_bound`` is
    proved for **every** mechanism that is private at every point of the region, whatever its form
    (and, where other constraints stand beside that and places are few, keeps these as well);
    ``total_gap`` is the relative difference to it, which a finer mesh reduces. It is 0 where none
    was looked for.

    Examples
    --------
    >>> line = om.Domain.range(3, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(line), km, constraints=[om.MetricPrivacy("ln 2", km)])
    >>> design = om.solve(problem)
    >>> design.status, design.verified, design.gap <= 1e-6
    ('optimal', True, True)
    >>> print(round(design.loss, 4), round(design.lower_bound, 4))  # km
    0.5556 0.5556
    >>> design.save("line.json")
    >>> om.Design.load("line.json").loss == design.loss
    True
    >>> om.Design.of_document(design.document(), "a line").mechanism == design.mechanism
    True
    >>> print(design.summary()["status"], round(design.summary()["loss"], 4))
    optimal 0.5556
    """

    formats = (DESIGN,)
    problem: Problem
    exact: Numerators | None
    """What is released: whole numbers over a power of two, a row for every secret, or for every
    control point of the mesh, its vertices first. None where nothing is feasible."""
    figures: Figures
    certificate: Certificate
    engine: str
    engine_reason: str
    seconds: float
    reason: str = ""
    notes: tuple[str, ...] = ()
    approximations: tuple[Approximation, ...] = ()
    rounding_cost: float = 0.0
    """Change of the objective by rounding to numerators, relative to the repaired float matrix."""
    _apart: ClassVar = frozenset(
        ("certificate", "engine", "engine_reason", "seconds", "reason", "notes",
         "approximations", "rounding_cost")
    )  # fmt: skip

    def __repr__(self) -> str:
        title = f"{self.problem.title[:60]!r}, " if self.problem.title else ""
        what = "secrets" if self.mesh is None else "places"
        size = f"{len(self.problem.secrets)} {what}, {len(self.problem.observables)} observables"
        if self.exact is None:
            return f"Design({title}{self.status}, {size}: {self.reason[:200]})"
        checked = "verified" if self.verified else "NOT verified"
        promised = f"{promise_of(self.problem).brief}, " if self.problem.constraints else ""
        promised += f"best guess right {guess_shares(self.mechanism, self.problem.prior)}, "
        figures = ", ".join(f"{name} {value}" for name, value in self._figures())
        return (
            f"Design({title}{self.status}, {checked}, {size}, {promised}{figures}, "
            f"gap {from_above(self.gap, 2)}, "
            f"{_word(self.engine)}, {self.seconds:.2f} s)"
        )

    def _figures(self) -> list[tuple[str, str]]:
        """What is optimised, what was proved of it, and the loss, with their units."""
        problem, goal = self.problem, self.problem.objective
        loss = f"{self.loss:.6g}{unit_after(problem, problem.loss)}"
        if isinstance(goal, MaximizeDistortion):
            unit = unit_after(problem, goal.distance)
            found = [
                ("distortion", f"{self.objective:.6g}"),
                ("upper bound", from_above(self.bound)),
            ]
        elif isinstance(goal, MinimizeVariance):
            unit = ""
            found = [("variance", f"{self.objective:.6g}"), ("lower bound", from_below(self.bound))]
        elif isinstance(goal, MinimizeLeakage):
            unit = ""
            found = [("leakage", f"{self.objective:.6g}"), ("lower bound", from_below(self.bound))]
        elif self.mesh is not None:
            every = (
                f"{from_below(self.lower_bound)} for every mechanism, "
                f"gap {from_above(self.total_gap, 2)} to it"
            )
            region = ("at every point of", self.mesh.size_words)
            return [("loss", loss), region, ("lower bound", every)]
        else:
            return [("loss", loss), ("lower bound", from_below(self.lower_bound))]
        return [*((name, f"{value}{unit}") for name, value in found), ("loss", loss)]

    def _repr_html_(self) -> str:
        problem = self.problem
        facts: list[tuple[str, object]] = [
            ("secrets", problem.secrets),
            ("observables", problem.observables),
            ("status", f"{self.status}, {'verified' if self.verified else 'NOT verified'}"),
        ]
        facts += [(name, value) for name, value in promise_of(problem).facts if value]
        title = f"Design: {problem.title}" if problem.title else "Design"
        if self.exact is None:
            return card(title, [*facts[:2], ("status", self.status), ("reason", self.reason)])
        facts += [
            ("best guess", guess_words(self.mechanism, problem.prior)),
            *self._figures(),
            ("gap" if self.mesh is None else "gap on this mesh", from_above(self.gap, 2)),
            ("engine", f"{_word(self.engine)}, {self.seconds:.2f} s"),
        ]
        return card(title, facts)

    @property
    def status(self) -> Literal["optimal", "feasible", "infeasible"]:
        """ "infeasible" without a mechanism; "optimal" where the certified gap is at most 1e-6,
        whatever gap was asked for; else "feasible"."""
        if self.exact is None:
            return "infeasible"
        return super().status

    @property
    def verified(self) -> bool:
        """Whether every inequality holds, decided exactly; False where nothing is released."""
        checks = self.certificate.checks
        return bool(checks) and all(check.passed for check in checks)

    @property
    def objective(self) -> float:
        """The optimised quantity of the released matrix."""
        return self.figures.objective

    @property
    def bound(self) -> float:
        """What was proved about the objective."""
        return self.figures.bound

    @property
    def variance(self) -> float:
        """Of ``MinimizeVariance``: N times the total variance of the estimate from N people who are
        drawn from the population, rounded up. Raises ProblemError where another objective was
        stated."""
        self._require_survey()
        return self.objective

    @property
    def variance_bound(self) -> float:
        """What ``variance`` is at least, of every mechanism that keeps the promise. Raises as
        ``variance``."""
        self._require_survey()
        return self.bound

    def estimate(self, counts: Counts, statistic: ArrayLike | str | None = None) -> Estimate:
        """The statistic of those who reported, from how often each report came: ``.values``,
        ``.covariance`` and ``.interval(level)``.

        ``counts`` are an array in the order of ``problem.observables``, or a mapping over these.
        Another ``statistic``, as of ``om.MinimizeVariance``, is estimated from the same reports.
        The estimate is unbiased, its variance the one that the file proves; ``.consistent()`` and
        ``om.estimate.prior`` are biased, and often nearer. Raises ProblemError on unusable counts,
        and where another objective was stated.

        Examples
        --------
        >>> coin, d = om.Domain(["yes", "no"]), om.distances.hamming()
        >>> goal, promise = om.MinimizeVariance(), om.DifferentialPrivacy("ln 3")
        >>> asked = om.Problem(om.Prior.uniform(coin), d, objective=goal, constraints=[promise])
        >>> design = om.solve(asked)
        >>> len(design.estimate([60, 40]).values), round(design.variance, 4)
        (2, 2.0)
        """
        proof = self._require_survey()
        survey = self.problem.statement.survey
        assert survey is not None
        near = proof.estimate
        # exactly unbiased but for rounding, as the certificate has it
        near = np.asarray(np.linalg.solve(near @ self.mechanism.matrix.T, near), dtype=np.float64)
        rows = survey.statistic
        if statistic is not None:
            rows = statistic_matrix(as_statistic(statistic), self.problem.secrets)
        return estimated(rows, near, counts_of(counts, self.problem.observables))

    def _require_survey(self) -> VarianceProof:
        proof = self.certificate.multipliers.variance
        if proof is None:
            raise ProblemError(
                "is a design for single reports, whose variance was not minimised",
                where="design",
                remedy="State objective=om.MinimizeVariance(statistic), or see om.estimate",
            )
        return proof

    @property
    def gradient(self) -> Gradient | None:
        """The promise at every point of a region; None where there is none."""
        return next(iter(self.problem.statement.of_kind(Gradient)), None)

    @property
    def mesh(self) -> Mesh | None:
        """The mesh of the region that it is private at every point of; None where it is not."""
        return self.problem.mesh

    @property
    def total_gap(self) -> float:
        """The relative difference of ``loss`` and ``lower_bound``."""
        return relative_gap(self.loss, self.lower_bound)

    @property
    def matrix(self) -> Floats | None:
        """Probabilities of the observables, (secrets, observables), to the nearest floats."""
        return None if self.exact is None else self.mechanism.matrix

    @property
    def mechanism(self) -> Mechanism:
        """The released mechanism, which samples the released probabilities exactly; raises
        InfeasibleError, with the reason, where there is none."""
        if self.exact is None:
            raise InfeasibleError(self.reason, where=self.problem.title)
        return mechanism_of(self.problem, self.exact)

    @cached_property
    def promise(self) -> Promise:
        """What is promised about positions: at every point, or between centres of cells or places
        only, with what two positions next to each other reveal there."""
        return promise_of(self.problem, None if self.exact is None else self.mechanism)

    @property
    def region(self) -> MeshMechanism:
        """The mechanism that reports from every point of a region. Raises ProblemError where the
        design is one for its secrets only."""
        mechanism = self.mechanism
        if not isinstance(mechanism, MeshMechanism):
            raise ProblemError(
                "has no region: it reports from its secrets only",
                where="design",
                remedy="State MetricPrivacy(…, everywhere=mesh) to report from every point",
            )
        mechanism.mesh.require_region()
        return mechanism

    @property
    def indicator(self) -> Floats:
        """What the loss owes, to first order, to the width of every triangle, (T,), for
        ``design.mesh.refine``: where it is large a finer mesh helps most. Raises ProblemError
        where there is no mesh."""
        from optmech.lp.gradients import indicator_of

        gradient, given = self.gradient, self.certificate.multipliers
        rows = self.region.rows.matrix
        if gradient is None:
            raise ProblemError(
                "is a design for a line or network, which has no indicator",
                where="design",
                remedy="Divide its segments, all or the longest",
            )
        part = next(own for family, own in given.of(self.problem.statement) if family is gradient)
        return indicator_of(gradient, rows, part)

    @property
    def approximation(self) -> Approximation | None:
        """The first entry of ``approximations``."""
        return self.approximations[0] if self.approximations else None

    @property
    def bits(self) -> int | None:
        """The power of two that the released numerators are over."""
        return None if self.exact is None else self.exact.bits

    def summary(self) -> dict[str, Any]:
        """The design's figures as plain values, ready for JSON (nan and inf become None)."""
        found = {
            **{name: getattr(self, name) for name in _SUMMARY},
            "secrets": len(self.problem.secrets),
            "observables": len(self.problem.observables),
            "reason": self.reason,
            "notes": list(self.notes),
        }
        if self.mesh is not None:
            found |= {
                "total_gap": self.total_gap,
                "places": len(self.problem.secrets),
                "vertices": len(self.mesh),
                "degree": self.mesh.degree,
                "rows": self.mesh.rows,
                self.mesh.pieces: len(self.mesh.triangles),
            }
        if self.approximations:
            found["approximations"] = [
                {name: getattr(part, name) for name in MEASURED} for part in self.approximations
            ]
        out: dict[str, Any] = plain_values(found)
        return out


def mechanism_of(problem: Problem, exact: Numerators) -> Mechanism:
    """The mechanism for a problem with these released rows."""
    if problem.mesh is not None:
        return MeshMechanism(problem.mesh, problem.observables, exact, problem.secrets)
    return Mechanism.of(problem.secrets, problem.observables, exact)


def unit_after(problem: Problem, distance: object) -> str:
    """The unit of a distance's values, after a number; nothing where it has none."""
    unit = problem.space.unit_of(distance_words(distance)) if callable(distance) else ""
    return f" {unit[:40] if unit.isprintable() else ascii(unit[:40])}" if unit else ""


def _word(text: str) -> str:
    """An engine's name as it is, and quoted where it is none: files may write sentences there."""
    return text if re.fullmatch(r"[\w.+-]{1,40}", text, re.ASCII) else ascii(text[:40])
