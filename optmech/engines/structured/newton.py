"""One iteration: Mehrotra's predictor and corrector, then Gondzio's (1996) with weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import numpy as np

from optmech.base.arrays import Floats
from optmech.engines.structured.iterative import Earlier, Parts, SumsSolver, accuracy
from optmech.engines.structured.model import Model
from optmech.engines.structured.rows import Backend, Both, target
from optmech.engines.structured.state import Residuals, State
from optmech.engines.structured.system import Direction, Sides, System
from optmech.engines.structured.tuning import TUNING

_WEIGHTS = np.linspace(0.0, 1.0, 11)


class BreakdownError(ArithmeticError):
    """The equations cannot be solved in float64 any more."""


def factored(
    model: Model, backend: Backend, state: State, earlier: Earlier | None = None
) -> System:
    """Factor the blocks at ``state``, whose factors the backend keeps, and the Schur matrix that
    couples them, or a part of it; ``earlier`` helps where it is iterated on. Raises
    BreakdownError when a block or the Schur matrix cannot be factored."""
    with _solvable():
        if backend.parts:
            parts = cast(Parts, backend)
            sums = SumsSolver(parts, state, accuracy(model, state, parts.roughest), earlier)
            return System(model, backend, state, None, sums)
        schur = backend.factor(state.rows)
        if schur is None or not np.isfinite(schur.sums).all():
            raise BreakdownError("a block's matrix cannot be factored")
        return System(model, backend, state, schur)


def iterate(backend: Backend, state: State, now: Residuals, system: System) -> Both:
    """Move ``state`` one step, with the equations factored there. Raises BreakdownError when the
    equations cannot be solved or a direction is not finite; ``state`` stays as it was."""
    with _solvable():
        return _Iteration(backend, state, now, system).run()


@contextmanager
def _solvable() -> Iterator[None]:
    try:
        yield
    except (np.linalg.LinAlgError, ValueError) as error:
        raise BreakdownError(f"the coupling equations cannot be solved: {error}") from error


class _Iteration:
    def __init__(self, backend: Backend, state: State, now: Residuals, system: System) -> None:
        self._backend, self._state, self._now, self._system = backend, state, now, system
        self._buffer = np.zeros((len(state.P), 1, state.P.shape[1]))
        self._primal = self._dual = 0.0
        self._weights = (0.0, 0.0)

    def run(self) -> Both:
        direction = self._predict()
        mu = self._centring(direction) * self._now.mu
        in_vain = 0
        most, least_gain = self._backend.correctors
        for k in range(1 + most):
            before = self._primal + self._dual
            self._correct(direction, mu, first=k == 0)
            gain = self._primal + self._dual - before
            in_vain = in_vain + 1 if gain < least_gain else 0
            # with weights of zero the next one would be the same
            same = in_vain and self._weights == (0.0, 0.0)
            hopeless = same or in_vain > TUNING.correctors_in_vain
            if k and (hopeless or min(self._primal, self._dual) > 0.97):
                break
        step = _shortened(self._primal), _shortened(self._dual)
        if not all(np.isfinite(part).all() for part in (direction.P, direction.y, direction.lam)):
            raise BreakdownError("a direction is not finite")
        self._move(direction, step)
        return step

    def _solve(self, sides: Sides) -> Direction:
        """Solve with the pairs' right-hand side that lies in the buffer."""
        self._backend.solve(self._buffer)
        return self._system.direction(self._buffer[:, 0].copy(), sides)

    def _predict(self) -> Direction:
        state, now, dense = self._state, self._now, self._state.dense
        self._backend.affine_rhs(state.P, now.dual, self._buffer[:, 0])
        direction = self._solve(
            Sides(
                dense=-dense.u - now.dense,
                auxiliary=now.auxiliary,
                sums=now.sums,
                shared=now.shared,
                dense_target=-dense.u * dense.lam,
                coupling_target=-state.sigma * state.nu,
            )
        )
        primal, dual, self._sums = self._backend.affine_step(state.P, direction.P)
        a, b = self._ratios(direction)
        self._primal, self._dual = _length(max(primal, a)), _length(max(dual, b))
        return direction

    def _centring(self, d: Direction) -> float:
        state, dense = self._state, self._state.dense
        a, b = self._primal, self._dual
        sz, sdz, dsz, dd = self._sums
        after = sz + b * sdz + a * dsz + a * b * dd
        after += float(((dense.u + a * d.u) * (dense.lam + b * d.lam)).sum())
        after += float((state.sigma + a * d.sigma) @ (state.nu + b * d.nu))
        share = max(after / state.products / self._now.mu, 0.0)
        return min(1.0, max(share**3, 0.1 * (1 - min(a, b)) ** 3, 1e-4))

    def _correct(self, direction: Direction, mu: float, first: bool) -> None:
        """One corrector, taken in with the weights that allow the longest steps."""
        state, dense = self._state, self._state.dense
        self._backend.corrector_rhs(None if first else self._weights, mu, self._buffer[:, 0])
        products = target((dense.u, dense.lam), (direction.u, direction.lam), mu, first)
        own = dense.live * products
        at, change = (state.sigma, state.nu), (direction.sigma, direction.nu)
        coupling = target(at, change, mu, first)
        sides = Sides(
            dense=own / dense.divisor,
            dense_target=own,
            coupling_target=coupling,
        )
        corrector = self._solve(sides)
        weights = _WEIGHTS[1:] if first else _WEIGHTS
        primal, dual = self._backend.corrector_step(corrector.P, weights)
        for q, weight in enumerate(weights):
            a, b = self._ratios(direction, corrector, float(weight))
            primal[q], dual[q] = max(primal[q], a), max(dual[q], b)
        wp, self._primal = _best(primal, weights)
        wd, self._dual = _best(dual, weights)
        self._weights = (wp, wd)
        direction.add(corrector, wp, wd)

    def _ratios(
        self, d: Direction, corrector: Direction | None = None, weight: float = 0.0
    ) -> Both:
        """Largest relative decrease of the dense and coupling rows' slacks, and multipliers."""
        state, dense = self._state, self._state.dense
        if not dense.u.size + len(state.nu):
            return 0.0, 0.0

        def most(name: str, at: Floats) -> float:
            change = getattr(d, name)
            if corrector is not None:
                change = change + weight * getattr(corrector, name)
            return float((-change / at).max(initial=0.0))

        return (
            max(most("u", dense.u), most("sigma", state.sigma)),
            max(most("lam", dense.divisor), most("nu", state.nu)),
        )

    def _move(self, d: Direction, step: Both) -> None:
        state, dense = self._state, self._state.dense
        primal, dual = step
        state.P += primal * d.P
        state.a += primal * d.a
        state.g += primal * d.g
        state.sigma += primal * d.sigma
        dense.u += primal * d.u
        state.y += dual * d.y
        state.nu += dual * d.nu
        dense.lam += dual * d.lam
        self._backend.move(self._weights, step)


def _length(ratio: float) -> float:
    return min(1.0, 1.0 / max(ratio, 1e-300))


def _shortened(length: float) -> float:
    return (TUNING.back if length < 0.9 else TUNING.back_nearly_full) * length


def _best(ratios: Floats, weights: Floats) -> tuple[float, float]:
    """The largest weight with the longest step, and that step."""
    if not np.isfinite(ratios).all():
        raise BreakdownError("a direction is not finite")
    lengths = np.minimum(1.0, 1.0 / np.maximum(ratios, 1e-300))
    best = int(np.flatnonzero(lengths >= lengths.max())[-1])
    return float(weights[best]), float(lengths[best])
