"""Multipliers of the statement's inequalities: what a lower bound is made of."""

from __future__ import annotations

from dataclasses import dataclass

from optmech.base.arrays import Floats, Ints


@dataclass(frozen=True, eq=False)
class PairMultipliers:
    """Non-negative weights on ratio inequalities P[i,o] <= exp(log_ratio[i,j]) P[j,o]."""

    i: Ints
    j: Ints
    o: Ints
    value: Floats


@dataclass(frozen=True, eq=False)
class ApproximateMultipliers:
    """Weights of (ε, δ) inequalities: ``weight`` (m,) and tests (m, O) with entries in [0, 1].

    The inequality Σ_o max(0, a_o - b_o) <= δ says Σ_o φ_o (a_o - b_o) <= δ for every test φ.
    """

    weight: Floats
    test: Floats


@dataclass(frozen=True, eq=False)
class DivergenceMultipliers:
    """Weights of divergence inequalities: ``weight`` (m,) and slopes (m, O).

    D_f(p ‖ q) <= limit says Σ_o α_o p_o - f*(α_o) q_o <= limit for all slopes α.
    """

    weight: Floats
    slope: Floats


@dataclass(frozen=True, eq=False)
class AttackMultipliers:
    """Weight of a distortion inequality and the attack it is played with: q(t|o), (O, S)."""

    weight: float
    strategy: Floats


@dataclass(frozen=True, eq=False)
class Multipliers:
    """One entry per inequality family of a ``Statement``, in the statement's order.

    ``objective`` is None for the expected loss, the least favourable weights over secrets (S,)
    for the worst loss, and an attack q(t|o) of shape (O, S) for maximised distortion.
    """

    ratio: PairMultipliers | None = None
    windowed: tuple[PairMultipliers, ...] = ()
    lifted: tuple[Floats, ...] = ()
    approximate: tuple[ApproximateMultipliers, ...] = ()
    divergences: tuple[DivergenceMultipliers, ...] = ()
    distortion: tuple[AttackMultipliers, ...] = ()
    loss_limits: tuple[Floats, ...] = ()
    objective: Floats | None = None
