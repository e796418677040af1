"""How blocks are dealt out to threads: every part once, nobody waits for a thread that is late, and
the results do not depend on how many threads there are."""

import threading
from collections import Counter

import numpy as np
import pytest

import optmech as om
from optmech.base.native import has_kernels

if not has_kernels():
    pytest.skip("no kernels are compiled", allow_module_level=True)

from optmech.engines.structured.compiled import Workers


@pytest.mark.parametrize("threads", [1, 2, 3, 20])
@pytest.mark.parametrize("parts", [0, 1, 5])
def test_every_part_is_done_once(threads, parts):
    workers, done = Workers(threads), []
    workers(lambda t, nt: done.append((t, nt)), parts=parts)
    nt = parts or max(8, threads)
    assert Counter(done) == {(t, nt): 1 for t in range(nt)}


def test_the_caller_does_what_a_late_thread_does_not_take():
    caller, others = threading.get_ident(), threading.Event()
    taken = {True: 0, False: 0}

    def kernel(t, nt):
        mine = threading.get_ident() == caller
        taken[mine] += 1
        if not mine:
            assert others.wait(60), "the caller waits for a thread that is late"
        elif taken[True] >= nt - 1:
            others.set()

    workers = Workers(2)
    for _ in range(20):
        taken.update({True: 0, False: 0})
        others.clear()
        workers(kernel)
        assert sum(taken.values()) == 8
        assert taken[False] <= 1


def test_results_are_the_same_on_one_thread_and_on_four():
    domain = om.Grid(14, 11)
    weights = np.random.default_rng(5).dirichlet(np.full(154, 0.4))
    euclidean = om.distances.euclidean()
    problem = om.Problem(
        om.Prior(domain, weights), euclidean, constraints=[om.MetricPrivacy(0.6, euclidean)]
    )
    one, four = (om.solve(problem, om.Profile(gap=1e-4, threads=n)) for n in (1, 4))
    assert one.engine == "structured"
    assert np.array_equal(one.matrix, four.matrix)
    assert (one.loss, one.lower_bound) == (four.loss, four.lower_bound)
