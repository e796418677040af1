"""Coupling mechanisms made for λ̂_t and used on λ_t: what is really given away (CM19 Theorem 3)."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optmech.analysis.guarantees import Guarantee
from optmech.base.arrays import Floats
from optmech.divergences.misestimated import misestimated
from optmech.divergences.named import FUNCTIONS
from optmech.errors import ProblemError
from optmech.spaces.prior import Distribution
from optmech.spaces.rationals import Shares
from optmech.targets.closeness import largest_divergence

if TYPE_CHECKING:
    from optmech.targets.design import TargetDesign


@dataclass(frozen=True, eq=False)
class Misestimation:
    """Outputs under actual input distributions, and what they reveal."""

    exact_outputs: tuple[Shares, ...]
    """Σ_x λ_t[x] C(t,x), exactly."""
    closeness: float
    """max_t max(D_∞(λ̂_t ‖ λ_t), D_∞(λ_t ‖ λ̂_t)), rounded upwards: the ε of CM19 Theorem 3."""
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


def measure(design: TargetDesign, actual: Sequence[Distribution]) -> Misestimation:
    """Push the actual distributions through the mechanisms, in whole numbers."""
    if len(actual) != len(design.plans):
        raise ProblemError(
            f"{len(actual)} distributions for {len(design.plans)} auxiliary inputs", where="actual"
        )
    given = [Shares.of(value, f"actual[{t}]") for t, value in enumerate(actual)]
    for t, lam in enumerate(given):
        if len(lam) != len(design.secrets):
            raise ProblemError(
                f"{len(lam)} weights for {len(design.secrets)} secrets", where=f"actual[{t}]"
            )
    outputs = [rows.push(lam) for rows, lam in zip(design.rows, given, strict=True)]
    pairs = list(itertools.permutations([output.weights for output in outputs], 2))
    found = {"max": largest_divergence(outputs)} | {
        name: max((measured(p, q) for p, q in pairs), default=0.0)
        for name, measured in FUNCTIONS.items()
        if name != "max"
    }
    assumed = [plan.first for plan in design.plans]
    closeness = max(map(largest_divergence, zip(assumed, given, strict=True)))
    promised = largest_divergence(design.exact_outputs)
    return Misestimation(tuple(outputs), closeness, promised, found)
