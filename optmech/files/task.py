"""The task of a ``[transport]`` table, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from optmech.base.arrays import Floats
from optmech.exact.number import Exact
from optmech.problem import Problem

if TYPE_CHECKING:
    from optmech.targets import TargetDesign


@dataclass(frozen=True, eq=False)
class TransportTask:
    """Mechanisms with an auxiliary input (CM19 §VI) that a problem file asks for."""

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

    def design(self, problem: Problem) -> TargetDesign:
        """Do it, with the problem's loss as distance."""
        from optmech.targets import coupling_design, optimal_target

        if self.target is not None:
            return coupling_design(
                self.inputs,
                self.target,
                problem.loss_matrix,
                self.order,
                weights=self.weights,
                outside=self.outside,
                names=self.names,
                secrets=problem.secrets,
                observables=problem.observables,
            )
        return optimal_target(
            self.inputs,
            problem.loss_matrix,
            self.epsilon,
            self.weights,
            delta=self.delta,
            outside=self.outside,
            names=self.names,
            secrets=problem.secrets,
            observables=problem.observables,
        )

    def frontier(self, problem: Problem) -> list[TargetDesign]:
        """The optimal targets for ``epsilons``."""
        from optmech.targets import target_frontier

        return target_frontier(
            self.inputs,
            problem.loss_matrix,
            self.epsilons or (),
            self.weights,
            delta=self.delta,
            outside=self.outside,
            names=self.names,
            secrets=problem.secrets,
            observables=problem.observables,
        )
