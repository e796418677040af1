"""A designed family of mechanisms, one for every auxiliary input, with its proof; and what it
really gives away when it was made for λ̂_t and is used on λ_t (Kawamoto and Murakami, Allerton
2019, Theorem 3)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from optmech.analysis.divergences.general import misestimated
from optmech.analysis.divergences.named import FUNCTIONS
from optmech.analysis.guarantees import Guarantee
from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.certificate.check import Check
from optmech.certificate.proved import CLAIMS, ProvedLoss
from optmech.errors import ProblemError
from optmech.exact.codec import amount, listing, record as fields
from optmech.exact.number import Exact, rounded_down, rounded_up
from optmech.exact.sampler import limbs_for
from optmech.reading.sealed import FAMILY
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.prior import Distribution
from optmech.spaces.rationals import RationalRows, Shares, lowest_terms
from optmech.spaces.tabulated import NAMED, misnamed
from optmech.transport.joint import Multipliers
from optmech.transport.outputs import (
    Outputs,
    are_close,
    largest_divergence,
    relative_gap,
    weighted,
)
from optmech.transport.rational import RationalPlan, is_crowded


@record
class Misestimation:
    """Outputs under actual input distributions, and what they reveal."""

    exact_outputs: tuple[Shares, ...]
    """Σ_x λ_t[x] C(t,x), exactly."""
    closeness: float
    """max_t max(D_∞(λ̂_t ‖ λ_t), D_∞(λ_t ‖ λ̂_t)), rounded upwards: the ε of Kawamoto and Murakami,
    Allerton 2019, Theorem 3.
    """
    promised: float
    """max_{t,t'} D_∞ between the outputs under λ̂, rounded upwards."""
    divergences: dict[str, float]
    """The largest divergence between two outputs, both ways: "max" (from exact ratios, rounded
    upwards), and in floating point "kl", "reverse_kl", "tv", "chi2", "hellinger"."""

    @property
    def outputs(self) -> Floats:
        """Shape (T, m)."""
        return np.array([output.weights for output in self.exact_outputs])

    @property
    def epsilon(self) -> float:
        """The largest D_∞ between two outputs: (ε, 0)-distribution privacy that is really given."""
        return self.divergences["max"]

    def bound(self, divergence: str) -> Guarantee:
        """What ``closeness`` alone promises, tight over all inputs that close."""
        return misestimated(divergence, self.closeness, self.promised)


Task = Literal["coupling", "target"]
Outside = Literal["target", "nearest"]
NAMELESS = "matrix"
"""The name of distances that cannot be computed again."""


@record
class TargetDesign(ProvedLoss):
    """A mechanism for every auxiliary input t, with exact rational probabilities (Kawamoto and
    Murakami, Allerton 2019, Def. 16).

    ``task`` is "coupling" where the common output distribution was given, and "target" where the
    outputs were optimised too.

    Examples
    --------
    >>> d = om.distances.euclidean()(om.Domain.range(2), om.Domain.range(2))
    >>> ages = [["3/4", "1/4"], ["1/4", "3/4"]]
    >>> design = om.mechanisms.optimal_target(ages, d, names=["young", "old"])
    >>> design.names, design.losses, design.outputs[0].tolist()
    (('young', 'old'), (0.0, 0.5), [0.75, 0.25])
    >>> design.index("old"), design.summary()["status"]
    (1, 'optimal')
    >>> print(design.gap_to(design.loss, design.lower_bound))
    0.0
    >>> design.sample("old", 1, size=3, seed=1)
    [1, 0, 0]
    >>> print(round(design.under(ages).epsilon, 6))  # inputs as they were assumed
    0.0
    """

    formats = (FAMILY,)
    heading = "Coupling mechanisms"
    measured = "average loss"
    claimed = fields(
        dict,
        "claims",
        **CLAIMS,
        losses=listing(amount("losses")),
        worst_moves=listing(amount("worst_moves")),
    )

    secrets: Domain
    observables: Domain
    names: tuple[str, ...]
    """Of the auxiliary inputs."""
    weights: Shares
    """w_t of the average loss."""
    distance: Floats
    """d(x,y), shape (n, m)."""
    plans: tuple[RationalPlan, ...]
    """γ_t, whose first marginal is λ_t and whose second is μ_t."""
    task: Task
    epsilon: Exact
    delta: Exact
    """The outputs are pairwise (ε, δ)-close; (0, 0) where they are one distribution."""
    order: float
    """1 for plans of least mean loss, inf for plans of least longest move."""
    outside: Outside
    """What happens to an x with λ_t[x] = 0."""
    multipliers: Multipliers | None
    """Proof of the lower bound of a "target"; None where a bound without them is as good."""
    crowded: tuple[tuple[int, ...], ...] = ()
    """For order inf: points that hold more mass than all that is nearer than W_∞, for every t."""
    seconds: float = 0.0
    _apart: ClassVar = frozenset({"plans", "multipliers", "crowded", "seconds"})
    _follows: ClassVar = ("rows", "exact_outputs", "lower_bound")

    @property
    def inputs(self) -> Floats:
        """λ_t, shape (T, n)."""
        return np.array([plan.first.weights for plan in self.plans])

    @property
    def outputs(self) -> Floats:
        """μ_t, shape (T, m); ``exact_outputs`` has them as whole numbers."""
        return np.array([plan.second.weights for plan in self.plans])

    @property
    def exact_outputs(self) -> tuple[Shares, ...]:
        """μ_t exactly."""
        return tuple(plan.second for plan in self.plans)

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """C(t, ·) for every t, in the order of ``names``."""
        return tuple(Mechanism.of(self.secrets, self.observables, rows) for rows in self.rows)

    @cached_property
    def rows(self) -> tuple[RationalRows, ...]:
        """C(t,x)[y] = γ_t[x,y] / λ_t[x] as whole numbers."""
        made = [conditional(plan, self.distance, self.outside) for plan in self.plans]
        # the auxiliary input is what is hidden: a draw takes the same work for all of them
        limbs = max(limbs_for(one.rows) for one in made)
        return tuple(replace(one, limbs=limbs) for one in made)

    def index(self, name: str | int) -> int:
        """The number of an auxiliary input, given by name or number."""
        if name in self.names:
            return self.names.index(str(name))
        if isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(self.names):
            return name
        raise ProblemError(
            f"there is no auxiliary input {name!r}",
            where="auxiliary input",
            remedy=f"Use one of {', '.join(self.names)}",
        )

    def sample(
        self,
        name: str | int,
        secret: Hashable,
        size: int | None = None,
        *,
        seed: int | None = None,
    ) -> Any:
        """Draw from C(t, x); see ``Mechanism.sample``."""
        return self.mechanisms[self.index(name)].sample(secret, size, seed)

    @cached_property
    def exact_losses(self) -> tuple[Fraction, ...]:
        """Σ γ_t d, the expected loss under λ_t (Kawamoto and Murakami, Allerton 2019, Def. 17),
        exactly.
        """
        return tuple(plan.cost(self.distance) for plan in self.plans)

    @property
    def losses(self) -> tuple[float, ...]:
        """The expected loss for every auxiliary input; W_1(λ_t, μ_t) for order 1."""
        return tuple(rounded_up(value) for value in self.exact_losses)

    @property
    def worst_moves(self) -> tuple[float, ...]:
        """The longest move for every auxiliary input; W_∞(λ_t, μ) for order inf."""
        return tuple(plan.longest(self.distance) for plan in self.plans)

    @cached_property
    def exact_loss(self) -> Fraction:
        """Σ w_t loss_t, ``loss`` before rounding."""
        return weighted(self.weights, self.exact_losses)

    @cached_property
    def exact_bound(self) -> Fraction:
        """``lower_bound`` before rounding: no family with these inputs and this privacy loses less;
        for a "coupling": none with this target (and, for order inf, without longer moves)."""
        if self.task == "coupling":
            return weighted(self.weights, [dual_value(plan) for plan in self.plans])
        inputs = tuple(plan.first for plan in self.plans)
        asked = Outputs(inputs, self.distance, self.weights, self.epsilon, self.delta)
        return asked.bound(self.multipliers)

    def gap_to(self, loss: float, bound: float) -> float:
        """(loss - bound) / loss before both are rounded, rounded up; 0 where the loss is 0.

        Beside nothing else: a loss that is small against the distances is as good as its own
        bound says, and no better."""
        proved = self.exact_bound
        exact = Fraction(bound) if bound < rounded_down(proved) else proved
        return relative_gap(self.exact_loss, exact)

    @property
    def promise(self) -> str:
        """What is the same, or close, for all inputs, in words."""
        among = f"outputs of {len(self.names)} inputs"
        if self.is_common:
            return f"equal {among}"
        return f"(ε, δ) = ({self.epsilon.words}, {self.delta.words}) between {among}"

    @property
    def checks(self) -> Iterator[Check]:
        """Every row, the outputs, and every plan of a coupling."""
        count, (n, m) = len(self.plans), self.distance.shape
        detail = f"{count} inputs, whole numbers, every row a distribution"
        yield Check("distributions", None, count * n * (m + 1), True, 0.0, detail)
        yield _closeness(self)
        if self.task == "coupling":
            for name, plan in zip(self.names, self.plans, strict=True):
                yield _optimality(name, plan, self)
            for name, plan, sources in zip(
                self.names, self.plans, self.crowded, strict=bool(self.crowded)
            ):
                yield _worst_move(name, plan, sources, self.distance)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What a verdict on its file is about, and what is the file's own word."""
        name = self.distance_name
        return (
            "the distances are a matrix of the file, not compared with any coordinates"
            if name == NAMELESS
            else f"the distances are {name}, computed again from the file's labels and coordinates",
            "the labels, coordinates and units, the names of the inputs and the seconds are the "
            "file's own words: nothing in it can prove them",
        )

    @cached_property
    def distance_name(self) -> str:
        """The distance that the matrix is, of those that follow from labels and coordinates."""
        for name in NAMED:
            with suppress(ProblemError):
                if misnamed(name, self.secrets, self.observables, self.distance) is None:
                    return name
        return NAMELESS

    @property
    def is_common(self) -> bool:
        """Whether all outputs are one distribution, exactly."""
        first = self.plans[0].second.fractions
        return all(plan.second.fractions == first for plan in self.plans)

    @checked_arguments
    def under(self, actual: Sequence[Distribution]) -> Misestimation:
        """What the outputs really are when inputs are drawn from ``actual`` and not from the λ_t
        that the mechanisms were made for: measured exactly, beside the bounds of Kawamoto and
        Murakami, Allerton 2019, Theorem 3."""
        if len(actual) != len(self.plans):
            raise ProblemError(
                f"{len(actual)} distributions for {len(self.plans)} auxiliary inputs",
                where="actual",
            )
        given = [Shares.of(value, f"actual[{t}]") for t, value in enumerate(actual)]
        for t, lam in enumerate(given):
            if len(lam) != len(self.secrets):
                raise ProblemError(
                    f"{len(lam)} weights for {len(self.secrets)} secrets", where=f"actual[{t}]"
                )
        outputs = [rows.push(lam) for rows, lam in zip(self.rows, given, strict=True)]
        pairs = list(itertools.permutations([output.weights for output in outputs], 2))
        found = {"max": largest_divergence(outputs)} | {
            name: max((measured(p, q) for p, q in pairs), default=0.0)
            for name, measured in FUNCTIONS.items()
            if name != "max"
        }
        assumed = [plan.first for plan in self.plans]
        closeness = max(map(largest_divergence, zip(assumed, given, strict=True)))
        promised = largest_divergence(self.exact_outputs)
        return Misestimation(tuple(outputs), closeness, promised, found)

    def summary(self) -> dict[str, Any]:
        """The design's figures as plain values, ready for JSON."""
        return {
            "task": self.task,
            "status": self.status,
            "loss": self.loss,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "verified": True,
            "engine": "transport" if self.task == "coupling" else "column generation",
            "seconds": self.seconds,
            "secrets": len(self.secrets),
            "observables": len(self.observables),
            "epsilon": self.epsilon.text,
            "delta": self.delta.text,
            "p": "inf" if math.isinf(self.order) else 1,
            "inputs": [
                {"name": name, "loss": loss, "longest_move": move}
                for name, loss, move in zip(self.names, self.losses, self.worst_moves, strict=True)
            ],
        }


def dual_value(plan: RationalPlan) -> Fraction:
    """Σ λ u + Σ μ v: a lower bound of every plan's cost where the potentials are feasible."""
    sides = zip((plan.first, plan.second), plan.potentials, strict=True)
    terms = (share[x] * prices[x] for share, prices in sides for x in share.support)
    return sum(terms, Fraction(0)) / (1 << plan.shift)


def conditional(plan: RationalPlan, distance: Floats, outside: Outside) -> RationalRows:
    """γ[x,y] / λ[x] as rows of whole numbers, and the rule for rows with λ[x] = 0: a draw from the
    target ("target"), or its nearest point with mass, the first of equals ("nearest")."""
    n, m = distance.shape
    rows = [[0] * m for _ in range(n)]
    for (x, y), flow in plan.flows.items():
        rows[x][y] = flow
    support = plan.second.support
    for x, row in enumerate(rows):
        if not plan.first.units[x] and outside == "target":
            rows[x] = list(plan.second.units)
        elif not plan.first.units[x]:
            row[support[distance[x, support].argmin()]] = 1
    return RationalRows(tuple(map(tuple, lowest_terms(rows))))


def _closeness(design: TargetDesign) -> Check:
    outputs = design.exact_outputs
    pairs = len(outputs) * (len(outputs) - 1) * design.distance.shape[1]
    if design.is_common:
        detail = "all outputs are one distribution, exactly"
        return Check("outputs", None, pairs, True, 0.0, detail)
    passed = design.task == "target" and are_close(outputs, design.epsilon, design.delta)
    worst = largest_divergence(outputs)
    detail = (
        f"pairwise ({float(design.epsilon):.9g}, {float(design.delta):.9g})-close, "
        f"largest max divergence {worst:.12g}"
    )
    return Check("outputs", None, pairs, passed, worst, detail if passed else f"not {detail}")


def _optimality(name: str, plan: RationalPlan, design: TargetDesign) -> Check:
    """u + v <= c between points with mass, and equality where mass moves, in whole numbers. For
    order inf c counts up to the longest move only: all plans compared move no farther."""
    limit = plan.longest(design.distance) if np.isinf(design.order) else np.inf
    u, v = plan.potentials
    unit = 1 << plan.shift
    passed, count = True, 0
    for x in plan.first.support:
        for y in plan.second.support:
            d = float(design.distance[x, y])
            if d > limit:
                continue
            count += 1
            slack = Fraction(d) * unit - u[x] - v[y]
            passed &= slack >= 0 and (slack == 0 or (x, y) not in plan.flows)
    detail = f"{name}: potentials {'prove' if passed else 'do not prove'} the plan optimal"
    return Check("plan", None, count, passed, 0.0, detail)


def _worst_move(name: str, plan: RationalPlan, sources: tuple[int, ...], distance: Floats) -> Check:
    longest = plan.longest(distance)
    passed = longest == 0 or (
        bool(sources) and is_crowded(plan.first, plan.second, sources, distance < longest)
    )
    detail = f"{name}: longest move {longest:.9g}, and {'no' if passed else 'maybe a'} shorter one"
    return Check("longest move", None, 1, passed, longest, detail)
