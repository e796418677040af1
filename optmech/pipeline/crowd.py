"""Designs for statistics: the least variance of an estimate from one report of each person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.minplus import shortest_paths
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.families import Ratio
from optmech.certificate.variance import PieceProof, Survey, VarianceProof, estimator, facets
from optmech.designs.design import Design
from optmech.engines.information import Found, Piece, Search
from optmech.engines.rays import Rays, Weighed, designed, needed, weighed
from optmech.errors import ProblemError, SolverError
from optmech.lp.inequalities import Inequalities
from optmech.pipeline.session import Clock, feasible_design
from optmech.problem import Problem
from optmech.repair import Cone, repair
from optmech.repair.mixing import constant_anchors
from optmech.repair.release import release
from optmech.spaces.domain import Domain

ENGINE = "information"
_TIGHT = 1e-5
"""Of a bound, what the search leaves at the least."""
_FACETS = 10
"""Secrets up to which the facets of one of them are told apart."""
_PRODUCTS = 400_000
"""Products of rows that one program has at most."""
_MOST = 128
"""Secrets, whose pairs are the variables."""
_LITTLE = 1e-5
"""Weights of columns, relative to the largest, that are left out."""
_HELD = 1e-4
"""Of a mechanism that tells all secrets apart, mixed in where the best one does not."""


@dataclass(frozen=True)
class Asked:
    """A survey over the closed limits of pairs, at a population."""

    survey: Survey
    factor: Floats
    population: Floats
    gap: float

    @property
    def wanted(self) -> Floats:
        """S, scaled to a trace of the number of secrets."""
        return self.survey.gram


def refusal(problem: Problem) -> str:
    """Why a variance cannot be minimised under these constraints; empty where it can."""
    statement = problem.statement
    if problem.mesh is not None:
        return "privacy at every point has no statistic yet: state MetricPrivacy between secrets"
    others = [f for f in statement.families if not isinstance(f, Ratio) or f.window is not None]
    if others:
        return (
            f"constraints[{others[0].index}] limits more than likelihood ratios of pairs of "
            "secrets, which is not known how to do for a variance"
        )
    if statement.secrets > _MOST:
        return f"{statement.secrets} secrets are more than {_MOST}"
    return ""


def solve_crowd(problem: Problem, gap: float, clock: Clock) -> Design:
    """The design of a problem whose objective is a variance.

    Raises
    ------
    ProblemError
        Where constraints are not of pairs of secrets, or the secrets are too many.
    SolverError
        Where no mechanism was found that tells apart what the statistic needs.
    """
    if reason := refusal(problem):
        raise ProblemError(
            reason, where="constraints", remedy="State ratios of pairs, fewer secrets"
        )
    statement = problem.statement
    survey = statement.survey
    assert survey is not None
    n = statement.secrets
    closed = shortest_paths(np.where(np.eye(n, dtype=bool), 0.0, statement.log_ratio))
    if not np.isfinite(closed).all():
        raise ProblemError(
            "limits not all pairs of secrets, not even along others",
            where="constraints",
            remedy="Promise something between every two secrets, with a larger ε where they differ",
        )
    if (closed + np.eye(n) <= 0).any():
        raise SolverError(
            "two secrets may not be told apart at all, so that their shares cannot be estimated",
            where="constraints",
            remedy="Make one secret of them",
        )
    people = np.full(n, 1 / n) if survey.population is None else survey.population
    asked = Asked(survey, np.exp(closed), people, gap)
    found, forms = bounded(asked, clock)
    rays = Rays.of(np.exp(Cone.of(Inequalities.of(statement)).log_ratio), people)
    best = designed(
        rays, asked.wanted, found.information, found.bound, max(gap, _TIGHT),
        lambda: clock.remaining() <= 0, clock.report,
    )  # fmt: skip
    if best is None:
        raise SolverError("no columns were found that add up to a mechanism", where="objective")
    columns, weights = _fewer(asked, best)
    return _released(problem, columns, weights, proof_of(asked, found, forms), gap, clock)


def bounded(asked: Asked, clock: Clock) -> tuple[Found, list[PieceProof]]:
    """Multipliers of a bound, with the pieces that they are of."""
    factor = asked.factor
    n = len(factor)
    off = factor[~np.eye(n, dtype=bool)]
    tried = [_cone(asked)]
    if n > 2 and np.ptp(off) < 1e-12 * off[0]:
        tried = [_levels(asked)]
    elif Rays.of(factor, asked.population).edges is None and n <= _FACETS:
        tried.append(_facets(asked))
    best = None
    for pieces, forms in filter(all, tried):
        made = Search(asked.wanted, asked.population, pieces)
        found = made.run(max(asked.gap / 4, _TIGHT / 2), lambda: clock.remaining() <= 0)
        if found is not None and (best is None or found.bound > best[0].bound):
            best = found, forms
        clock.report(f"bound {found.bound if found else 0:.6g}")
    if best is None:
        raise SolverError("the bound's program led nowhere", where="objective")
    return best


Divided = tuple[list[Piece], list[PieceProof]]


def _row(i: int, j: int, factor: Floats) -> tuple[float, float]:
    """Entries at i and at j of the row f_ij v_j - v_i, scaled."""
    root = float(np.sqrt(factor[i, j]))
    return -1 / root, root


def _rows(ends: Ints, factor: Floats, size: int) -> Floats:
    out = np.zeros((len(ends), size))
    for k, (i, j) in enumerate(ends.tolist()):
        out[k, i], out[k, j] = _row(i, j, factor)
    return out


def _start(factor: Floats, prior: Floats) -> Floats:
    """The information of a mechanism inside all limits."""
    matrix = factor**-0.45
    matrix /= matrix.sum(axis=1, keepdims=True)
    return np.asarray((matrix / (prior @ matrix)) @ matrix.T)


def _proof_form(form: str, facet: tuple[int, int] | None, ends: Ints, both: Ints) -> PieceProof:
    rows = np.hstack([ends[both[:, 0]], ends[both[:, 1]]])
    return PieceProof(form, facet, rows.astype(np.int64), np.zeros(len(rows)))


def _near(ends: Ints, factor: Floats) -> Ints:
    """The pairs of rows whose products count: all, or of the limits that are nearest."""
    logs = np.log(factor[ends[:, 0], ends[:, 1]])
    most = int(np.sqrt(2 * _PRODUCTS))
    chosen = np.argsort(logs, kind="stable")[:most] if len(ends) > most else np.arange(len(ends))
    a, b = np.triu_indices(len(chosen))
    return np.column_stack([chosen[a], chosen[b]])


def _cone(asked: Asked) -> Divided:
    factor, n = asked.factor, len(asked.factor)
    ends = np.argwhere(needed(factor))
    both = _near(ends, factor)
    piece = Piece(
        np.arange(n), np.ones(n), _rows(ends, factor, n), both,
        np.zeros((0, 2), dtype=np.int64), _start(factor, asked.population),
    )  # fmt: skip
    return [piece], [_proof_form("cone", None, ends, both)]


def _levels(asked: Asked) -> Divided:
    """Columns of two values: beside them stands the lower one."""
    n = len(asked.factor)
    factor = np.ones((n + 1, n + 1))
    factor[:n, n] = asked.factor[0, 1]
    every = np.arange(n)
    ends = np.vstack(
        [np.column_stack([every, np.full(n, n)]), np.column_stack([np.full(n, n), every])]
    )
    a, b = np.triu_indices(2 * n)
    same = b == a + n
    level = float(factor[0, n])
    mean, square = (level + 1) / 2, (level**2 + 1) / 2
    start = np.full((n + 1, n + 1), mean**2)
    start[every, every] = square
    start[n, :n] = start[:n, n] = mean
    start[n, n] = 1.0
    scale = 1 / float(start[0, :n] @ asked.population)
    both = np.column_stack([a, b])
    piece = Piece(
        every, np.ones(n), _rows(ends, factor, n + 1), both[~same], both[same], start * scale
    )
    return [piece], [_proof_form("levels", None, ends, np.vstack([both[~same], both[same]]))]


def _facets(asked: Asked) -> Divided:
    """Pieces for the limits of one secret, one of which is tight at every extreme ray."""
    factor, n = asked.factor, len(asked.factor)
    pairs = needed(factor)
    limits = np.where(pairs, factor, np.inf)
    middle = int(np.log(factor).max(axis=1).argmin())
    ends = np.argwhere(pairs)
    pieces, forms = [], []
    for i, j in sorted(facets(limits, middle)):
        onto = np.delete(np.eye(n), i, axis=1)
        onto[i, j - (j > i)] = factor[i, j]
        rows = _rows(ends, factor, n) @ onto
        size = np.abs(rows).max(axis=1)
        kept = np.flatnonzero(size > 1e-9)
        rows = rows[kept] / size[kept, None]
        start = _within(factor, i, j, asked.population)
        if not len(start):
            return [], []
        a, b = np.triu_indices(len(kept))
        others = np.delete(np.arange(n), i)
        piece = Piece(
            onto.argmax(axis=1), onto.max(axis=1), rows, np.column_stack([a, b]),
            np.zeros((0, 2), dtype=np.int64), start[np.ix_(others, others)] / n,
        )  # fmt: skip
        pieces.append(piece)
        form = _proof_form("facet", (i, j), ends[kept], np.column_stack([a, b]))
        forms.append(form._replace(weight=1 / (size[kept][a] * size[kept][b])))
    return pieces, forms


def _within(factor: Floats, i: int, j: int, prior: Floats) -> Floats:
    """The mean of vvᵀ over vectors of the cone with v_i = f_ij v_j, πᵀv = 1: least majorants of
    random ones. Empty where there are too few."""
    n = len(factor)
    drawn = np.exp(np.random.default_rng(0).normal(size=(8 * n, n)) * np.log(factor).max() / 2)
    for _ in range(2):
        drawn = (drawn[:, :, None] / factor).max(axis=1)
        drawn[:, i] = factor[i, j] * drawn[:, j]
    drawn = (drawn[:, :, None] / factor).max(axis=1)
    on = np.abs(drawn[:, i] / (factor[i, j] * drawn[:, j]) - 1) < 1e-12
    kept = drawn[on] / (drawn[on] @ prior)[:, None]
    return np.asarray(kept.T @ kept / len(kept)) if len(kept) > n else np.zeros((0, 0))


def _fewer(asked: Asked, best: Weighed) -> tuple[Floats, Floats]:
    """Without columns that hardly count, where the others do as well."""
    columns, weights, value = best.columns, best.weights, best.value
    for least in (1e-3, 1e-4, _LITTLE):
        kept = best.weights > least * best.weights.max()
        if kept.all():
            continue
        again = weighed(asked.wanted, best.columns[kept], max(asked.gap, _TIGHT) / 20)
        if again is not None and again.value <= value * (1 + asked.gap / 20 + 1e-6):
            return again.columns, again.weights
    return columns, weights


def proof_of(
    asked: Asked, found: Found, forms: list[PieceProof]
) -> Callable[[Floats], VarianceProof]:
    """What proves the bound, for whatever estimate of a design."""
    done = []
    for form, weight, free in zip(forms, found.weights, found.free, strict=True):
        ends = form.rows
        factor = asked.factor
        n = len(factor)
        if form.form == "levels":
            factor = np.pad(factor, (0, 1), constant_values=float(factor[0, 1]))
            factor[n] = 1.0
        own = np.concatenate([weight, free])
        if form.form == "facet":
            own = own * form.weight
        scale = np.sqrt(factor[ends[:, 0], ends[:, 1]] * factor[ends[:, 2], ends[:, 3]])
        done.append(form._replace(weight=own / scale))
    pairs = np.argwhere(needed(asked.factor))
    if forms[0].form == "levels":
        pairs = np.argwhere(~np.eye(len(asked.factor), dtype=bool))
    inverse = np.linalg.inv(found.information)
    inverse = (inverse + inverse.T) / 2
    return lambda estimate: VarianceProof(
        estimate, asked.population, inverse, found.prices, pairs, tuple(done)
    )


def _released(
    problem: Problem,
    columns: Floats,
    weights: Floats,
    proof: Callable[[Floats], VarianceProof],
    gap: float,
    clock: Clock,
) -> Design:
    """The design of columns: its reports are numbered, and each has the loss of the observable that
    fits it best."""
    matrix = (columns * weights[:, None]).T
    matrix /= matrix.sum(axis=1, keepdims=True)
    prior, loss = problem.prior.weights, problem.loss_matrix
    labels = ((prior[:, None] * loss).T @ matrix).argmin(axis=0)
    reports = Domain([f"{k + 1}" for k in range(len(labels))])
    stated = Problem(
        problem.prior,
        loss[:, labels],
        reports,
        objective=problem.objective,
        constraints=problem.constraints,
        title=problem.title,
    )
    statement = stated.statement
    given = Inequalities.of(statement)
    repaired = repair(given, Cone.of(given), matrix)
    found = None
    if repaired is not None:
        found = release(given, repaired, constant_anchors(statement, repaired))
    if found is None:
        raise SolverError("no matrix in whole numbers passed", where="objective")
    people = proof(np.zeros((0, 0))).population
    made = proof(estimator(found.exact.matrix, people))
    multipliers = Multipliers(variance=made)
    bound = lower_bound(statement, multipliers)
    return feasible_design(
        stated, found, bound, multipliers, clock, gap=gap, engine=ENGINE,
        engine_reason="a variance: a program over symmetric matrices, rounded to extreme columns",
    )  # fmt: skip
