"""Trace files of kind "markov": a Markov chain on cells, and what each release has to keep."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, model_validator

from optmech.base.arrays import Ints
from optmech.errors import ProblemError
from optmech.files.domains import Aggregable, Observables, Secrets
from optmech.files.metrics import DistanceSection, LossSection
from optmech.files.place import Listed, Place, require_room
from optmech.files.priors import PriorSection
from optmech.files.problem import Goal, Parts, with_constraints
from optmech.reading.data import DataFile
from optmech.reading.errors import Collector
from optmech.reading.sections import (
    ByKind,
    Count,
    ExactNumber,
    FileSection,
    LabelReference,
    Matrix,
    NonNegative,
    Positive,
    Section,
    refusal,
)
from optmech.spaces.distances import Distance, euclidean
from optmech.spaces.labels import find_label
from optmech.spaces.prior import Prior
from optmech.traces.chains import conditional, sequences
from optmech.traces.chains.markov import MarkovPrior
from optmech.traces.chains.sequential import SequentialDesigner, StepConstraint
from optmech.traces.chains.task import ChainTask

REQUIRED = ("format", "steps", "secrets", "chain", "loss", "adversary")

Lags = list[int]
Moments = list[Annotated[int, Field(ge=0)]]


class RandomWalk(Section):
    """P(y|x) proportional to exp(−d(x, y)/scale)."""

    kind: Literal["random_walk"]
    distance: DistanceSection
    scale: Positive
    initial: PriorSection | None = None

    def build(self, place: Place) -> tuple[MarkovPrior, str]:
        """The chain, and what became of the data that it was estimated from."""
        initial = None if self.initial is None else self.initial.build(place)
        distance = self.distance.build(place)
        return MarkovPrior.random_walk(place.secrets, distance, self.scale, initial=initial), ""


class Matrices(Section):
    """A given transition matrix, or one for every step."""

    kind: Literal["matrix"]
    transitions: Annotated[list[Matrix] | Matrix, Field(min_length=1)]
    initial: PriorSection

    def build(self, place: Place) -> tuple[MarkovPrior, str]:
        """The chain, and what became of the data that it was estimated from."""
        return MarkovPrior(place.secrets, self.initial.build(place), self.transitions), ""


class Fixes(Section):
    """Estimated from positions in a CSV file: at regular times, or one step per row."""

    kind: Literal["fixes"]
    file: str
    user: str = "user"
    time: str = "time"
    x: str = "lon"
    y: str = "lat"
    interval: Positive | None = None
    max_gap: Positive
    max_distance: Positive | None = None
    smoothing: NonNegative = 1.0
    scale: Positive | None = None

    def build(self, place: Place) -> tuple[MarkovPrior, str]:
        """The chain, and what became of the data that it was estimated from."""
        path = DataFile(self.file).path(place.directory)
        fixes = sequences.Fixes.from_csv(path, user=self.user, time=self.time, x=self.x, y=self.y)
        domain = place.secrets
        if self.interval is None:
            found = fixes.visits(domain, self.max_gap, self.max_distance)
        else:
            found = fixes.sequences(
                domain, self.interval, self.max_gap, max_distance=self.max_distance
            )
        base = None
        if self.scale is not None:
            base = MarkovPrior.random_walk(domain, euclidean(), self.scale)
        cells = [sequence.cells for sequence in found]
        chain = MarkovPrior.from_sequences(domain, cells, self.smoothing, base=base)
        return chain, _counted(fixes, cells, self.interval is not None)


def _counted(fixes: sequences.Fixes, cells: list[Ints], sampled: bool) -> str:
    total = sum(map(len, cells))
    inside = sum(int((cell >= 0).sum()) for cell in cells)
    what = "sampled positions" if sampled else "fixes"
    share = 100 * (total - inside) / total if total else 0.0
    return (
        f"{inside:,} of {total:,} {what} in {len(cells):,} sequences counted; {total - inside:,} "
        f"({share:.1f} %) fall outside the cells (file: {len(fixes.users):,} fixes, "
        f"{fixes.missing:,} more without a position)"
    )


ChainSpec = Annotated[RandomWalk | Matrices | Fixes, ByKind()]


class About(Section):
    """The other times that a constraint is about."""

    lags: Lags = Field(default_factory=list)
    times: Moments = Field(default_factory=list)

    @model_validator(mode="after")
    def _some(self) -> About:
        if not self.lags and not self.times:
            raise refusal("names no time", "Give lags = [1], or times = [0]", ("lags",))
        return self


class ConditionalPrivacy(About):
    """What the release of time t tells about the location at another time."""

    kind: Literal["conditional_privacy"]
    epsilon: ExactNumber
    distance: DistanceSection | None = None
    radius: NonNegative | None = None
    delta: ExactNumber | None = None

    def build(self, place: Place) -> conditional.ConditionalPrivacy:
        return conditional.ConditionalPrivacy(
            self.epsilon,
            self.lags,
            self.times,
            distance=None if self.distance is None else self.distance.build(place),
            radius=self.radius,
            delta=self.delta or 0.0,
        )


class ConditionalDistortion(About):
    """The error of the best attack on the location at another time."""

    kind: Literal["conditional_distortion"]
    minimum: ExactNumber
    distance: DistanceSection

    def build(self, place: Place) -> conditional.ConditionalDistortion:
        distance = self.distance.build(place)
        return conditional.ConditionalDistortion(
            self.minimum, distance, self.lags, times=self.times
        )


class Adversary(Section):
    """How the adversary is simulated: ``traces`` of the chain, or all releases."""

    distance: DistanceSection
    traces: Annotated[int, Field(ge=2, le=10**6)] = 20
    exact: bool = False


class MarkovTrace(FileSection):
    """A trace under a Markov chain; required keys are checked by the reader. ``section`` is the
    model with its constraints."""

    model_config = ConfigDict(
        title="optmech trace file of kind markov",
        json_schema_extra={"required": ["kind", *REQUIRED]},
    )

    kind: Literal["markov"]
    steps: Count | None = None
    secrets: Secrets | None = None
    observables: Observables | None = None
    chain: ChainSpec | None = None
    loss: LossSection | None = None
    objective: Goal = "expected_loss"
    constraints: list[Any] = Field(default_factory=list)
    adversary: Adversary | None = None
    on_infeasible: Literal["stop", "skip", "relax"] = "stop"
    fraction: Annotated[float, Field(gt=0, lt=1)] = 0.9
    total_epsilon: ExactNumber | None = None
    profile: str | None = None
    gap: Positive = 1e-4
    trace: list[LabelReference] | None = None


def section() -> type[MarkovTrace]:
    """The model of these files with the kinds of constraints that are registered now."""
    return with_constraints(
        MarkovTrace,
        conditional_privacy=ConditionalPrivacy,
        conditional_distortion=ConditionalDistortion,
    )


def build(spec: MarkovTrace, directory: Path, errors: Collector, title: str) -> ChainTask | None:
    """The problem, or None when ``errors`` has gathered any, before or here."""
    place = None
    if spec.secrets is not None:
        with errors.at("secrets"):
            if isinstance(spec.secrets, Aggregable) and spec.secrets.aggregate is not None:
                raise ProblemError("is not available for traces", where="aggregate")
            listed = spec.secrets.listed(directory)
            require_room(len(listed.domain), "")
            # a prior has no column of a table here
            place = Place.of(directory, Listed(listed.domain, listed.rows, network=listed.network))
    return None if place is None else _Parts(spec, place, errors, title).problem()


class _Parts(Parts):
    def __init__(self, spec: MarkovTrace, place: Place, errors: Collector, title: str) -> None:
        super().__init__(spec, place, errors)
        self.spec, self.title = spec, title
        self.chain: MarkovPrior | None = None
        self.counted = ""
        self.distance: Distance | None = None
        self.constraints: list[StepConstraint] = []
        if spec.chain is not None:
            with errors.at("chain"):
                self.chain, self.counted = spec.chain.build(place)
        if spec.adversary is not None:
            with errors.at("adversary.distance"):
                self.distance = spec.adversary.distance.build(place)
        if self.observed is None:
            return
        initial = np.ones(len(place.secrets)) if self.chain is None else self.chain.initial
        self.place = replace(self.place, prior=Prior(place.secrets, initial))
        for k, item in enumerate(spec.constraints):
            with errors.at(f"constraints[{k}]"):
                self.constraints.append(item.build(self.place))

    def problem(self) -> ChainTask | None:
        """The parts together."""
        spec = self.spec
        trace = None
        if spec.trace is not None:
            found = []
            for k, label in enumerate(spec.trace):
                with self.errors.at(f"trace[{k}]"):
                    found.append(find_label(self.place.secrets, label))
            trace = tuple(found)
            if not trace:
                self.errors.add(ProblemError("is empty", where="trace", remedy="Give labels"))
        if self.chain is not None and spec.steps is not None:
            with self.errors.at("steps"):
                self.chain.require_time(max(spec.steps, len(trace or ())) - 1)
        if self.errors.errors or self.chain is None or self.loss is None:
            return None
        designer = None
        with self.errors.at(""):
            designer = SequentialDesigner(
                self.chain,
                self.loss,
                self.constraints,
                observables=self.observed,
                objective=self.objective,
                on_infeasible=spec.on_infeasible,
                fraction=spec.fraction,
                total_epsilon=spec.total_epsilon,
                profile=spec.profile or "auto",
                gap=spec.gap,
            )
        if designer is None or not (spec.steps and spec.adversary and self.distance):
            return None
        of_others = conditional.ConditionalPrivacy | conditional.ConditionalDistortion
        return ChainTask(
            self.title,
            designer,
            spec.steps,
            self.distance,
            spec.adversary.traces,
            spec.adversary.exact,
            trace,
            self.place.secrets.unit,
            tuple(c for c in self.constraints if not isinstance(c, of_others)),
            self.counted,
        )
