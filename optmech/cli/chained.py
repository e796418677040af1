"""What ``optmech trace`` answers about a trace under a Markov chain."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from optmech.base.storage import write_atomically
from optmech.cli.output import plain_values
from optmech.errors import InfeasibleError
from optmech.files.make.markov import ChainProblem
from optmech.files.traces import TraceFile
from optmech.pipeline.search import solve
from optmech.problem import Problem
from optmech.spaces.prior import Prior
from optmech.traces.chains.adversary import AdversaryReport, Series, enumerate_releases, simulate
from optmech.traces.chains.policy import FixedPolicy, Policy, ProtectedTrace, protect
from optmech.traces.chains.sequential import Step


class ChainAnswer:
    """The first design, what adversaries learn over time, and a trace as it was released;
    computed when asked for."""

    def __init__(
        self, file: TraceFile, seed: int = 0, progress: Callable[[str], None] | None = None
    ) -> None:
        assert isinstance(file.problem, ChainProblem)
        self.file = file
        self.problem = file.problem
        self.title = file.title
        self.seed = seed
        self.progress = progress or (lambda text: None)

    @cached_property
    def first(self) -> Step:
        """The design for time 0."""
        self.progress("designing for time 0")
        return self.problem.designer.start()

    @cached_property
    def sequential(self) -> AdversaryReport:
        """The adversaries against the sequential designs."""
        self.progress("designing and attacking every step")
        return self._attacked(self.problem.designer)

    @cached_property
    def repeated(self) -> AdversaryReport | None:
        """The same against the optimal mechanism for a single location drawn from P(X_0), at every
        time; None where there is none, and where the constraints are all about other times."""
        designer = self.problem.designer
        if designer.constraints and not self.problem.single:
            return None
        self.progress("attacking one mechanism, repeated")
        single = Problem(
            Prior(designer.prior.domain, designer.prior.initial),
            designer.loss,
            designer.observables,
            designer.objective,
            self.problem.single,
        )
        design = solve(single, designer.profile, designer.gap)
        if design.exact is None:
            return None
        return self._attacked(FixedPolicy(designer.prior, design.mechanism))

    @cached_property
    def released(self) -> ProtectedTrace | None:
        """The file's trace, released with the operating system's entropy."""
        if self.problem.trace is None:
            return None
        return protect(self.problem.designer, self.problem.trace)

    @property
    def verified(self) -> bool:
        """Whether mechanisms were released, each of them certified."""
        return any(self.sequential.actions.get(name) for name in ("design", "relax"))

    def _require_something(self) -> None:
        """Raise InfeasibleError where nothing is ever released, with the reason of time 0."""
        if not self.verified:
            raise InfeasibleError(self.first.reason, where=self.title)

    def plain(self) -> dict[str, Any]:
        """The figures as plain values, ready for JSON.

        Raises
        ------
        InfeasibleError
            Where nothing is ever released.
        """
        self._require_something()
        designer = self.problem.designer
        first = self.first.design
        out: dict[str, Any] = {
            "status": "designed",
            "kind": "markov",
            "file": str(self.file.path),
            "title": self.title,
            "steps": self.problem.steps,
            "data": self.problem.counted or None,
            "secrets": len(designer.prior),
            "verified": self.verified,
            "exact": self.problem.exact,
            "first": None if first is None else first.summary(),
            "sequential": _report(self.sequential),
            "repeated": None if self.repeated is None else _report(self.repeated),
        }
        if self.released is not None:
            out["releases"] = self._releases(self.released)
        return out

    def save(self, path: str | Path) -> None:
        """Write what ``plain`` has to a JSON file."""
        content = plain_values({"format": 1, **self.plain()})
        write_atomically(path, (json.dumps(content) + "\n").encode())

    def picture(self, path: str | Path) -> None:
        """Draw distortion over time."""
        from optmech.show.plots.chains import chain_picture

        chain_picture(self.sequential, self.repeated, path, self.problem.unit, self.title)

    def show(self) -> None:
        """For people."""
        from optmech.cli import output

        report, other = self.sequential, self.repeated
        unit = f" ({self.problem.unit})" if self.problem.unit else ""
        output.title(self.title)
        how = "all releases" if self.problem.exact else f"{report.traces} traces of the chain"
        done = ", ".join(f"{count} {name}" for name, count in sorted(report.actions.items()))
        facts = [
            ("trace", f"{self.problem.steps} times, {len(self.problem.designer.prior)} cells"),
            ("adversary", f"knows the chain and every mechanism; {how}"),
            ("steps", done),
            ("filtering", _summary(report.filtering, None if other is None else other.filtering)),
            ("smoothing", _summary(report.smoothing, None if other is None else other.smoothing)),
            ("loss", _summary(report.loss, None if other is None else other.loss)),
        ]
        if self.problem.counted:
            facts.insert(1, ("data", self.problem.counted))
        if self.first.design is not None:
            d = self.first.design
            facts.insert(2, ("time 0", f"loss {d.loss:.6g}, gap {d.gap:.2g}, verified"))
        output.facts(facts)
        output.blank()
        header = ["time", "blind", "filtering", "smoothing", f"loss{unit}"]
        columns = [report.blind, report.filtering.mean, report.smoothing.mean, report.loss.mean]
        if other is not None:
            header += ["repeated: filtering", "smoothing", "loss"]
            columns += [other.filtering.mean, other.smoothing.mean, other.loss.mean]
        rows = [
            [str(t), *(f"{column[t]:.4g}" for column in columns)] for t in range(self.problem.steps)
        ]
        output.grid(header, rows, right=range(len(header)))
        if self.released is not None:
            output.blank()
            rows = [
                [str(t), step["action"], "" if step["release"] is None else step["release"]]
                for t, step in enumerate(self._releases(self.released))
            ]
            output.grid(("time", "action", "released"), rows, right=(0,))

    def _attacked(self, policy: Policy) -> AdversaryReport:
        p = self.problem
        loss = p.designer.loss
        if p.exact:
            return enumerate_releases(policy, p.distance, p.steps, loss=loss)
        return simulate(
            policy,
            p.distance,
            steps=p.steps,
            count=p.traces,
            loss=loss,
            seed=self.seed,
            progress=self._tenths(p.traces),
        )

    def _tenths(self, count: int) -> Callable[[str], None]:
        """Tells of every tenth of the traces."""
        done = 0

        def tell(text: str) -> None:
            nonlocal done
            done += 1
            if done * 10 // count > (done - 1) * 10 // count:
                self.progress(f"  {text}")

        return tell

    def _releases(self, released: ProtectedTrace) -> list[dict[str, Any]]:
        from optmech.spaces.labels import label_text

        out = []
        for label, state in zip(released.releases, released.states, strict=True):
            assert isinstance(state, Step)
            out.append(
                {
                    "action": state.action,
                    "release": None if label is None else label_text(label),
                    "expected_loss": None if state.design is None else state.design.loss,
                    "total_epsilon": state.total_epsilon,
                    "reason": state.reason,
                }
            )
        return out


def _report(report: AdversaryReport) -> dict[str, Any]:
    def series(values: Series) -> dict[str, Any]:
        return {
            "mean": values.mean.tolist(),
            "standard_error": values.standard_error.tolist(),
            "average": values.average,
            "average_error": values.average_error,
        }

    return {
        "blind": report.blind.tolist(),
        "filtering": series(report.filtering),
        "smoothing": series(report.smoothing),
        "loss": series(report.loss),
        "leakage": report.leakage.tolist(),
        "actions": report.actions,
        "traces": report.traces,
    }


def _summary(series: Series, other: Series | None) -> str:
    def words(values: Series) -> str:
        error = f" ± {values.average_error:.2g}" if values.average_error > 0 else ""
        return f"{values.average:.4g}{error}"

    text = f"{words(series)} on average"
    return text if other is None else f"{text}; one mechanism repeated: {words(other)}"
