"""``[transport]``: coupling mechanisms and optimal targets, as a section and as a task."""

from typing import Annotated, Any, Literal

from pydantic import WithJsonSchema

from optmech.base.arrays import Floats
from optmech.base.read_only import record
from optmech.errors import ProblemError, inside
from optmech.files.place import Listed, Place
from optmech.files.priors import Distribution
from optmech.mechanisms.targets.build import (
    coupling_design,
    optimal_target,
    target_frontier,
    target_problem,
)
from optmech.mechanisms.targets.design import TargetDesign
from optmech.problem import Problem
from optmech.problem.constraints.distribution import as_divergence
from optmech.problem.fields import FIELDS
from optmech.reading.sections import ExactNumber, NonNegative, Section, Some, must, refusal

Order = Annotated[
    Any,
    must(
        lambda value: value in (1, "inf") and not isinstance(value, bool),
        "neither 1 nor inf",
        'Write 1 or "inf"',
    ),
    WithJsonSchema({"enum": [1, "inf"]}),
]


Divergence: Any = FIELDS[as_divergence].type_of_key()


class Input(Section):
    """An auxiliary input and the distribution that secrets then have."""

    name: str | None = None
    weight: NonNegative = 1.0
    distribution: Distribution


class Transport(Section):
    """One mechanism for every auxiliary input; distances are the problem's loss."""

    task: Literal["coupling", "barycenter", "target"]
    inputs: Some[Input]
    target: Distribution | None = None
    p: Order = 1
    outside: Literal["target", "nearest"] = "target"
    epsilon: ExactNumber | None = None
    epsilons: list[ExactNumber] | None = None
    delta: ExactNumber | None = None
    divergence: Divergence | None = None

    def refuse_misfits(self) -> None:
        if (self.target is not None) != (self.task == "coupling"):
            raise refusal(
                "target belongs to the task coupling, and is needed there",
                "Give target with coupling, and with no other task",
            )
        if self.task != "coupling" and self.p != 1:
            raise refusal("p belongs to the task coupling", "Leave it out")
        private = (self.epsilon, self.epsilons, self.delta)
        if self.task != "target" and any(value is not None for value in private):
            raise refusal("epsilon, epsilons and delta belong to the task target", "Leave them out")
        if self.divergence is not None and self.task != "target":
            raise refusal("divergence belongs to the task target", "Leave it out")
        if self.divergence is not None and (self.epsilons or self.outside != "target"):
            raise refusal(
                "epsilons and outside are for targets without a divergence", "Leave them out"
            )
        if len(set(self.names)) < len(self.inputs):
            raise refusal("two inputs have one name", "Rename one of them", ("inputs",))
        if not any(entry.weight for entry in self.inputs):
            raise refusal("the weights sum to 0", "Give a positive weight", ("inputs",))

    @property
    def names(self) -> list[str]:
        """Of the inputs, numbered where they have none."""
        return [entry.name or str(k) for k, entry in enumerate(self.inputs)]

    def build(self, place: Place) -> tuple[list[Floats], Floats | None]:
        """The distributions of the inputs, and the target; errors are placed inside the table."""
        inputs = []
        for k, entry in enumerate(self.inputs):
            with inside(f"inputs[{k}].distribution"):
                inputs.append(entry.distribution.distribution(place))
        if self.target is None:
            return inputs, None
        # labels of a target are looked up among the observables
        if place.observed is not place.secrets:
            place = Place.of(place.directory, Listed(place.observed))
        with inside("target"):
            return inputs, self.target.distribution(place)


@record
class TransportTask:
    """Mechanisms with an auxiliary input, with the loss of a problem as distance (Kawamoto and
    Murakami, Allerton 2019, §VI).
    """

    problem: Problem
    asked: Transport
    inputs: list[Floats]
    target: Floats | None

    @property
    def title(self) -> str:
        """That of the problem."""
        return self.problem.title

    def solve(self) -> TargetDesign:
        """The mechanisms, certified; what they raise, this raises."""
        asked, loss = self.asked, self.problem.loss_matrix
        if self.target is None:
            return optimal_target(self.inputs, loss, asked.epsilon or 0, **self._terms())
        terms = self._terms(without="delta")
        return coupling_design(self.inputs, self.target, loss, float(asked.p), **terms)

    def frontier(self) -> list[TargetDesign]:
        """The optimal targets for every ε of a frontier; none where none is asked for."""
        epsilons = self.asked.epsilons or ()
        return target_frontier(self.inputs, self.problem.loss_matrix, epsilons, **self._terms())

    @property
    def as_problem(self) -> Problem:
        """What a target with a ``divergence`` is: a problem over pairs of an input and a secret."""
        problem = self.problem
        if problem.constraints or problem.objective != "expected_loss":
            raise ProblemError(
                "a target with a divergence takes neither constraints nor another objective",
                where="transport.divergence",
                remedy="State the closeness of outputs alone, or drop the divergence",
            )
        with inside("transport"):
            return target_problem(
                self.inputs,
                problem.loss_matrix,
                self.asked.epsilon or 0,
                divergence=str(self.asked.divergence),
                title=problem.title,
                **self._terms(without="outside"),
            )

    def _terms(self, without: str = "") -> dict[str, Any]:
        terms = {
            "weights": [entry.weight for entry in self.asked.inputs],
            "delta": self.asked.delta or 0,
            "outside": self.asked.outside,
            "names": self.asked.names,
            "secrets": self.problem.secrets,
            "observables": self.problem.observables,
        }
        terms.pop(without, None)
        return terms
