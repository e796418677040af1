"""Designs for statistics: the least variance of an estimate from one report of each person."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.optimize import linprog

from optmech.base.arrays import Floats, Ints
from optmech.base.minplus import shortest_paths
from optmech.certificate import Bound, Multipliers, lower_bound
from optmech.certificate.families import Distortion, LossLimit, Ratio, Support
from optmech.certificate.statement import Statement
from optmech.certificate.variance import PieceProof, VarianceProof, estimator, spread_value
from optmech.designs.design import Design
from optmech.engines import limited
from optmech.engines.information import Found
from optmech.engines.rays import Rays, Weighed, designed, weighed
from optmech.errors import ProblemError, SolverError
from optmech.lp.inequalities import Inequalities
from optmech.pipeline.labels import Labels
from optmech.pipeline.multipliers import TIGHT, Asked, bounded, bounded_by_limits, listed, proof_of
from optmech.pipeline.session import Clock, feasible_design
from optmech.problem import LossBound, Problem, Support as SupportOf
from optmech.problem.constraint import Constraint
from optmech.repair import Cone, repair
from optmech.repair.mixing import constant_anchors
from optmech.repair.release import release
from optmech.spaces.domain import Domain

ENGINE = "information"
_MOST = 128
"""Secrets, whose pairs are the variables."""
_LITTLE = 1e-5
"""Weights of columns, relative to the largest, that are left out."""
_LESS = (0.0, *(2.0**-k for k in range(24, 9, -2)))
"""Of T, what is left out where a proof does not hold by a little."""
_TURNS = 60
"""Times that a population moves to where it is worse."""
_TOLD = 1e-9
"""Eigenvalues of an information below this, relatively, are none."""
_HELD = 1e-4
"""Of a mechanism that tells all secrets apart, mixed in where the best one does not."""


def refusal(problem: Problem) -> str:
    """Why a variance cannot be minimised under these constraints; empty where it can."""
    statement = problem.statement
    if problem.mesh is not None:
        return "privacy at every point has no statistic yet: state MetricPrivacy between secrets"
    kinds = Ratio | LossLimit | Distortion | Support
    others = [
        own for own in statement.families
        if not isinstance(own, kinds) or (isinstance(own, Ratio) and own.window is not None)
    ]  # fmt: skip
    if others:
        return (
            f"constraints[{others[0].index}] limits more than likelihood ratios of pairs of "
            "secrets, losses, attacks and supports, which is not known how to do for a variance"
        )
    if statement.secrets < 2:
        return "one secret has nothing to be estimated"
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
    people = whole_shares(np.ones(n)) if survey.population is None else survey.population
    asked = Asked(survey, np.exp(closed), people, gap)
    labels = Labels.of(statement)
    rays = Rays.of(np.exp(Cone.of(Inequalities.of(statement)).log_ratio), people)
    best, found, forms = _searched(asked, rays, clock)
    if best is None:
        raise SolverError("no columns were found that add up to a mechanism", where="objective")
    columns, weights = _fewer(asked, best)
    if not labels.kept(columns, weights):
        return _limited(problem, asked, labels, rays, (found, forms), clock)
    if survey.population is None:
        asked, columns, weights = _levelled(asked, best.columns, columns, weights, clock)
        _, found, forms = _searched(asked, None, clock)
    columns, weights = _told_apart(asked, columns, weights)
    kinds = labels.chosen(columns)
    proofs = [proof_of(asked, found, forms)]
    return _released(problem, columns, weights, kinds, proofs, gap, clock)


def _searched(
    asked: Asked, rays: Rays | None, clock: Clock
) -> tuple[Weighed | None, Found, list[PieceProof]]:
    """Multipliers of a bound, and columns, of all extreme rays or of ``rays`` that are sought."""
    every = listed(asked, clock)
    if every is not None:
        return every
    found, forms = bounded(asked, clock)
    if rays is None:
        return None, found, forms
    goal = found.bound, max(asked.gap, TIGHT), asked.spread, clock.should_stop, clock.report
    if rays.count:
        return designed(rays, asked.wanted, found.information, *goal), found, forms
    none = np.zeros(0)
    free = limited.Limits(np.zeros((0, 1, len(asked.factor))), none, (), none)
    program = limited.Program(rays, free)
    begun = limited.started(program, found.information, clock.should_stop)
    made = begun and limited.designed(program, asked.wanted, begun[0], *goal)
    return made[0] if made else None, found, forms


def _limited(
    problem: Problem, asked: Asked, labels: Labels, rays: Rays,
    known: tuple[Found, list[PieceProof]], clock: Clock,
) -> Design:  # fmt: skip
    """The design where limits on losses or attacks count."""
    if asked.survey.population is None:
        raise ProblemError(
            "limits losses or attacks, which is not known how to do for the worst population",
            where="constraints",
            remedy="Name a population, or leave the limits out",
        )
    found, forms = known
    program = limited.Program(rays, labels.limits)
    begun = limited.started(program, found.information, clock.should_stop)
    if begun is None:
        raise SolverError(
            "no mechanism was found that keeps all limits",
            where="constraints",
            remedy="Allow more loss, ask for less of an attack, or for less privacy",
        )
    reached = [*bounded_by_limits(asked, clock, labels, begun), (found, forms, [])]
    reached.sort(key=lambda own: -own[0].bound)
    made = limited.designed(
        program, asked.wanted, begun[0], reached[0][0].bound, max(asked.gap, TIGHT),
        asked.spread, clock.should_stop, clock.report,
    )  # fmt: skip
    if made is None:
        raise SolverError("the weights of columns led nowhere", where="objective")
    best, found_at = made
    kept = best.weights > _LITTLE * best.weights.max()
    kinds = labels.chosen(best.columns)
    if len(labels.limits.most):
        kinds = labels.at[found_at]
    proofs = [proof_of(asked, own, pieces, labels, more) for own, pieces, more in reached]
    every = labels.at if any(len(own.charges) for own, _, _ in reached) else None
    columns, weights = best.columns[kept], best.weights[kept]
    return _released(problem, columns, weights, kinds[kept], proofs, asked.gap, clock, every)


def whole_shares(values: Floats) -> Floats:
    """Shares of 2^40 in proportion, whose sum as floats is one exactly."""
    unit = 2.0**40
    out = np.floor(values / values.sum() * unit)
    out[out.argmax()] += unit - out.sum()
    return np.asarray(out / unit)


def _levelled(
    asked: Asked, pool: Floats, columns: Floats, weights: Floats, clock: Clock
) -> tuple[Asked, Floats, Floats]:
    """A population where the variance is largest, and weights of columns that are good there and at
    no other much worse: people move to where the slope is steepest, and mechanisms are averaged.

    The game is convex in mechanisms and concave in populations, so that averages do (Freund and
    Schapire 1999).
    """
    people, gram = asked.population, asked.survey.gram
    mean, used, total = np.zeros(len(people)), np.zeros(len(pool)), 0.0
    best = (np.inf, asked, columns, weights)
    for step in range(_TURNS):
        scaled = pool / (pool @ people)[:, None]
        found = weighed(asked.wanted, scaled, 1e-4)
        if found is None or clock.should_stop():
            break
        shares = found.weights / (pool @ people)
        matrix = (pool * shares[:, None]).T
        near = estimator(matrix, people)
        slopes = matrix @ ((gram @ near) * near).sum(axis=0) - 2 * gram @ people
        mean, used, total = mean + people * (step + 1), used + shares * (step + 1), total + step + 1
        level, at = used / total, whole_shares(mean / total)
        worst = spread_value(replace(asked.survey, population=None), (pool * level[:, None]).T, at)
        if worst < best[0]:
            best = worst, replace(asked, population=at), pool, level
        move = (slopes - people @ slopes) / max(float(np.ptp(slopes)), 1e-300)
        people = people * np.exp(move * np.sqrt(np.log(len(people)) / (step + 1)))
        people /= people.sum()
    clock.report(f"variance of the worst population {best[0]:.6g}")
    _, asked, columns, weights = best
    kept = weights > _LITTLE * weights.max()
    return asked, columns[kept], weights[kept]


def _told_apart(asked: Asked, columns: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """With a little of a mechanism that tells all secrets apart, where these columns hardly do."""
    scaled = weights / (columns @ asked.population)
    values = np.linalg.eigvalsh((columns.T * scaled) @ columns)
    if values[0] > _TOLD * values[-1]:
        return columns, weights
    matrix = asked.factor**-0.45
    matrix /= matrix.sum(axis=1, keepdims=True)
    more = np.full(len(matrix), _HELD)
    return np.vstack([columns, matrix.T]), np.concatenate([(1 - _HELD) * weights, more])


def _fewer(asked: Asked, best: Weighed) -> tuple[Floats, Floats]:
    """Without columns that hardly count, where the others do as well, and without more of them than
    their information has entries (Carathéodory)."""
    columns, weights, value = best.columns, best.weights, best.value
    for least in (1e-3, 1e-4, _LITTLE):
        kept = best.weights > least * best.weights.max()
        if kept.all():
            continue
        again = weighed(asked.wanted, best.columns[kept], asked.gap / 20)
        if again is not None and again.value <= value * (1 + asked.gap / 4):
            columns, weights = again.columns, again.weights
            break
    i, j = np.triu_indices(columns.shape[1])
    if len(columns) > len(i):
        entries = (columns[:, i] * columns[:, j]).T
        found = linprog(
            np.arange(len(columns)) % 7, A_eq=entries, b_eq=entries @ weights, method="highs-ds"
        )
        if found.x is not None:
            columns, weights = columns[found.x > 0], found.x[found.x > 0]
    return columns, weights


def _released(
    problem: Problem, columns: Floats, weights: Floats, kinds: Ints,
    proofs: Sequence[Callable[[Floats], VarianceProof]], gap: float, clock: Clock,
    every: Ints | None = None,
) -> Design:  # fmt: skip
    """The design of columns: its reports are numbered, and each has the loss of an observable of
    these ``kinds``. A bound that rests on losses is about ``every`` one, so that those of no
    report have one that never comes."""
    matrix = (columns * weights[:, None]).T
    matrix /= matrix.sum(axis=1, keepdims=True)
    unused = np.setdiff1d([] if every is None else every, kinds).astype(np.int64)
    kinds = np.concatenate([kinds, unused])
    matrix = np.hstack([matrix, np.zeros((len(matrix), len(unused)))])
    reports = Domain([f"{k + 1}" for k in range(len(kinds))])
    stated = Problem(
        problem.prior, problem.loss_matrix[:, kinds], reports, objective=problem.objective,
        constraints=[_of_reports(problem, c, kinds) for c in problem.constraints],
        title=problem.title,
    )  # fmt: skip
    statement = stated.statement
    given = Inequalities.of(statement)
    repaired = repair(given, Cone.of(given), matrix)
    found = None
    if repaired is not None:
        found = release(given, repaired, constant_anchors(statement, repaired))
    if found is None:
        raise SolverError("no matrix in whole numbers passed", where="objective")
    people = proofs[0](np.zeros((0, 0))).population
    near = estimator(found.exact.matrix, people)
    made = [_about(proof(near), kinds) for proof in proofs]
    multipliers, bound = _proved(statement, made)
    return feasible_design(
        stated, found, bound, multipliers, clock, gap=gap, engine=ENGINE,
        engine_reason="a variance: a program over symmetric matrices, rounded to extreme columns",
    )  # fmt: skip


def _proved(statement: Statement, proofs: list[VarianceProof]) -> tuple[Multipliers, Bound]:
    """The proof of the largest bound. Each is tried with a little less of T, which leaves more
    room, where it does not hold."""
    found = []
    for proof in proofs:
        for less in _LESS:
            tried = replace(proof, inverse=proof.inverse * (1 - less))
            multipliers = Multipliers(variance=tried)
            found.append((multipliers, lower_bound(statement, multipliers)))
            if found[-1][1].value > 0:
                break
    return max(found, key=lambda own: own[1].value)


def _of_reports(problem: Problem, stated: Constraint, kinds: Ints) -> Constraint:
    """A constraint on observables as one on reports."""
    if isinstance(stated, LossBound) and stated.loss is not None:
        return replace(stated, loss=problem.space.losses(stated.loss)[:, kinds])
    if isinstance(stated, SupportOf):
        return SupportOf(np.ones((len(problem.secrets), len(kinds)), dtype=bool))
    return stated


def _about(proof: VarianceProof, kinds: Ints) -> VarianceProof:
    """With labels that are numbers of reports, and not of observables."""
    first = {kind: k for k, kind in reversed(list(enumerate(kinds.tolist())))}
    pieces = tuple(
        piece if piece.label is None else piece._replace(label=first[piece.label])
        for piece in proof.pieces
    )
    return replace(proof, pieces=pieces)
