"""A trace under a Markov chain: designs for its steps, and what adversaries learn from them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Hashable
from functools import cached_property
from pathlib import Path
from typing import Any

from optmech.base.read_only import record
from optmech.base.storage import plain_values, write_atomically
from optmech.errors import InfeasibleError
from optmech.pipeline.search import solve
from optmech.problem import Constraint
from optmech.spaces.distances import Distance
from optmech.spaces.prior import Prior
from optmech_traces.chains.adversary import AdversaryReport, Series, enumerate_releases, simulate
from optmech_traces.chains.policy import FixedPolicy, Policy, ProtectedTrace, release
from optmech_traces.chains.sequential import SequentialDesigner, Step


@record
class ChainTask:
    """What a file of kind "markov" asks: a design for every step, and what an adversary learns."""

    title: str
    designer: SequentialDesigner
    steps: int
    distance: Distance
    """The adversary's."""
    traces: int
    exact: bool
    trace: tuple[Hashable, ...] | None
    """Labels of a trace to release."""
    unit: str
    single: tuple[Constraint, ...]
    """The constraints that a single location can be asked to satisfy."""
    counted: str = ""
    """What became of the fixes that the chain was estimated from, in words."""

    def solve(self, seed: int = 0, progress: Callable[[str], None] | None = None) -> ChainAnswer:
        """The first design, and what adversaries learn, each computed when it is first asked for.

        ``seed`` is of the simulated traces; ``progress`` is told of long work in words.
        """
        return ChainAnswer(self, seed, progress or (lambda text: None))


@record
class ChainAnswer:
    """The first design, what adversaries learn over time, and a trace as it was released;
    computed when asked for."""

    task: ChainTask
    seed: int
    progress: Callable[[str], None]

    @cached_property
    def first(self) -> Step:
        """The design for time 0."""
        self.progress("designing for time 0")
        return self.task.designer.start()

    @cached_property
    def sequential(self) -> AdversaryReport:
        """The adversaries against the sequential designs."""
        self.progress("designing and attacking every step")
        return self._attacked(self.task.designer)

    @cached_property
    def repeated(self) -> AdversaryReport | None:
        """Attacks on the optimal mechanism for a single location drawn from P(X_0), used at every
        time; None where there is none, and where the constraints are all about other times."""
        designer = self.task.designer
        if designer.constraints and not self.task.single:
            return None
        self.progress("attacking one mechanism, repeated")
        prior = Prior(designer.prior.domain, designer.prior.initial)
        single = designer.problem(prior, self.task.single)
        design = solve(single, designer.profile, gap=designer.gap)
        if design.exact is None:
            return None
        return self._attacked(FixedPolicy(designer.prior, design.mechanism))

    @cached_property
    def released(self) -> ProtectedTrace | None:
        """The file's trace, released with the operating system's entropy."""
        if self.task.trace is None:
            return None
        return release(self.task.designer, self.task.trace)

    @property
    def verified(self) -> bool:
        """Whether mechanisms were released, each of them certified."""
        return any(self.sequential.actions.get(name) for name in ("design", "relax"))

    def summary(self) -> dict[str, Any]:
        """The figures as plain values, ready for JSON. Raises InfeasibleError where nothing is ever
        released, with the reason of time 0."""
        if not self.verified:
            raise InfeasibleError(self.first.reason, where=self.task.title)
        designer = self.task.designer
        first = self.first.design
        out: dict[str, Any] = {
            "status": "designed",
            "kind": "markov",
            "title": self.task.title,
            "steps": self.task.steps,
            "data": self.task.counted or None,
            "secrets": len(designer.prior),
            "verified": self.verified,
            "exact": self.task.exact,
            "first": None if first is None else first.summary(),
            "sequential": _report(self.sequential),
            "repeated": None if self.repeated is None else _report(self.repeated),
        }
        if self.released is not None:
            out["releases"] = self.releases(self.released)
        return out

    def save(self, path: str | Path) -> None:
        """Write what ``summary`` has to a JSON file."""
        content = plain_values({"format": 1, **self.summary()})
        write_atomically(path, (json.dumps(content) + "\n").encode())

    def _attacked(self, policy: Policy) -> AdversaryReport:
        p = self.task
        loss = p.designer.loss
        if p.exact:
            return enumerate_releases(policy, p.distance, p.steps, loss=loss)
        done = itertools.count(1)

        def tell(text: str) -> None:
            """Of every tenth of the traces."""
            k = next(done)
            if k * 10 // p.traces > (k - 1) * 10 // p.traces:
                self.progress(f"  {text}")

        return simulate(
            policy,
            p.distance,
            steps=p.steps,
            count=p.traces,
            loss=loss,
            seed=self.seed,
            progress=tell,
        )

    def releases(self, released: ProtectedTrace) -> list[dict[str, Any]]:
        from optmech.spaces.labels import label_text

        steps = zip(released.releases, released.states, strict=True)
        return [
            {
                "action": state.action,
                "release": None if label is None else label_text(label),
                "expected_loss": None if state.design is None else state.design.loss,
                "total_epsilon": state.total_epsilon,
                "reason": state.reason,
            }
            for label, state in steps
            if isinstance(state, Step)
        ]


def _report(report: AdversaryReport) -> dict[str, Any]:
    def series(values: Series) -> dict[str, Any]:
        return {
            "mean": values.mean.tolist(),
            "standard_error": values.standard_error.tolist(),
            "average": values.average,
            "average_error": values.average_error,
        }

    timed = ("filtering", "smoothing", "loss")
    return {name: series(getattr(report, name)) for name in timed} | {
        "blind": report.blind.tolist(),
        "leakage": report.leakage.tolist(),
        "actions": report.actions,
        "traces": report.traces,
    }
