"""HiGHS on the flattened program, through highspy: duals, interrupts, little overhead.

Default is the interior-point method without crossover at tight tolerances; where its point does
not reach the asked gap, crossover and then the simplex method are tried.

A point as far inside a program as it goes, and the inequalities that leave no room at all, are
found by two linear programs: the first adds up the slacks of all inequalities, each counted up to
a hair, and shows which are equalities in disguise; the second makes the least of the other slacks
as large as it can be. Divergences are replaced by ratios near one, which imply them.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from optmech.base import memory
from optmech.base.arrays import Floats, Ints
from optmech.base.highs import highs_model, quiet_highs, run_highs
from optmech.engines.base import EngineResult, Monitor, Options, Outcome
from optmech.errors import ProblemError
from optmech.lp.blocks import BlockLP, LocalRows, entries
from optmech.lp.flatten import FlatLP, Interior, flatten

_BYTES_PER_NONZERO = 120
_ITERATIONS = 1_000
"""Steps of the interior-point method; HiGHS has no limit of its own and sometimes never ends."""
NOT_LINEAR = "divergence constraints are not linear"
_SINGLE: dict[str, dict[str, object]] = {
    "ipm": {"solver": "ipx", "run_crossover": "off"},
    "ipm-crossover": {"solver": "ipx", "run_crossover": "on"},
    "simplex": {"solver": "simplex"},
    "hipo": {"solver": "hipo", "run_crossover": "off"},
    "pdlp": {"solver": "pdlp"},
}
METHODS = {"": tuple(_SINGLE.values())[:3], **{name: (own,) for name, own in _SINGLE.items()}}
"""Settings of HiGHS by the name of a method; without one the first three are tried in turn."""
INFEASIBLE = ("Infeasible", "Primal infeasible or unbounded")
_SOLVED = ("Optimal", "Unknown", "Time limit reached", "Interrupted", "Iteration limit reached")

_PIVOTS = 2_000
"""Of the simplex method on these, which sometimes never ends: then the interior-point method."""
_LARGEST = 100_000
"""Nonzeros of programs for which a point inside is worth the while."""
_HAIR = 1e-5
_NONE = 1e-8
"""Slacks below this are none."""
_MOST = 0.5
"""The largest deviation of a ratio from one in the place of a divergence."""


class HighsEngine:
    """The whole program at once."""

    name = "highs"

    def refusal(self, lp: BlockLP) -> str:
        return NOT_LINEAR if lp.perspectives else ""

    def run(self, lp: BlockLP, options: Options, monitor: Monitor) -> EngineResult:
        require_memory(lp)
        flat = flatten(lp)
        session = HighsSession(flat, options)
        outcome, message, doubted = Outcome.FAILED, "no method was tried", False
        for settings in attempts(options, held=lp.held is not None):
            presolve = settings.get("presolve")
            if presolve == "off" and not doubted:
                break
            label = settings["solver"]
            monitor.report(
                f"HiGHS {label}: {flat.matrix.shape[0]:,} rows, {flat.matrix.nnz:,} nonzeros"
            )
            status = session.solve(settings, monitor)
            message = f"HiGHS {label}: {status}"
            if status in INFEASIBLE and presolve == "choose":
                doubted = True
                continue
            if status in INFEASIBLE:
                return EngineResult(Outcome.INFEASIBLE, message)
            if status in _SOLVED and (found := session.solution()):
                gap = monitor.propose(flat.point(*found))
                outcome = Outcome.SOLVED if status == "Optimal" else Outcome.STOPPED
                if gap <= options.gap:
                    break
            if monitor.should_stop():
                outcome = Outcome.STOPPED
                break
        return EngineResult(outcome, message)


def attempts(options: Options, *, held: bool = False) -> Iterator[dict[str, object]]:
    """The HiGHS settings to try, in order. Next to rows that are ``held`` there may be no interior
    point, and all are tried again without the presolve, which takes what agrees to 1e-10 only for
    infeasible."""
    if options.method not in METHODS:
        raise ProblemError(
            f"method {options.method!r} is unknown",
            where="profile.method",
            remedy=f"Use one of {', '.join(repr(name) for name in METHODS)}",
        )
    found = METHODS[options.method]
    if held:
        yield from ({**settings, "presolve": "choose"} for settings in found)
        yield from ({**settings, "presolve": "off"} for settings in reversed(found))
    else:
        yield from found


def require_memory(lp: BlockLP) -> None:
    """Refuse what would not fit: rows and the factor's fill, at about 120 bytes a nonzero."""
    memory.require(
        float(lp.nonzeros) * _BYTES_PER_NONZERO,
        what=f"the linear program ({lp.nonzeros:,} nonzeros)",
        where="engine highs",
        remedy="Use --profile lazy or structured, a spanner, or a coarser domain",
    )


