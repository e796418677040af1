"""One user's designs, attacked in every way the paper attacks them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from store import Record, Store
from users import EUCLIDEAN, HAMMING, City

import optmech as om
from optmech.pipeline.profiles import load_profile

GAP = 1e-6
EVIDENCE = (0.25, 0.5, 0.75)
"""How much more the better-informed adversary of section 9.2 knows (om.attacks.sharpened)."""
TOP = 2
"""Of how many places: home and work."""


@dataclass
class Study:
    """Designs for one user in one city; every one solved once, certified, attacked, recorded."""

    city: City
    user: int
    store: Store
    designs: Path | None = None
    cold: bool = False
    threads: int | None = None
    _last: dict[str, om.Design] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prior = self.city.prior(self.user)
        self.blind = self.city.blind_error(self.user)

    def design(self, kind: str, epsilon: float | None, minimum: float | None) -> Record:
        """The optimal mechanism of a kind: "differential", "distortion" or "joint"."""
        task = {
            "grid": self.city.grid,
            "user": self.user,
            "kind": kind,
            "epsilon": epsilon,
            "minimum": minimum,
        }
        file = None if self.designs is None else self.designs / f"{_name(task)}.json"
        found = self.store.find(task)
        if found is not None:
            if file is not None and file.exists():
                self._last[kind] = om.Design.load(file)
            return found
        constraints: list[Any] = []
        if epsilon is not None:
            constraints.append(om.MetricPrivacy(epsilon, EUCLIDEAN))
        if minimum is not None:
            constraints.append(om.DistortionPrivacy(minimum, EUCLIDEAN))
        problem = om.Problem(self.prior, HAMMING, constraints=constraints)
        start = None if self.cold else self._neighbour(kind)
        wall, cpu = time.perf_counter(), time.process_time()
        profile = replace(load_profile("auto"), gap=GAP, threads=self.threads)
        design = om.solve(problem, profile=profile, start=start)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        self._last[kind] = design
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            design.save(file)
        figures: Record = {
            "status": design.status,
            "loss": design.loss,
            "lower_bound": design.lower_bound,
            "gap": design.gap,
            "verified": design.verified,
            "engine": design.engine,
            "seconds": round(wall, 3),
            "cpu": round(cpu, 3),
            "warm": start is not None,
        }
        return self.store.add(task, {**figures, **self.attacked(design.mechanism)})

    def _neighbour(self, kind: str) -> om.Design | None:
        """What to start from: for a joint design the differential one at the same ε, which is
        optimal for it as well wherever the distortion bound holds by itself."""
        order = {"joint": ("differential", "joint"), "differential": ("differential",)}
        return next((self._last[k] for k in order.get(kind, (kind,)) if k in self._last), None)

    def attacked(self, m: om.Mechanism) -> Record:
        """The adversary's errors in km: optimal, Bayesian, and better informed than assumed."""
        informed = {}
        for evidence in EVIDENCE:
            truth = om.attacks.sharpened(self.prior, TOP, evidence)
            informed[str(evidence)] = om.attacks.optimal_attack(m, truth, EUCLIDEAN).error
        return {
            "blind": self.blind,
            "optimal": om.attacks.optimal_attack(m, self.prior, EUCLIDEAN).error,
            "bayesian": om.attacks.bayesian(m, self.prior, EUCLIDEAN).error,
            "informed": informed,
        }


def _name(task: Record) -> str:
    return "-".join(str(part) for part in task.values())


Chain = Callable[[], None]
"""Designs that are made one after the other, because each starts from those before it."""


def scenario1(study: Study) -> Iterator[Chain]:
    """Equal distortion: d_m is what the optimal differential mechanism happens to give."""
    for epsilon in (0.15, 0.3, 0.45, 0.6, 0.75, 0.9):
        yield partial(_beyond, study, epsilon, (0.0,))


def scenario2(study: Study) -> Iterator[Chain]:
    """More distortion than the differential mechanism gives: a part of the way to d_max."""
    for epsilon in (0.3, 0.6, 0.9):
        yield partial(_beyond, study, epsilon, (0.25, 0.5, 0.75))


def scenario3(study: Study) -> Iterator[Chain]:
    """Both thresholds chosen independently."""
    minima = [float(d) for d in np.arange(0.5, study.blind, 0.5)] + [study.blind]
    for epsilon in (0.2, 0.4, 0.6, 0.8, 1.0):
        yield partial(_joint, study, epsilon, minima)
    for minimum in minima:
        yield partial(_distortion, study, minimum)


def _beyond(study: Study, epsilon: float, parts: tuple[float, ...]) -> None:
    """Distortions that lie these parts of the way from the differential mechanism's to d_max."""
    reached = study.design("differential", epsilon, None)["optimal"]
    for part in parts:
        minimum = reached + part * (study.blind - reached)
        study.design("joint", epsilon, minimum)
        study.design("distortion", None, minimum)


def _joint(study: Study, epsilon: float, minima: list[float]) -> None:
    study.design("differential", epsilon, None)
    for minimum in minima:
        study.design("joint", epsilon, minimum)


def _distortion(study: Study, minimum: float) -> None:
    study.design("distortion", None, minimum)


SCENARIOS = {"scenario1": scenario1, "scenario2": scenario2, "scenario3": scenario3}
