"""What the tests of starting from a neighbour share."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import optmech as om


def started_from_memory_and_file(design: om.Design, folder: Path, problem: om.Problem) -> om.Design:
    """The design of a problem from a neighbour's, which its saved file leads to bit by bit."""
    design.save(folder / "d.json")
    loaded = om.Design.load(folder / "d.json")
    a, b = (om.solve(problem, start=start) for start in (design, loaded))
    assert a.exact is not None
    assert b.exact is not None
    assert np.array_equal(a.exact.matrix, b.exact.matrix)
    assert a.lower_bound == b.lower_bound
    return a
