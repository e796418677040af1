"""Interrupted at any moment, a solve ends with a verified design or says that there is none."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import numpy as np
import pytest
from conformance.problems import blind, prior

import optmech as om
from optmech.errors import SolverError
from optmech.lp.inequalities import Inequalities

E, H = om.distances.euclidean(), om.distances.hamming()
PROFILES = ("structured", "lazy", "highs")
INTERRUPTS = 60


def problems() -> list[om.Problem]:
    p = prior(np.random.default_rng(0), om.Grid(5, 5))
    private = om.MetricPrivacy(0.7, E)
    least = om.solve(om.Problem(p, E, constraints=[private])).loss
    return [
        om.Problem(p, E, constraints=[private]),
        om.Problem(p, H, constraints=[private, om.DistortionPrivacy(0.9 * blind(p), E)]),
        # no constant mechanism: there may be nothing to return yet
        om.Problem(p, H, constraints=[private, om.LossBound(1.01 * least, loss=E)]),
    ]


@pytest.fixture
def alarm() -> Iterator[None]:
    """Turns the timer's signal into Ctrl-C."""
    previous = signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)


def interrupted(problem: om.Problem, profile: str, moment: float) -> om.Design:
    """The timer is off on every way out; a signal on the last step of the way is raised in here."""
    signal.setitimer(signal.ITIMER_REAL, moment)
    try:
        return om.solve(problem, profile=profile)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@pytest.mark.usefixtures("alarm")
@pytest.mark.slow
def test_interrupts_at_random_moments() -> None:
    rng = np.random.default_rng(7)
    stated = problems()
    # long enough on any machine for some of the solves to end by themselves, and no longer
    longest = {}
    for k, problem in enumerate(stated):
        for profile in PROFILES:
            started = time.perf_counter()
            assert om.solve(problem, profile=profile).status == "optimal"
            longest[k, profile] = min(1.5 * (time.perf_counter() - started), 0.25)
    ended = {"optimal": 0, "feasible": 0, "nothing yet": 0, "dishonest": 0}
    for k in range(INTERRUPTS):
        problem = stated[k % len(stated)]
        profile = PROFILES[int(rng.integers(3))]
        moment = rng.uniform(0.001, longest[k % len(stated), profile])
        try:
            design = interrupted(problem, profile, float(moment))
        except SolverError as error:
            honest = "no verified mechanism" in str(error)
            ended["nothing yet" if honest else "dishonest"] += 1
            continue
        except KeyboardInterrupt:
            # before or after the search itself: an ordinary interrupt, nothing was promised
            continue
        assert design.verified
        assert design.bound <= design.objective
        assert Inequalities.of(problem.statement).hold(design.mechanism.matrix)
        ended[design.status] += 1
    assert ended["dishonest"] == 0
    assert ended["feasible"] + ended["optimal"] > 0
