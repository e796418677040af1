"""What ``optmech trace`` answers about a trace under a Gaussian prior."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.storage import write_atomically
from optmech.files.make.traces import TraceProblem
from optmech.files.traces import TraceFile
from optmech.traces.gaussian.calibration import calibrate
from optmech.traces.gaussian.intervals import IntervalLoss, worst_length_scale
from optmech.traces.gaussian.loss import TraceLoss, privacy_loss
from optmech.traces.gaussian.noise import NoiseDesign, optimal_noise
from optmech.traces.gaussian.robust import RobustNoise, robust_noise
from optmech.traces.gaussian.subsets import WorstSubset, worst_subset


@dataclass(frozen=True)
class Choice:
    """One way to add noise, and what it costs."""

    name: str
    variance: float
    """Summed over all coordinates."""
    loss: float
    """Proved upper bound over the secret sets."""


class Answer:
    """The noise, its losses, and how other noise compares; computed when asked for."""

    def __init__(self, file: TraceFile, seed: int = 0) -> None:
        assert isinstance(file.problem, TraceProblem)
        self.file = file
        self.problem = file.problem
        self.seed = seed

    @cached_property
    def design(self) -> NoiseDesign | None:
        """The least noise, where the file promises a loss."""
        p = self.problem
        if p.epsilon is None:
            return None
        if self.robust is not None:
            return self.robust.design
        return optimal_noise(p.trace, p.epsilon, p.secrets, p.radius, p.order)

    @cached_property
    def robust(self) -> RobustNoise | None:
        """The noise for an interval of length scales, where the file promises a loss for it."""
        p = self.problem
        if p.epsilon is None or p.length_scales is None or p.family is None:
            return None
        return robust_noise(
            p.trace.times,
            p.family,
            p.length_scales,
            epsilon=p.epsilon,
            secrets=p.secrets[0],
            radius=p.radius,
            order=p.order,
            dimensions=p.trace.dimensions,
        )

    @cached_property
    def noise(self) -> Floats:
        """The noise that is talked about: designed, or given by the file."""
        if self.design is not None:
            return self.design.covariance
        assert self.problem.noise is not None
        return self.problem.noise

    @cached_property
    def losses(self) -> list[TraceLoss]:
        """By secret set."""
        return self._losses(self.noise)

    @property
    def kept(self) -> bool:
        """Whether the promise is proved, for every length scale that it was made for."""
        promised, robust = self.problem.epsilon, self.robust
        if promised is None:
            return True
        return self.worst.upper <= promised and (
            robust is None or robust.interval.upper <= promised
        )

    @cached_property
    def worst(self) -> TraceLoss:
        """Of the set that is worst protected."""
        return max(self.losses, key=lambda loss: loss.upper)

    @cached_property
    def choices(self) -> list[Choice]:
        """Noise with the promised loss, and noise that takes the points to be independent."""
        p, design = self.problem, self.design
        if p.epsilon is None or design is None or self.robust is not None:
            return []
        trace, size = p.trace, len(p.trace.covariance)
        diagonal = optimal_noise(
            trace, p.epsilon, p.secrets, p.radius, p.order, structure="diagonal"
        )
        sigma = max(
            calibrate(trace, p.epsilon, s, p.radius, p.order, ball=p.ball) for s in p.secrets
        )
        most = max(len(s) for s in p.secrets) * trace.dimensions
        naive = p.radius**2 * p.order * most / (2 * p.epsilon)
        return [
            Choice("least noise", design.trace, self._worst(design.covariance)),
            Choice("least independent noise", diagonal.trace, self._worst(diagonal.covariance)),
            Choice("least equal noise", size * sigma**2, self._worst(sigma**2)),
            Choice("equal noise, points taken as independent", size * naive, self._worst(naive)),
        ]

    @cached_property
    def subsets(self) -> WorstSubset | None:
        """Over all sets up to a size, where the file asks for it."""
        p = self.problem
        if p.subsets is None:
            return None
        return worst_subset(p.trace, self.noise, p.subsets, p.radius, p.order, ball=p.ball)

    @cached_property
    def interval(self) -> IntervalLoss | None:
        """Over an interval of length scales, where the file asks for it."""
        p = self.problem
        if self.robust is not None:
            return self.robust.interval
        if p.length_scales is None or p.family is None:
            return None
        return worst_length_scale(
            p.trace.times,
            p.family,
            p.length_scales,
            noise_covariance=self.noise,
            secrets=p.secrets[0],
            radius=p.radius,
            order=p.order,
            ball=p.ball,
            dimensions=p.trace.dimensions,
        )

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        p, worst, design = self.problem, self.worst, self.design
        out: dict[str, Any] = {
            "status": "measured" if design is None else "designed",
            "kind": self.file.kind,
            "file": str(self.file.path),
            "title": self.file.title,
            "verified": self.kept,
            "loss": worst.upper,
            "loss_lower": worst.lower,
            "order": p.order,
            "radius": p.radius,
            "ball": p.ball,
            "epsilon": None if p.epsilon is None else float(p.epsilon),
            "positions": len(p.trace),
            "dimensions": p.trace.dimensions,
            "secrets": [list(s) for s in p.secrets],
            "worst_secrets": list(worst.secrets),
            "hypothesis": worst.hypothesis.tolist(),
            "variance": float(np.trace(self.noise)),
            "notes": list(p.notes),
        }
        if p.delta is not None:
            out["approximate"] = {"delta": p.delta, "epsilon": worst.epsilon(p.delta)}
        if design is not None:
            out |= {"lower_bound": design.lower_bound, "gap": design.gap}
            out["choices"] = [vars(choice) for choice in self.choices]
        if p.fitted is not None:
            fitted = vars(p.fitted)
            out["fitted"] = {k: v for k, v in fitted.items() if k != "kernel"}
        if self.subsets is not None:
            found = self.subsets
            out["subsets"] = {
                "count": found.count,
                "worst": list(found.secrets),
                "loss": found.loss.lower,
                "upper": found.upper,
            }
        if self.interval is not None:
            out["length_scales"] = {
                "interval": p.length_scales,
                "worst": self.interval.length_scale,
                "loss": self.interval.lower,
                "upper": self.interval.upper,
            }
        return out

    def save(self, path: str | Path) -> None:
        """Write the noise, so that a trace file can name it: ``noise = { file = … }``."""
        p = self.problem
        content = {
            "format": 1,
            "kind": "noise",
            "covariance": self.noise.tolist(),
            "times": p.trace.times.tolist(),
            "dimensions": p.trace.dimensions,
            "secrets": [list(s) for s in p.secrets],
            "radius": p.radius,
            "order": p.order,
            "loss": self.worst.upper,
        }
        write_atomically(path, (json.dumps(content) + "\n").encode())

    def picture(self, path: str | Path) -> None:
        """Draw the trace, releases of it, and the worst hypothesis."""
        from optmech.show.plots.traces import trace_picture

        trace_picture(self.problem, self.noise, self.worst, path, seed=self.seed)

    def show(self) -> None:
        """For people."""
        from optmech.cli import output

        p, worst = self.problem, self.worst
        output.title(self.file.title)
        output.facts(self._facts())
        if self.choices:
            output.blank()
            unit = f" ({p.unit})" if p.unit else ""
            size = len(p.trace.covariance)
            rows = [
                (
                    c.name,
                    f"{math.sqrt(c.variance / size):.6g}",
                    f"{c.variance:.6g}",
                    f"{c.loss:.6g}",
                )
                for c in self.choices
            ]
            header = ("noise", f"rms per coordinate{unit}", "total variance", "loss at most")
            output.grid(header, rows, right=(1, 2, 3))
        output.blank()
        columns = ("secret", "time", "worst hypothesis")
        shifts = worst.hypothesis.reshape(len(worst.secrets), -1)
        rows3 = [
            (str(s), f"{p.trace.times[s]:.6g}", "  ".join(f"{x:+.5g}" for x in shift))
            for s, shift in zip(worst.secrets, shifts.tolist(), strict=True)
        ]
        output.grid(columns, rows3, right=(0, 1, 2))

    def _facts(self) -> list[tuple[str, str]]:
        p, worst, design = self.problem, self.worst, self.design
        sets = f"{len(p.secrets[0])} positions" if len(p.secrets) == 1 else f"{len(p.secrets)} sets"
        unit = f" {p.unit}" if p.unit else ""
        region = "ball" if p.ball else "box"
        facts = [
            ("trace", f"{len(p.trace)} times, {p.trace.dimensions} axes"),
            ("secrets", f"{sets}, within {p.radius:g}{unit} ({region})"),
        ]
        if p.fitted is not None:
            f = p.fitted
            facts.append(
                ("fitted", f"length scale {f.length_scale:.5g}, variance {f.variance:.5g}, "
                 f"errors {f.noise:.3g}")
            )  # fmt: skip
        facts.append(("loss", f"{worst.lower:.9g} to {worst.upper:.9g} (Rényi, order {p.order:g})"))
        if p.epsilon is not None:
            kept = "kept, proved" if self.kept else "NOT kept"
            facts.append(("promise", f"{float(p.epsilon):.9g}: {kept}"))
        if design is not None:
            facts.append(
                ("variance", f"{design.trace:.9g}, at least {design.lower_bound:.9g} "
                 f"(gap {design.gap:.2g})")
            )  # fmt: skip
        if p.delta is not None:
            facts.append(("(ε, δ)", f"({worst.epsilon(p.delta):.6g}, {p.delta:g})"))
        if self.subsets is not None:
            found = self.subsets
            facts.append(
                ("worst set", f"{list(found.secrets)} of {found.count:,}: loss "
                 f"{found.loss.lower:.6g}, none above {found.upper:.6g}")
            )  # fmt: skip
        if self.interval is not None:
            i = self.interval
            facts.append(
                ("length scales", f"worst {i.length_scale:.6g}: loss {i.lower:.6g}, none above "
                 f"{i.upper:.6g}")
            )  # fmt: skip
        return facts

    def _losses(self, noise: Floats | float) -> list[TraceLoss]:
        p = self.problem
        return [privacy_loss(p.trace, noise, s, p.radius, p.order, ball=p.ball) for s in p.secrets]

    def _worst(self, noise: Floats | float) -> float:
        return max(loss.upper for loss in self._losses(noise))
