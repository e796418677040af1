"""A trace under a Gaussian prior: the least noise for a promise, or the loss of given noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.read_only import ReadOnly, record
from optmech.base.storage import write_atomically
from optmech.exact.number import Exact
from optmech_traces.gaussian.fitting import Fit
from optmech_traces.gaussian.intervals import (
    IntervalLoss,
    RobustNoise,
    robust_noise,
    worst_length_scale,
)
from optmech_traces.gaussian.kernels import Kernel
from optmech_traces.gaussian.loss import TraceLoss, calibrate, privacy_loss
from optmech_traces.gaussian.noise import GaussianNoise, Region, Structure, optimal_noise
from optmech_traces.gaussian.prior import GaussianPrior
from optmech_traces.gaussian.sdp import LARGEST
from optmech_traces.gaussian.subsets import WorstSubset, worst_subset

_SECRETS = 8
"""Secret coordinates up to which noise is designed for the box: it has half of 2^8 vertices."""


@record
class GaussianTask(ReadOnly):
    """What a trace file asks: noise for a loss (``epsilon``), or the loss of a noise."""

    title: str
    trace: GaussianPrior
    secrets: tuple[tuple[int, ...], ...]
    radius: float
    order: float
    ball: bool
    epsilon: Exact | None
    noise: Floats | None
    delta: float | None
    subsets: int | None
    length_scales: tuple[float, float] | None
    family: Callable[[Any], Kernel] | None
    """From a length scale to the kernel, where ``length_scales`` are to be checked."""
    path: Floats | None
    """Real positions, shape (d, k), where the file has GPS fixes."""
    fitted: Fit | None
    unit: str
    notes: tuple[str, ...] = ()
    """In which ways the noise of a file was made for another question; its loss is measured for
    this one."""

    def solve(self) -> GaussianAnswer:
        """The noise and its losses, each computed when it is first asked for."""
        return GaussianAnswer(self)


@dataclass(frozen=True)
class Choice:
    """One way to add noise, and what it costs."""

    name: str
    variance: float
    """Summed over all coordinates."""
    loss: float
    """Proved upper bound over the secret sets."""


@record
class GaussianAnswer(ReadOnly):
    """The noise, its losses, and how other noise compares; computed when asked for."""

    task: GaussianTask

    @cached_property
    def design(self) -> GaussianNoise | None:
        """The least noise, where the file promises a loss."""
        p = self.task
        if p.epsilon is None:
            return None
        if self.robust is not None:
            return self.robust.design
        return self._least("full")

    @cached_property
    def region(self) -> Region:
        """What the least noise is made for: the box where the file asks for that and it is small,
        else the ball, whose loss is larger. Noise for length scales is for the ball."""
        p = self.task
        coordinates = len(p.trace) * p.trace.dimensions
        secrets = max(map(len, p.secrets)) * p.trace.dimensions
        small = coordinates <= LARGEST and secrets <= _SECRETS
        return "box" if small and not p.ball and self.robust is None else "ball"

    def _least(self, structure: Structure) -> GaussianNoise:
        p = self.task
        assert p.epsilon is not None
        return optimal_noise(
            p.trace, p.epsilon, p.secrets, p.radius, p.order,
            region=self.region, structure=structure,
        )  # fmt: skip

    @cached_property
    def robust(self) -> RobustNoise | None:
        """The noise for an interval of length scales, where the file promises a loss for it."""
        p = self.task
        if p.epsilon is None or p.length_scales is None or p.family is None:
            return None
        return robust_noise(
            p.trace.times, p.family, p.length_scales, epsilon=p.epsilon, **self._terms
        )

    @cached_property
    def noise(self) -> Floats:
        """The noise that is talked about: designed, or given by the file."""
        if self.design is not None:
            return self.design.covariance
        assert self.task.noise is not None
        return self.task.noise

    @cached_property
    def losses(self) -> list[TraceLoss]:
        """By secret set."""
        return self._losses(self.noise)

    @property
    def kept(self) -> bool:
        """Whether the promise is proved, for every length scale that it was made for."""
        promised, robust = self.task.epsilon, self.robust
        proved = [self.worst.upper, *([] if robust is None else [robust.interval.upper])]
        return promised is None or max(proved) <= promised

    @cached_property
    def worst(self) -> TraceLoss:
        """The loss of the set that is worst protected."""
        return max(self.losses, key=lambda loss: loss.upper)

    @cached_property
    def choices(self) -> list[Choice]:
        """Noise with the promised loss, and noise that takes the points to be independent."""
        p, design = self.task, self.design
        if p.epsilon is None or design is None or self.robust is not None:
            return []
        trace, size, limits = p.trace, len(p.trace.covariance), (p.radius, p.order)
        diagonal = self._least("diagonal")
        sigma = max(calibrate(trace, p.epsilon, s, *limits, ball=p.ball) for s in p.secrets)
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
        p = self.task
        if p.subsets is None:
            return None
        return worst_subset(p.trace, self.noise, p.subsets, p.radius, p.order, ball=p.ball)

    @cached_property
    def interval(self) -> IntervalLoss | None:
        """Over an interval of length scales, where the file asks for it."""
        p = self.task
        if self.robust is not None:
            return self.robust.interval
        if p.length_scales is None or p.family is None:
            return None
        return worst_length_scale(
            p.trace.times,
            p.family,
            p.length_scales,
            noise_covariance=self.noise,
            ball=p.ball,
            **self._terms,
        )

    @property
    def _terms(self) -> dict[str, Any]:
        """What is asked over an interval of length scales, where there is one secret set."""
        p = self.task
        return {
            "secrets": p.secrets[0],
            "radius": p.radius,
            "order": p.order,
            "dimensions": p.trace.dimensions,
        }

    def summary(self) -> dict[str, Any]:
        """The figures as plain values, ready for JSON."""
        p, worst, design = self.task, self.worst, self.design
        out: dict[str, Any] = {
            "status": "measured" if design is None else "designed",
            "kind": "gaussian",
            "title": p.title,
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
            out |= {"lower_bound": design.lower_bound, "gap": design.gap, "region": self.region}
            out["choices"] = [vars(choice) for choice in self.choices]
        if p.fitted is not None:
            out["fitted"] = {k: v for k, v in vars(p.fitted).items() if k != "kernel"}
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
        p = self.task
        content = {
            "format": 1,
            "kind": "noise",
            "covariance": self.noise.tolist(),
            "times": p.trace.times.tolist(),
            "loss": self.worst.upper,
            **self._terms,
            "secrets": [list(s) for s in p.secrets],
        }
        write_atomically(path, (json.dumps(content) + "\n").encode())

    def _losses(self, noise: Floats | float) -> list[TraceLoss]:
        p = self.task
        return [privacy_loss(p.trace, noise, s, p.radius, p.order, ball=p.ball) for s in p.secrets]

    def _worst(self, noise: Floats | float) -> float:
        return max(loss.upper for loss in self._losses(noise))
