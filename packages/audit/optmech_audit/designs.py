"""The verdict on a design."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations

from optmech_audit.cells import Cells, Growth
from optmech_audit.document import (
    DESIGN_KEYS,
    INFINITE,
    Body,
    Matrix,
    Rows,
    fields,
    keys,
    listing,
    text,
    whole,
)
from optmech_audit.inequalities import Bias, Fixed, Guess, LinearRows, LossLimit, Ratios, blind
from optmech_audit.mechanisms import (
    LEAST_MARGIN,
    MOST_ENTRIES,
    Lagrangian,
    Mask,
    Mechanism,
    read_mechanism,
)
from optmech_audit.networks import at_vertices, outside
from optmech_audit.numbers import (
    ZERO,
    at_most,
    dot,
    inside,
    log_ratio,
    need,
    number,
    paired,
    real,
    rounded_up,
    up,
)
from optmech_audit.statements import Statement

OPTIMAL_GAP = 1e-6  # what may be called optimal
LOG_ROUNDING = 1e-15  # of a ratio of floats nearest to two probabilities
FIGURES = ("objective", "bound", "loss", "lower_bound")
Verdict = tuple[list[str], str]  # what was verified, and what the file says that was not


def promises_of(body: Body) -> list[Body]:
    """The constraints of the problem, as objects."""
    return list(map(fields, listing(fields(body["problem"]).get("constraints"))))


def judge_design(body: Body) -> Verdict:
    keys(body, DESIGN_KEYS, "outer")
    lines, released = list[str](), body["mechanism"] is not None
    unchecked = "title, labels, coordinates, outlines, units, engine, reason, notes, seconds, "
    unchecked += "rounding cost"
    stated = Statement(body["problem"], lines)
    with inside("result"):
        result = read_result(body["result"], released)
    with inside("multipliers"):
        bound = stated.lagrangian(body["multipliers"], objective=released)
    if not released:
        lines.append(why_infeasible(stated, bound))
        if "outer" in body:
            more = stated.roads is not None and bool(stated.segments or stated.metric)
            need(more and at_vertices(stated, body["outer"], promises_of(body), False)
                 > LEAST_MARGIN, "nothing is proved of every mechanism")  # fmt: skip
            lines.append("nor on any other mesh")
        return lines, unchecked
    with inside("mechanism"):
        mechanism = read_mechanism(body["mechanism"], stated.n, stated.m)
    lines += stated.check(mechanism)
    lines += check_approximations(stated, mechanism, listing(result["approximations"]))
    by_cells: Fraction | float = -math.inf
    beyond = None
    if stated.roads is not None:
        beyond = outside(stated, body.get("outer"), bound.value(), promises_of(body))
    elif "outer" in body:
        outer = outer_of(body["outer"])
        need(stated.objective == "expected_loss", "cells of another objective")
        if found := proved_by_cells(outer, stated, stated.log_ratio):
            lines.append(f"a bound by {found[0]} cells of the {stated.n} secrets")
            by_cells = found[1]
        else:  # nothing in the file proves it
            by_cells = math.inf
            unchecked += "; the lower bound, gap and status, by cells of the secrets"
    lines += check_figures(stated, mechanism, result, bound, by_cells, beyond)
    return lines, unchecked


WITNESS = {"plans", "costs"}  # entries that prove the numbers of cells; older files have none


def outer_of(plain: object) -> Body:
    """The proof of a bound by cells, with or without what proves their numbers."""
    more = " ".join(WITNESS) if WITNESS & fields(plain).keys() else ""
    return keys(plain, f"cells multipliers {more}")


def proved_by_cells(outer: Body, stated: Statement, logs: Growth) -> tuple[int, Fraction] | None:
    """How many cells there are, and their bound; None where nothing proves their numbers."""
    if WITNESS & outer.keys():
        with inside("outer"):
            cells = Cells(outer, stated, logs)
            return len(cells.groups), cells.bound()
    for cell in listing(outer["cells"], stated.n):
        whole(cell, stated.n)
    return None


def read_result(plain: object, released: bool) -> Body:
    """Types and ranges of what the file claims; figures are null where nothing is feasible."""
    result = keys(plain, "status objective bound loss lower_bound engine engine_reason seconds "
                  "rounding_cost reason notes approximations")  # fmt: skip
    known = ("optimal", "feasible") if released else ("infeasible",)
    need(text(result["status"], "the status") in known, "the status does not fit")
    for name in FIGURES:
        need(released or result[name] is None, "a figure of no mechanism")
        if released:
            real(result[name], 0 if name == "lower_bound" else -math.inf)
    for name in ("engine", "engine_reason", "reason"):
        text(result[name], f"the {name}")
    for note in listing(result["notes"]):
        text(note, "a note")
    number(result["seconds"], 0)
    number(result["rounding_cost"])
    for approximation in listing(result["approximations"]):
        part = keys(approximation, "constraint promised_epsilon epsilon repaired_loss")
        need(released, "an approximation of nothing")
        whole(part["constraint"], MOST_ENTRIES)
        number(part["promised_epsilon"])
        for value in (part["epsilon"], part["repaired_loss"]):
            need(value is None or math.isfinite(number(value)), "an ε or a loss is not finite")
    return result


def check_approximations(
    stated: Statement, mechanism: Mechanism, claims: list[object]
) -> Iterator[str]:
    """The ε of constraints with thresholds, measured again over all pairs of secrets."""
    parts = [(k, v) for k, v in stated.parts if isinstance(v, Ratios) and v.unthresholded]
    bodies = list(map(fields, claims))
    places = [claim["constraint"] for claim in bodies]
    need(places == [k for k, _ in parts], "approximations are missing")
    for claim, (k, part) in paired(bodies, parts):
        epsilon = math.inf if claim["epsilon"] is None else number(claim["epsilon"])
        with inside(f"constraints[{k}]"):
            least, found, most = measured(mechanism.rows, part.unthresholded or [])
            near = least * (1 - 1e-9) <= epsilon <= most * (1 + 1e-9)
            need(near, f"with its thresholds ε is {found}")
            promised = number(claim["promised_epsilon"])
            same = math.isclose(promised, part.epsilon.nearest, rel_tol=1e-9)
            need(same, "another ε was promised")
        yield (
            f"constraints[{k}]: for all pairs ε is {found:.9g}, measured again; the loss after "
            "repair is not checked"
        )


def measured(rows: Rows, d: Matrix) -> list[float]:
    """The least ε of metric privacy, the largest ln(p(o|s) / p(o|s')) / d(s, s'), between
    bounds of what floats nearest to the probabilities give: logarithms that are off by a few
    2^-53, and equal rows that are equal."""
    worst = [0.0] * 3
    for i, row in enumerate(rows):
        for j, other in enumerate(rows):
            if i == j or row == other or d[i][j] == INFINITE:
                continue
            if d[i][j] == 0 or any(a and not b for a, b in paired(row, other)):
                return [math.inf] * 3
            best = max(log_ratio(a, b) for a, b in paired(row, other) if a > b)
            own = [(best + off) / float(d[i][j]) for off in (-LOG_ROUNDING, 0, LOG_ROUNDING)]
            worst = list(map(max, worst, own))
    return worst


def check_figures(
    stated: Statement, mechanism: Mechanism, result: Body, bound: Lagrangian,
    by_cells: Fraction | float, beyond: Fraction | None,
) -> list[str]:  # fmt: skip
    """Value and bound of the file against exact ones: never better than the truth. Of a distortion
    ``bound`` is that of its negative. With a bound ``beyond`` the mesh the lower one is about more
    mechanisms."""
    objective, claimed, loss, least = (number(result[name]) for name in FIGURES)
    sign = -1 if stated.objective == "distortion" else 1
    if stated.survey is None:
        proved, value = bound.value(), stated.value(mechanism)
    else:
        value, proved = stated.spread(mechanism)
    floor = -blind(stated.attacked) if stated.attacked else ZERO
    need(sign * objective == rounded_up(value), f"the {stated.objective} is another one")
    need(sign * claimed <= max(proved, floor, by_cells), "the bound is not proved")
    if stated.attacked or stated.survey is not None:
        # a variance says nothing of the loss
        priced = least == 0 or (stated.survey is None
                                and least <= least_loss(stated, bound, value - proved))  # fmt: skip
        need(priced, "the least loss: unproved")
        value = dot(stated.prior, mechanism.losses(stated.loss))
    elif beyond is not None:
        need(least <= max(beyond, ZERO), "the lower bound is not proved")
    else:
        need(least == claimed, "bound and lower bound differ")
    need(loss == rounded_up(value), "the loss is another one")
    said = gap_said(result["status"], sign * objective, sign * claimed)
    if by_cells == math.inf:
        return [f"loss {float(loss):.15g}"]
    if stated.survey is not None:
        return [f"variance {float(objective):.15g}, bound {float(claimed)!r}", said]
    return [
        f"objective {float(objective):.15g}, bound {float(claimed)!r}",
        f"loss {float(loss):.15g}, lower bound {float(least)!r}",
        said,
    ]


def agreed_gap(status: object, value: Fraction, bound: Fraction) -> float:
    """The relative gap, whose word a file states."""
    gap = gap_of(value, bound)
    check_status(status, gap)
    return gap


def gap_said(status: object, value: Fraction, bound: Fraction) -> str:
    gap = up(agreed_gap(status, value, bound))
    return f"gap {gap}: {'optimal' if status == 'optimal' else 'not proved to be optimal'}"


def gap_of(value: Fraction, bound: Fraction) -> float:
    """How far a value may be above the least one, relative to it."""
    off = float(max(value - bound, ZERO))
    return 0.0 if off == 0 else off / abs(float(value)) if value else math.inf


def check_status(stated: object, gap: float | Fraction) -> str:
    """The word for a certified relative gap, of all files alike: it follows from the gap."""
    status = "optimal" if gap <= OPTIMAL_GAP else "feasible"
    need(stated == status, f"the gap is {up(gap)}: {status}, and not {stated!a:.40}")
    return status


def least_loss(stated: Statement, bound: Lagrangian, gap: Fraction) -> Fraction:
    """q - (U - D) / μ, where one bound on the problem's own expected loss is stated: what costs
    distortion D (theory, end of "The Lagrangian bound"). ``gap`` is U - D."""
    limits = stated.of(LossLimit)
    need(len(limits) == len(bound.paid) == 1, "there is no price of loss")
    limit, mu = limits[0], bound.paid[0][0]
    priced = limit.prior is not None and limit.loss == stated.loss and mu > 0
    need(priced, "there is no price of loss")
    return limit.most.low - gap / mu


def why_infeasible(stated: Statement, bound: Lagrangian) -> str:
    """More distortion or less loss than there can be, zeros that fill a row, or multipliers with a
    positive bound of nothing."""
    possible = all(map(any, stated.allowed))
    for k, part in stated.parts:
        if isinstance(part, Guess) and not part.possible:
            return f"constraints[{k}]: {part.beyond} than any mechanism has"
        if isinstance(part, Bias) and possible:
            for meant, ok in paired(part.meant, stated.allowed):
                seen = [v for v, may in paired(part.reported, ok) if may]
                if not min(seen) - part.most.high <= meant <= max(seen) + part.most.high:
                    return f"constraints[{k}]: a mean that no reports have"
        if isinstance(part, LinearRows) and possible and part.impossible(stated.allowed):
            return f"constraints[{k}]: a sum beyond its limit for any mechanism"
        if isinstance(part, LossLimit) and possible and stated.least(part) > part.most.high:
            return f"constraints[{k}]: less loss than any mechanism has"
    conflict = conflict_of_rows(stated)
    if conflict:
        return conflict
    if any(map(all, forced_zeros(stated))):
        return "the support leaves a secret without observables"
    need(bound.value() > LEAST_MARGIN, "the multipliers do not prove that nothing is feasible")
    here = "" if stated.roads is None else " on this mesh"
    return f"the multipliers prove that nothing{here} is feasible"


def conflict_of_rows(stated: Statement) -> str:
    """Why rows that are held cannot be kept together; empty where no two of them say so."""
    for k, part in stated.parts:
        if isinstance(part, Fixed):
            for s, row in part.rows.items():
                bits, first = stated.held[s]
                if any(v << bits != w << part.bits for v, w in paired(row, first)):
                    return f"constraints[{k}]: row {s} is fixed twice"
                if any(v and not ok for v, ok in paired(row, stated.allowed[s])):
                    return f"constraints[{k}]: row {s} is outside the support"
    top = max((bits for bits, _ in stated.held.values()), default=0)
    rows = {s: [v << (top - bits) for v in row] for s, (bits, row) in stated.held.items()}
    for k, part in stated.parts:
        if not isinstance(part, Ratios):
            continue
        for i, j in permutations(rows, 2):
            d, sides = part.d[i].get(j), ((rows[i][o], rows[j][o]) for o in part.seen(i, stated.m))
            if d is not None and not all(at_most(a, b, part.epsilon, d) for a, b in sides):
                return f"constraints[{k}]: rows {i} and {j}, which are held, break a ratio"
    return ""


def forced_zeros(stated: Statement) -> Mask:
    """Where P[j,o] = 0 and P[i,o] <= e^{ε d} P[j,o], P[i,o] = 0: from the support on, until
    nothing changes (theory, "The statement")."""
    zero = [[not ok for ok in row] for row in stated.allowed]
    moved = any(map(any, zero))
    while moved:
        moved = False
        for part in stated.of(Ratios):
            for i in range(stated.n):
                seen = part.seen(i, stated.m)
                known = [zero[j] for j in part.d[i]]
                for o in seen:
                    if not zero[i][o] and any(other[o] for other in known):
                        zero[i][o] = moved = True
    return zero
