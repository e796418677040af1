"""Trace files of kind "markov": a Markov chain on cells, and what each release has to keep."""

from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from optmech.errors import ProblemError
from optmech.files.domains import Aggregable, Observables, Secrets
from optmech.files.metrics import DistanceSection, LossSection
from optmech.files.place import Place, require_room
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
from optmech_traces.chains import conditional, sequences
from optmech_traces.chains.markov import MarkovPrior
from optmech_traces.chains.sequential import SequentialDesigner
from optmech_traces.chains.task import ChainTask

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
        total = sum(map(len, cells))
        inside = sum(int((cell >= 0).sum()) for cell in cells)
        what = "fixes" if self.interval is None else "sampled positions"
        share = 100 * (total - inside) / total if total else 0.0
        return chain, (
            f"{inside:,} of {total:,} {what} in {len(cells):,} sequences counted; "
            f"{total - inside:,} ({share:.1f} %) fall outside the cells (file: "
            f"{len(fixes.users):,} fixes, {fixes.missing:,} more without a position)"
        )


ChainSpec = Annotated[RandomWalk | Matrices | Fixes, ByKind()]


class About(Section):
    """The other times that a constraint is about."""

    lags: Lags = Field(default_factory=list)
    times: Moments = Field(default_factory=list)

    def refuse_misfits(self) -> None:
        if not self.lags and not self.times:
            raise refusal("names no time", "Give lags = [1], or times = [0]", ("lags",))


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
        json_schema_extra={
            "required": ["kind", "format", "steps", "secrets", "chain", "loss", "adversary"]
        },
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

    def build(self, directory: Path, errors: Collector, title: str) -> ChainTask | None:
        """The problem, or None when ``errors`` has gathered any, before or here."""
        place = None if self.secrets is None else errors.tried("secrets", self._place, directory)
        if place is None:
            return None
        parts = Parts(self, place, errors)
        chain, counted = (self.chain and errors.tried("chain", self.chain.build, place)) or (
            None,
            "",
        )
        distance: Distance | None = None
        if self.adversary is not None:
            distance = errors.tried("adversary.distance", self.adversary.distance.build, place)
        if parts.observed is not None:
            known = None if chain is None else Prior(place.secrets, chain.initial)
            parts.state(self.constraints, known)
        released = self._released(place, errors)
        if chain is not None and self.steps is not None:
            errors.tried("steps", chain.require_time, max(self.steps, len(released)) - 1)
        if errors.errors or chain is None or parts.loss is None:
            return None
        stated = [constraint for _, constraint in parts.constraints]
        designer = errors.tried(
            "",
            SequentialDesigner,
            chain,
            parts.loss,
            stated,
            observables=parts.observed,
            objective=parts.objective,
            on_infeasible=self.on_infeasible,
            fraction=self.fraction,
            total_epsilon=self.total_epsilon,
            profile=self.profile or "auto",
            gap=self.gap,
        )
        if designer is None or not (self.steps and self.adversary and distance):
            return None
        of_others = conditional.ConditionalPrivacy | conditional.ConditionalDistortion
        return ChainTask(
            title,
            designer,
            self.steps,
            distance,
            self.adversary.traces,
            self.adversary.exact,
            None if self.trace is None else released,
            place.secrets.unit,
            tuple(c for c in stated if not isinstance(c, of_others)),
            counted,
        )

    def _place(self, directory: Path) -> Place:
        assert self.secrets is not None
        if isinstance(self.secrets, Aggregable) and self.secrets.aggregate is not None:
            raise ProblemError("is not available for traces", where="aggregate")
        listed = self.secrets.listed(directory)
        require_room(len(listed.domain), "")
        # a prior has no column of a table here
        return Place.of(directory, replace(listed, table=None, outside=None, missing=0))

    def _released(self, place: Place, errors: Collector) -> tuple[Hashable, ...]:
        """The labels of the trace to release."""
        if self.trace == []:
            errors.add(ProblemError("is empty", where="trace", remedy="Give labels"))
        return tuple(
            errors.tried(f"trace[{k}]", find_label, place.secrets, label)
            for k, label in enumerate(self.trace or ())
        )


def section() -> type[MarkovTrace]:
    """The model of these files with the kinds of constraints that are registered now."""
    return with_constraints(
        MarkovTrace,
        conditional_privacy=ConditionalPrivacy,
        conditional_distortion=ConditionalDistortion,
    )
