"""Mechanisms with an auxiliary input: coupling mechanisms and optimal targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from optmech.base.arrays import Floats
from optmech.errors import ProblemError, inside
from optmech.exact.number import Exact
from optmech.problem import Problem

if TYPE_CHECKING:
    from optmech.mechanisms.targets.design import TargetDesign


@dataclass(frozen=True, eq=False)
class Transport:
    """What a ``[transport]`` table asks for (CM19 §VI)."""

    task: Literal["coupling", "barycenter", "target"]
    names: tuple[str, ...]
    inputs: tuple[Floats, ...]
    weights: tuple[float, ...]
    target: Floats | None
    order: float
    outside: Literal["target", "nearest"]
    epsilon: Exact
    delta: Exact
    epsilons: tuple[Exact, ...] | None
    """A frontier to compute beside the task."""
    divergence: str | None = None
    """Where outputs are compared by another than (ε, δ), the task is a problem for ``solve``."""


@dataclass(frozen=True, eq=False)
class TransportTask:
    """Mechanisms with an auxiliary input, with the loss of a problem as distance."""

    problem: Problem
    asked: Transport

    @property
    def title(self) -> str:
        """That of the problem."""
        return self.problem.title

    def solve(self) -> TargetDesign:
        """The mechanisms, certified; what they raise, this raises."""
        from optmech.mechanisms.targets.build import coupling_design, optimal_target

        asked, loss = self.asked, self.problem.loss_matrix
        if asked.target is None:
            return optimal_target(asked.inputs, loss, asked.epsilon, **self._terms)
        terms = {name: value for name, value in self._terms.items() if name != "delta"}
        return coupling_design(asked.inputs, asked.target, loss, asked.order, **terms)

    def frontier(self) -> list[TargetDesign]:
        """The optimal targets for every ε of a frontier; none where none is asked for."""
        from optmech.mechanisms.targets.build import target_frontier

        epsilons = self.asked.epsilons or ()
        return target_frontier(self.asked.inputs, self.problem.loss_matrix, epsilons, **self._terms)

    @property
    def as_problem(self) -> Problem:
        """What a target with a ``divergence`` is: a problem over pairs of an input and a secret."""
        from optmech.mechanisms.targets.build import target_problem

        asked, problem = self.asked, self.problem
        assert asked.divergence is not None
        if problem.constraints or problem.objective != "expected_loss":
            raise ProblemError(
                "a target with a divergence takes neither constraints nor another objective",
                where="transport.divergence",
                remedy="State the closeness of outputs alone, or drop the divergence",
            )
        with inside("transport"):
            return target_problem(
                asked.inputs,
                problem.loss_matrix,
                asked.epsilon,
                divergence=asked.divergence,
                weights=asked.weights,
                delta=asked.delta,
                names=asked.names,
                secrets=problem.secrets,
                observables=problem.observables,
                title=problem.title,
            )

    @property
    def _terms(self) -> dict[str, Any]:
        return {
            "weights": self.asked.weights,
            "delta": self.asked.delta,
            "outside": self.asked.outside,
            "names": self.asked.names,
            "secrets": self.problem.secrets,
            "observables": self.problem.observables,
        }