class HighsSession:
    """One HiGHS model that can be solved repeatedly and given more rows."""

    def __init__(self, flat: FlatLP, options: Options) -> None:
        self._highs = quiet_highs()
        self._abandoned = False
        for key, value in {
            "threads": options.threads,
            "primal_feasibility_tolerance": options.tolerance,
            "dual_feasibility_tolerance": options.tolerance,
            "ipm_optimality_tolerance": options.tolerance,
            "small_matrix_value": 1e-12,
            "ipm_iteration_limit": _ITERATIONS,
            **options.parameters,
        }.items():
            self._set(key, value)
        self._scale = flat.cost_scale
        self._highs.passModel(
            highs_model(flat.cost * self._scale, flat.matrix, flat.lower, flat.upper, flat.upper_x)
        )

    def _set(self, key: str, value: object) -> None:
        import highspy

        try:
            taken = self._highs.setOptionValue(key, value) == highspy.HighsStatus.kOk
        except (TypeError, ValueError, OverflowError, RuntimeError):
            taken = False
        if not taken:
            raise ProblemError(
                f"HiGHS does not take {key} = {ascii(value)[:60]}",
                where="profile.parameters",
                remedy="See the HiGHS option list",
            )

    def solve(self, settings: dict[str, object], monitor: Monitor) -> str:
        """Run HiGHS in a thread, so that interrupts and limits are obeyed; returns its status."""
        for key, value in settings.items():
            self._set(key, value)
        left = monitor.remaining()
        # HiGHS counts its clock over all runs of a model
        self._set("time_limit", self._highs.getRunTime() + left if np.isfinite(left) else left)
        if not run_highs(self._highs, monitor.should_stop):
            self._abandoned = True
            return "Interrupted"
        return str(self._highs.modelStatusToString(self._highs.getModelStatus()))

    def solution(self) -> tuple[Floats, Floats] | None:
        """Primal values and row duals, in the program's own units, where both are finite."""
        if self._abandoned:
            return None
        found = self._highs.getSolution()
        values, duals = np.array(found.col_value), np.array(found.row_dual) / self._scale
        finite = np.isfinite(values).all() and np.isfinite(duals).all()
        return (values, duals) if found.value_valid and found.dual_valid and finite else None


def interior(lp: BlockLP, options: Options, monitor: Monitor) -> Interior | None:
    """None where the program is too large, or HiGHS finds nothing."""
    if lp.held is None and lp.nonzeros > _LARGEST:
        return None
    flat = flatten(_near_one(lp))
    if flat.matrix.nnz > _LARGEST:
        return None
    bounded = np.flatnonzero(np.isneginf(flat.lower) & np.isfinite(flat.upper))
    size = lp.blocks * lp.block_size
    # (O, S): the places of the matrix
    order = np.arange(size).reshape(lp.blocks, lp.block_size)[:, : lp.secrets]
    places = order[flat.upper_x[order] > 0]
    found = _solved(_deepened(flat, bounded, places, True), options, monitor)
    if found is None:
        return None
    slack = found[len(flat.cost) :]
    tight, empty = slack[: len(bounded)] < _NONE, slack[len(bounded) :] < _NONE
    deeper = _solved(_deepened(flat, bounded[~tight], places[~empty], False), options, monitor)
    x = (found if deeper is None else deeper)[:size]
    zero = np.ones(size, dtype=bool)
    zero[places[~empty]] = False
    whole = np.where(zero, 0.0, x)
    order = order.T
    # equations among these alone
    others = np.setdiff1d(np.arange(flat.matrix.shape[1]), order)
    equations = flat.matrix[bounded[tight]]
    alone = abs(equations[:, others]).sum(axis=1) == 0
    return Interior(
        whole[order],
        zero[order],
        sp.csr_array(equations[alone][:, order.ravel()]),
        flat.upper[bounded[tight]][alone],
    )


def _near_one(lp: BlockLP) -> BlockLP:
    """The program with p <= (1 + τ) q in the place of every perspective, τ so small that the
    divergence of both ways is below its limit: at most τ²."""
    local = list(lp.local)
    for part in lp.perspectives:
        most = np.minimum(0.5 * np.sqrt(part.unit), _MOST)
        k = np.arange(len(most))
        rows = entries(
            (len(k), lp.block_size), (np.ones(len(k)), k, part.p), (-(1 + most), k, part.q)
        )
        local.append(LocalRows(sp.csr_array(rows)))
    return replace(lp, local=tuple(local), perspectives=())


def _deepened(flat: FlatLP, bounded: Ints, places: Ints, together: bool) -> FlatLP:
    """Maximise t with matrix x + t <= upper and x >= t; ``together`` Σ t for a t of every row and
    place, each of at most a hair."""
    k, extra = np.arange(len(places)), len(bounded) + len(places) if together else 1
    row_slack = np.arange(len(bounded)) if together else np.zeros(len(bounded), int)
    place_slack = len(bounded) + k if together else np.zeros(len(k), int)
    own = sp.csr_array(
        (np.ones(len(bounded)), (bounded, row_slack)), shape=(len(flat.lower), extra)
    )
    columns = len(flat.cost)
    slack = (np.ones(len(k)), k, columns + place_slack)
    below = entries((len(k), columns + extra), (-np.ones(len(k)), k, places), slack)
    return replace(
        flat,
        cost=np.concatenate([np.zeros(len(flat.cost)), np.full(extra, -1.0)]),
        matrix=sp.csr_array(sp.vstack([sp.hstack([flat.matrix, own]), below])),
        lower=np.concatenate([flat.lower, np.full(len(k), -np.inf)]),
        upper=np.concatenate([flat.upper, np.zeros(len(k))]),
        upper_x=np.concatenate([flat.upper_x, np.full(extra, _HAIR if together else 1.0)]),
    )


def _solved(flat: FlatLP, options: Options, monitor: Monitor) -> Floats | None:
    found = None
    for method in ("simplex", "ipm-crossover"):
        session = HighsSession(flat, options)
        limited = {**_SINGLE[method], "simplex_iteration_limit": _PIVOTS}
        status = session.solve(limited, monitor)
        found = session.solution() if status == "Optimal" else None
        if status != "Iteration limit reached" or monitor.should_stop():
            break
    return found and found[0]
