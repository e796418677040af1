"""From the sections of a trace file of kind "markov" to a chain and a sequential designer."""

from __future__ import annotations

from pathlib import Path

from optmech.base.arrays import Floats, Ints
from optmech.errors import ProblemError
from optmech.files.make.constraints import build_constraint, build_objective
from optmech.files.make.context import Context, Listed, require_room
from optmech.files.make.domains import build_observables, list_secrets
from optmech.files.make.metrics import build_distance, build_loss
from optmech.files.make.priors import build_prior
from optmech.files.schema import markov as schema
from optmech.problem import MaximizeDistortion
from optmech.reading.data import DataFile
from optmech.reading.errors import Collector
from optmech.sections.domains import Aggregable
from optmech.spaces.distances import Distance, euclidean
from optmech.spaces.domain import Domain
from optmech.spaces.labels import find_label
from optmech.spaces.prior import Prior
from optmech.statement import Objective
from optmech.tasks.chain import ChainTask
from optmech.traces.chains.conditional import ConditionalDistortion, ConditionalPrivacy
from optmech.traces.chains.markov import MarkovPrior
from optmech.traces.chains.sequences import Fixes
from optmech.traces.chains.sequential import SequentialDesigner, StepConstraint


def build_markov(
    spec: schema.MarkovTrace, directory: Path, errors: Collector, title: str
) -> ChainTask | None:
    """The problem, or None when ``errors`` has gathered any, before or here."""
    context = None
    if spec.secrets is not None:
        with errors.at("secrets"):
            if isinstance(spec.secrets, Aggregable) and spec.secrets.aggregate is not None:
                raise ProblemError("is not available for traces", where="aggregate")
            listed = list_secrets(spec.secrets, directory)
            require_room(len(listed.domain), "")
            context = Context(
                directory, Listed(listed.domain, listed.rows, network=listed.network), listed.domain
            )
    if context is None:
        return None
    return _Parts(spec, context, errors, title).problem()


class _Parts:
    """Every section built on its own, so that one error does not hide another."""

    def __init__(
        self, spec: schema.MarkovTrace, context: Context, errors: Collector, title: str
    ) -> None:
        self.spec, self.context, self.errors, self.title = spec, context, errors, title
        self.chain: MarkovPrior | None = None
        self.counted = ""
        self.loss: Distance | Floats | None = None
        self.objective: Objective | MaximizeDistortion = "expected_loss"
        self.observed: Domain | None = None
        self.distance: Distance | None = None
        self.constraints: list[StepConstraint] = []
        with errors.at("observables"):
            self.observed = context.domain
            if spec.observables is not None:
                self.observed = None
                self.observed = build_observables(spec.observables, context)
        if spec.chain is not None:
            with errors.at("chain"):
                self.chain, self.counted = _chain(spec.chain, context)
        with errors.at("objective"):
            self.objective = build_objective(spec.objective, context)
        if spec.adversary is not None:
            with errors.at("adversary.distance"):
                self.distance = build_distance(spec.adversary.distance, context)
        if self.observed is not None:
            self._build_on(self.observed)

    def _build_on(self, observed: Domain) -> None:
        if self.spec.loss is not None:
            with self.errors.at("loss"):
                self.loss = build_loss(self.spec.loss, self.context, observed)
        first = (
            Prior.uniform(self.context.domain)
            if self.chain is None
            else Prior(self.context.domain, self.chain.initial)
        )
        for k, item in enumerate(self.spec.constraints):
            with self.errors.at(f"constraints[{k}]"):
                if isinstance(item, schema.ConditionalPrivacy | schema.ConditionalDistortion):
                    self.constraints.append(_conditional(item, self.context))
                else:
                    self.constraints.append(build_constraint(item, self.context, first, observed))

    def problem(self) -> ChainTask | None:
        """The parts together."""
        spec = self.spec
        trace = None
        if spec.trace is not None:
            found = []
            for k, label in enumerate(spec.trace):
                with self.errors.at(f"trace[{k}]"):
                    found.append(find_label(self.context.domain, label))
            trace = tuple(found)
            if not trace:
                self.errors.add(ProblemError("is empty", where="trace", remedy="Give labels"))
        if self.chain is not None and spec.steps is not None:
            with self.errors.at("steps"):
                self.chain.require_time(max(spec.steps, len(trace or ())) - 1)
        ready = self.chain is not None and self.loss is not None and self.distance is not None
        if self.errors.errors or not ready or spec.steps is None or spec.adversary is None:
            return None
        assert self.chain is not None
        assert self.loss is not None
        assert self.distance is not None
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
        if designer is None:
            return None
        return ChainTask(
            self.title,
            designer,
            spec.steps,
            self.distance,
            spec.adversary.traces,
            spec.adversary.exact,
            trace,
            self.context.domain.unit,
            tuple(
                c
                for c in self.constraints
                if not isinstance(c, ConditionalPrivacy | ConditionalDistortion)
            ),
            self.counted,
        )


def _chain(spec: schema.ChainSpec, context: Context) -> tuple[MarkovPrior, str]:
    """The chain, and what became of the data that it was estimated from."""
    domain = context.domain
    if isinstance(spec, schema.Fixes):
        return _estimated(spec, context)
    initial = None if spec.initial is None else build_prior(spec.initial, context)
    if isinstance(spec, schema.RandomWalk):
        distance = build_distance(spec.distance, context)
        return MarkovPrior.random_walk(domain, distance, spec.scale, initial=initial), ""
    assert initial is not None
    return MarkovPrior(domain, initial, spec.transitions), ""


def _estimated(spec: schema.Fixes, context: Context) -> tuple[MarkovPrior, str]:
    path = DataFile(spec.file).path(context.directory)
    fixes = Fixes.from_csv(path, user=spec.user, time=spec.time, x=spec.x, y=spec.y)
    domain = context.domain
    if spec.interval is None:
        found = fixes.visits(domain, spec.max_gap, spec.max_distance)
    else:
        found = fixes.sequences(domain, spec.interval, spec.max_gap, max_distance=spec.max_distance)
    base = None
    if spec.scale is not None:
        base = MarkovPrior.random_walk(domain, euclidean(), spec.scale)
    cells = [sequence.cells for sequence in found]
    chain = MarkovPrior.from_sequences(domain, cells, spec.smoothing, base=base)
    return chain, _counted(fixes, cells, spec.interval is not None)


def _counted(fixes: Fixes, cells: list[Ints], sampled: bool) -> str:
    total = sum(map(len, cells))
    inside = sum(int((cell >= 0).sum()) for cell in cells)
    what = "sampled positions" if sampled else "fixes"
    share = 100 * (total - inside) / total if total else 0.0
    return (
        f"{inside:,} of {total:,} {what} in {len(cells):,} sequences counted; {total - inside:,} "
        f"({share:.1f} %) fall outside the cells (file: {len(fixes.users):,} fixes, "
        f"{fixes.missing:,} more without a position)"
    )


def _conditional(
    spec: schema.ConditionalPrivacy | schema.ConditionalDistortion, context: Context
) -> ConditionalPrivacy | ConditionalDistortion:
    distance = None if spec.distance is None else build_distance(spec.distance, context)
    if isinstance(spec, schema.ConditionalDistortion):
        assert distance is not None
        return ConditionalDistortion(spec.minimum, distance, spec.lags, times=spec.times)
    return ConditionalPrivacy(
        spec.epsilon,
        spec.lags,
        spec.times,
        distance=distance,
        radius=spec.radius,
        delta=spec.delta or 0.0,
    )
