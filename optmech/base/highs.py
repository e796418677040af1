"""HiGHS: filling its model and running it so that it can be stopped."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse as sp

from optmech.base.arrays import Floats
from optmech.errors import SOLVER_THREAD

_TICK = 0.02
_GRACE = 5.0
"""Seconds that HiGHS gets to react to a request to stop before it is left to itself."""


TIGHT: dict[str, str | float] = {
    "primal_feasibility_tolerance": 1e-10,
    "dual_feasibility_tolerance": 1e-10,
}
"""Options of HiGHS where its usual tolerances are too wide."""


def highs_model(
    cost: Floats, rows: sp.csr_array, lower: Floats, upper: Floats, most: Floats
) -> Any:
    """HiGHS's own form of: minimise cost·x over lower <= rows x <= upper, 0 <= x <= most.

    ``cost`` and ``most`` have shape (n,), ``rows`` (m, n), ``lower`` and ``upper`` (m,); bounds may
    be infinite.
    """
    import highspy

    infinity = highspy.kHighsInf
    model = highspy.HighsLp()
    model.num_row_, model.num_col_ = rows.shape
    model.col_cost_ = cost
    model.col_lower_, model.col_upper_ = np.zeros(len(cost)), np.minimum(most, infinity)
    model.row_lower_ = np.clip(lower, -infinity, infinity)
    model.row_upper_ = np.clip(upper, -infinity, infinity)
    model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    model.a_matrix_.start_ = rows.indptr
    model.a_matrix_.index_ = rows.indices
    model.a_matrix_.value_ = rows.data
    return model


@cache
def _quiet() -> Any:
    """The class of solvers of HiGHS that print nothing. Version 1.16 prints its name when callbacks
    are set, which its constructor does before it can be told to be silent."""
    import highspy

    class Quiet(highspy.Highs):  # type: ignore[misc]
        def enableCallbacks(self) -> None:  # noqa: N802
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    return Quiet


def quiet_highs() -> Any:
    """A solver of HiGHS that prints nothing."""
    solver = _quiet()()
    # versions before 1.9 have no callbacks to be set
    solver.setOptionValue("output_flag", False)
    return solver


_LOUD: list[Any] = []
"""What ``highspy.Highs`` was, once for everyone who is inside ``silenced``."""
_TURN = threading.Lock()


@contextmanager
def silenced() -> Iterator[None]:
    """For the time that somebody else, such as cvxpy, makes solvers of HiGHS: these print nothing
    either."""
    import highspy

    quiet = _quiet()
    with _TURN:
        _LOUD.append(_LOUD[0] if _LOUD else highspy.Highs)
        highspy.Highs = quiet
    try:
        yield
    finally:
        with _TURN:
            loud = _LOUD.pop()
            if not _LOUD:
                highspy.Highs = loud


def highs_run(
    cost: Floats,
    rows: sp.csr_array,
    lower: Floats,
    upper: Floats,
    most: Floats,
    **options: str | float,
) -> Any:
    """HiGHS, run with ``options`` of its own on the program of ``highs_model``."""
    solver = quiet_highs()
    for option, choice in options.items():
        solver.setOptionValue(option, choice)
    solver.passModel(highs_model(cost, rows, lower, upper, most))
    run_highs(solver)
    return solver


def run_highs(highs: Any, should_stop: Callable[[], bool] = lambda: False) -> bool:
    """Solve in a thread, so that Ctrl-C and ``should_stop`` are obeyed; whether HiGHS came back.

    It does not look at interrupts in its set-up, which can take minutes, and is then left to
    itself: the object must not be used again.
    """
    highs.HandleUserInterrupt = True
    worker = threading.Thread(target=highs.solve, name=SOLVER_THREAD, daemon=True)
    worker.start()
    patience = _GRACE
    try:
        while worker.is_alive():
            worker.join(_TICK)
            if worker.is_alive() and should_stop():
                highs.cancelSolve()
                patience -= _TICK
                if patience <= 0:
                    return False
    except BaseException:
        highs.cancelSolve()
        raise
    return True
