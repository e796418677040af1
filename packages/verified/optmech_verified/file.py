"""Designs as whole numbers, for the checker in ``proofs/`` that is itself proved.

The text has words with blanks between them, in the order in which ``proofs/main.ml`` reads them:
what the design is, the matrix, the objective, the promises, both claims, and the multipliers, on a
scale on which every inequality has whole numbers. Multipliers are rounded, which costs the bound
less than 2^-500 of them; they claim nothing, and the checker works with what stands there.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from optmech.base.storage import write_atomically
from optmech.certificate import Multipliers, infeasibility_margin
from optmech.certificate.families import Gradient
from optmech.certificate.objective import trivial_bound
from optmech.certificate.statement import Spread, Statement
from optmech.designs.design import Design
from optmech.exact.numerators import Numerators, dot, integers
from optmech_verified.promises import (
    Item,
    Stated,
    dyadic,
    guess_lines,
    item_line,
    product,
    promises_of,
    rate_line,
    share,
    strategy_of,
    table_lines,
    uncovered,
)

FORMAT = "optmech-checked 1"
_SCALE = 768
"""Bits behind the point of the sums in the bound, at least."""


def write_checked(design: Design, digest: str, path: str | Path) -> dict[str, int]:
    """Write a design as ``checked_text``, atomically; returns secrets, observables and promises."""
    text = checked_text(design, digest)
    write_atomically(path, text.encode())
    secrets, observables = design.problem.statement.loss.shape
    promises = len(design.problem.statement.families)
    return {"secrets": secrets, "observables": observables, "promises": promises}


def checked_text(design: Design, digest: str) -> str:
    """The text that the proved checker reads; ``digest`` is that of the design's file.

    Raises ProblemError, with the name of the constraint, where the checker does not cover what the
    design claims.
    """
    problem, outer = design.problem, design.certificate.outer
    statement, multipliers = problem.statement, design.certificate.multipliers
    if problem.mesh is not None and not problem.mesh.is_region:
        raise uncovered("constraints", "a promise at every point of a line or of roads")
    if statement.survey is not None:
        raise uncovered("objective", "the variance of an estimate")
    words = _words(design)
    head = [FORMAT, f"design {digest}", f"words {len(words)}", *words]
    head.append(f"size {len(problem.secrets)} {statement.observables}")
    if design.exact is None:
        lines = _refutation(statement, multipliers)
    elif statement.spread is not None:
        lines = _everywhere(design, statement.spread, design.exact)
    elif outer is not None:
        raise uncovered("outer", "a bound by cells of the secrets")
    else:
        matrix = [f"matrix {design.exact.bits}", *table_lines(design.exact.rows)]
        cost, least = (_minimised(statement, v) for v in (design.objective, design.bound))
        lines = _design(statement, multipliers, matrix, (cost, least))
    return "\n".join([*head, *lines, "end", ""])


def _design(
    statement: Statement,
    multipliers: Multipliers,
    matrix: list[str],
    claims: tuple[Fraction, Fraction],
) -> list[str]:
    """Matrix, objective, promises, what it costs at most and anything at least, and the proof."""
    goal, goal_bits = _objective(statement)
    cost, least = claims
    if least <= Fraction(trivial_bound(statement)):
        multipliers = Multipliers()  # they may prove less than what every mechanism costs
    free = max(64, _SCALE - goal_bits)
    promises = promises_of(statement, multipliers, goal_bits + free)
    lines = [*matrix, *goal, *_stated(promises)]
    lines.append(f"cost {cost.numerator} {cost.denominator}")
    lines.append(f"least {least.numerator} {least.denominator}")
    lines += ["proof", item_line(_goal_item(statement, multipliers, 1 << free))]
    return lines + _item_lines(promises)


def _stated(promises: list[Stated]) -> list[str]:
    return [f"promises {len(promises)}", *(line for each in promises for line in each.lines)]


def _item_lines(promises: list[Stated]) -> list[str]:
    return [line for _, own in promises for line in (f"items {len(own)}", *map(item_line, own))]


def _refutation(statement: Statement, multipliers: Multipliers) -> list[str]:
    """The promises that nothing keeps together, and what adds up to more than 0."""
    if not infeasibility_margin(statement, multipliers) > 0:
        raise uncovered("reason", "a proof without multipliers that nothing is feasible")
    promises = promises_of(statement, multipliers, _SCALE, objective=False)
    return ["infeasible", *_stated(promises), "proof", *_item_lines(promises)]


def _everywhere(design: Design, spread: Spread, exact: Numerators) -> list[str]:
    """The problem over the places, whose bound is that of all mechanisms, and the mesh."""
    outer, mesh = design.certificate.outer, spread.mesh
    gradient = next(iter(design.problem.statement.of_kind(Gradient)))
    where = f"constraints[{gradient.index}]"
    if mesh.coordinates != "plane":
        raise uncovered(where, "a region in degrees")
    if outer is None or outer.cells is not None:
        raise uncovered("outer", "a promise at every point without a bound by the places")
    rows, bits = _at_places(spread, exact, where)
    matrix = [f"matrix {bits}", *table_lines(rows)]
    claims = Fraction(design.objective), _minimised(outer.statement, design.lower_bound)
    lines = _design(outer.statement, outer.multipliers, matrix, claims)
    places, place_bits = integers(np.vstack([mesh.vertices, spread.places]))
    corners, places = places[: len(mesh.vertices)], places[len(mesh.vertices) :]
    lines += ["everywhere", rate_line(gradient.epsilon), f"degree {mesh.degree}"]
    lines += [f"coordinates {place_bits}", f"triangles {len(mesh.triangles)}"]
    lines += table_lines(
        [*corners[a], *corners[b], *corners[c], *control]
        for (a, b, c), control in zip(mesh.corners, mesh.control.tolist(), strict=True)
    )
    lines += [f"rows {mesh.rows}", f"matrix {exact.bits}", *table_lines(exact.rows)]
    return [*lines, "places", *table_lines(places)]


def _at_places(spread: Spread, exact: Numerators, where: str) -> tuple[list[list[int]], int]:
    """What is reported from the places of the prior: whole numbers, and the power of two that they
    are over."""
    found: list[list[Fraction]] = []
    for control, weights in spread.weights:
        total = sum(weights) << exact.bits
        columns = zip(*(exact.rows[k] for k in control), strict=True)
        sums = (dot(weights, own) for own in columns)
        found.append([Fraction(own, total) for own in sums])
    largest = max(q.denominator for row in found for q in row)
    if any(q.denominator & (q.denominator - 1) for row in found for q in row):
        raise uncovered(where, "places whose weights on the mesh are no binary fractions")
    return [[int(q * largest) for q in row] for row in found], largest.bit_length() - 1


def _words(design: Design) -> list[str]:
    """What the design says, in words."""
    problem = design.problem
    said = [problem.title] if problem.title else []
    said += [
        f"constraints[{k}]: {c.promise(problem.space)}" for k, c in enumerate(problem.constraints)
    ]
    said.append(f"{design.status}: objective {design.objective!r}, bound {design.bound!r}")
    return [" ".join(line.split()) for line in said]


# the objective
def _minimised(statement: Statement, claimed: float) -> Fraction:
    """A claimed objective or bound as one of what is minimised."""
    return Fraction(claimed) * statement.sign


def _objective(statement: Statement) -> tuple[list[str], int]:
    """Its lines, and the bits that its terms are over."""
    loss, bits = dyadic(statement.loss)
    if statement.objective == "expected_loss":
        (prior,), more = dyadic(statement.prior)
        lines = ["objective expected", f"prior {more}", *table_lines([prior])]
        return [*lines, f"loss {bits}", *table_lines(loss)], bits + more
    if statement.objective == "worst_loss":
        return ["objective worst", f"loss {bits}", *table_lines(loss)], bits
    assert statement.regrets is not None
    w, bits = product(*statement.regrets)
    return ["objective guessed", *guess_lines(w, bits)], bits


def _goal_item(statement: Statement, given: Multipliers, unit: int) -> Item:
    secrets, observables = statement.loss.shape
    if statement.objective == "expected_loss":
        return 0, 0, 0, [[unit]]
    if statement.objective == "worst_loss":
        equal = np.full(secrets, 1.0 / secrets)
        weights = equal if given.objective is None else given.objective
        return 0, 0, 0, [[share(v, unit, 1) for v in np.asarray(weights).tolist()]]
    assert statement.target is not None
    played = given.objective
    if played is None:  # the guess that errs least without a report
        best = int((-statement.sign * statement.target).sum(axis=1).argmin())
        played = np.zeros((observables, len(statement.target)))
        played[:, best] = 1.0
    return 0, 0, 0, [[unit], *strategy_of(np.asarray(played), unit)]
