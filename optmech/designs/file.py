"""The design file: one JSON document with the problem, the matrix, the multipliers, a digest.

Documents above a mebibyte hold their long lists as bytes (format 3), others as text (format 2).

Self-contained (distances are written as matrices), inspectable, and loaded without executing
anything. Floats are written so that they read back bit by bit.
"""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from optmech.certificate import Bound, check_exact, lower_bound
from optmech.certificate.bound import closed_form_reason, multiplier_reason, support_reason
from optmech.certificate.check import CheckReport
from optmech.certificate.objective import Figures, figures_of, relative_gap
from optmech.certificate.proved import Claim, bounded, report_on
from optmech.designs.design import Certificate, Design, OuterProof, mechanism_of, unit_after
from optmech.designs.encoding import (
    StatedResult,
    decode_multipliers,
    decode_numerators,
    decode_problem,
    decode_result,
    encode_multipliers,
    encode_numerators,
    encode_outer,
    encode_problem,
    encode_result,
)
from optmech.designs.facts import refuted
from optmech.designs.notes import about_bounds, design_notes, threshold_notes
from optmech.designs.promise import claims_of, measure_approximations
from optmech.designs.sentences import infeasible_words
from optmech.errors import ProblemError, VerificationError
from optmech.exact.arguments import require_keys
from optmech.exact.codec import listing, within
from optmech.problem import Problem
from optmech.problem.constraint import idle_notes
from optmech.problem.space import GivenRows
from optmech.reading.sealed import DESIGN, FORMATS, decoding, read_sealed
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.tables import distance_words

_FORM = FORMATS[DESIGN]
_WITNESS = {"plans", "costs"}
_OUTER = _FORM.rare
"""Files have it where cells of the secrets prove the bound."""
_STATED = "said by the file, not checked: "


def encode(design: Design) -> dict[str, Any]:
    """The object of a design's file."""
    statement, certificate = design.problem.statement, design.certificate
    body = {
        "format": DESIGN,
        "problem": encode_problem(design.problem),
        "result": encode_result(design),
        "mechanism": None if design.exact is None else encode_numerators(design.exact),
        "multipliers": encode_multipliers(certificate.multipliers, statement),
    }
    if certificate.outer is not None:
        body[_OUTER] = encode_outer(certificate.outer)
    return body


def load_mechanism(path: str | Path) -> Mechanism:
    """The mechanism of a design's file, to sample from: every inequality is decided again, what was
    proved about its loss is not read. Raises as ``Design.load``; InfeasibleError where the design
    has none."""
    return _sampled(path)[0]


def rows_of_design(path: str | Path) -> GivenRows:
    """The rows of a design's file with its digest, to be kept in another design. Raises as
    ``load_mechanism``."""
    mechanism, digest = _sampled(path)
    return replace(GivenRows.of(mechanism), source=digest)


def _sampled(path: str | Path) -> tuple[Mechanism, str]:
    """The mechanism, and the digest of the file."""
    body = read_sealed(path, (DESIGN,), unread=("multipliers", _OUTER))
    remedy = _FORM.remedy
    digest = str(body.get("digest"))
    if body.get("mechanism") is None:
        return Design.load(path).mechanism, digest
    with decoding(str(path), remedy):
        require_keys(body, _FORM.keys, "file", optional=_OUTER)
        problem = decode_problem(body["problem"])
        statement = problem.statement
        exact = decode_numerators(body["mechanism"], statement)
        broken = [c for c in check_exact(statement, exact) if not c.passed]
    if broken:
        said = f"{broken[0].name}: {broken[0].detail}"
        raise VerificationError(said, where=path, remedy=remedy)
    return mechanism_of(problem, exact), digest


def read_with_digest(path: str | Path) -> tuple[Design, str]:
    """A design from its file, with the digest of the file. Raises as ``Design.load``."""
    body = read_sealed(path, Design.formats)
    return Design.of_body(body, str(path)), str(body["digest"])


def _examine_infeasible(design: Design, path: str) -> CheckReport:
    nan = math.nan
    unproved = "the file says that the problem is infeasible and has no proof of it"
    missing = [] if design.reason else [unproved]
    outer = design.certificate.outer
    if outer is not None and not refuted(design.problem, outer):
        missing.append("the file has a proof for every mechanism that proves nothing")
    if any(map(math.isfinite, design.figures[:-1])):
        missing.append("the file has figures of a mechanism, and none is feasible")
    status = "failed" if missing else design.status
    return CheckReport(path, status, (), nan, nan, nan, nan, nan, tuple(missing), design.reason)


def _examine(design: Design, stated: StatedResult, path: str) -> CheckReport:
    if design.exact is None:
        return _examine_infeasible(design, path)
    statement = design.problem.statement
    # what the stored multipliers prove here; the file may claim less, never more
    bound = design.certificate.bound
    best = replace(bound, value=bound.proved)
    found = figures_of(statement, design.exact, best, design.certificate.multipliers)
    problem = design.problem
    whole = problem.mesh is None
    if not whole:
        from optmech.designs.outer import is_own

        if not is_own(problem):
            outer = design.certificate.outer
            found = found._replace(lower_bound=0.0 if outer is None else outer.bound.proved)
    sign = float(statement.sign)
    approximations = stated.approximations, design.approximations
    one = statement.target_factors is None and statement.survey is None and whole
    # where the loss is what is bounded there is one bound
    same = design.lower_bound if one else design.bound
    return report_on(
        path,
        design.certificate.checks,
        [
            Claim("objective", design.objective, found.objective),
            Claim("loss", design.loss, found.loss),
            bounded("bound", design.bound, found.bound, sign),
            Claim("bound beside the lower bound", design.bound, same),
            bounded("lower bound", design.lower_bound, found.lower_bound),
            *claims_of(*approximations, sign),
        ],
        stated.status,
        design.figures._replace(objective=found.objective, loss=found.loss),
        notes=about_bounds(design)
        + threshold_notes(design)
        + _given(design.problem)
        + idle_notes(design.problem.constraints, design.problem.space, statement.families),
        total_gap=None if whole else relative_gap(found.loss, design.lower_bound),
        unit=unit_after(design.problem, design.problem.loss).strip(),
    )


def decode(body: dict[str, Any], where: str) -> tuple[Design, CheckReport]:
    """A design with everything computed that can be, and the verdict on every claim of the file."""
    require_keys(body, _FORM.keys, "file", optional=_OUTER)
    problem = decode_problem(body["problem"])
    statement = problem.statement
    written = body["mechanism"]
    exact = None if written is None else decode_numerators(written, statement)
    stated = decode_result(body["result"], exact is not None)
    multipliers = decode_multipliers(body["multipliers"], statement)
    if exact is not None:
        matrix = mechanism_of(problem, exact).matrix
        checks, reason = check_exact(statement, exact), _marked(stated.reason)
        notes = design_notes(problem, matrix)
        approximations = measure_approximations(problem, matrix)
        gap = relative_gap(statement.sign * stated.objective, statement.sign * stated.bound)
    outer = _decode_outer(body[_OUTER], problem) if _OUTER in body else None
    if exact is None:
        checks, notes, approximations, gap = (), problem.notes, (), math.nan
        # proved here, or empty
        reason = (
            closed_form_reason(statement)
            or support_reason(statement)
            or multiplier_reason(statement, multipliers)
        )
        reason = reason and infeasible_words(problem, reason, outer)
    bound = lower_bound(statement, multipliers)
    if outer is not None and problem.mesh is None and outer.bound.proved > bound.value:
        bound = Bound(outer.bound.proved, 0.0, outer.bound.proved)
    # what follows from the file's problem, and what else the file says, marked as that
    others = (_marked(note) for note in stated.notes if note not in notes)
    design = Design(
        problem=problem,
        exact=exact,
        figures=Figures(*stated.figures, gap),
        certificate=Certificate(checks, multipliers, bound, outer),
        engine=stated.engine,
        engine_reason=stated.engine_reason,
        seconds=stated.seconds,
        reason=reason,
        notes=(*notes, *others),
        approximations=approximations,
        rounding_cost=stated.rounding_cost,
    )
    return design, _examine(design, stated, where)


def _marked(text: str) -> str:
    """A sentence of the file as one; none where it says nothing."""
    return text if not text or text.startswith(_STATED) else _STATED + text


def _given(problem: Problem) -> tuple[str, ...]:
    """Which distances were not computed again."""
    stated: list[tuple[str, object]] = [("objective", problem.objective)]
    stated += [(f"constraints[{k}]", c) for k, c in enumerate(problem.constraints)]
    found = []
    for where, part in stated:
        distance = getattr(part, "distance", None)
        adjacency = getattr(part, "adjacency", None)
        if isinstance(adjacency, tuple) and callable(adjacency[0]):
            distance = adjacency[0]
        if distance is not None and distance_words(distance).startswith("given"):
            found.append(f"{where}: the distance is {distance_words(distance)}")
    return tuple(found)


def _decode_outer(plain: Any, problem: Problem) -> OuterProof:
    """The proof of a bound by a coarser problem: cells, and multipliers of the problem over them,
    with what proves its numbers where the file has that."""
    from optmech.designs import outer

    network, count = outer.network_of(problem) is not None, len(problem.secrets)
    cells, witness, more = plain["cells"], None, _WITNESS & plain.keys()
    require_keys(plain, {"cells", "multipliers"} | (_WITNESS if more else set()), _OUTER)
    reason = ""
    if not network and problem.statement.spread is None:
        reason = outer.refusal(problem.statement) or ("has no cells" if cells is None else "")
    elif (network and cells is not None) or (more and cells is None):
        reason = "proves numbers of cells that there are not"
    elif cells is not None and not outer.has_outer(problem):
        reason = "so many places in degrees have no bound by cells"
    if reason:
        raise ProblemError(reason, where=_OUTER)
    if cells is not None:
        cells = np.array(listing(within(_OUTER, 0, count - 1), count).read(cells))
        coarse = outer.Coarsening.of(problem)
        if more:
            from optmech.reductions.witness import read_witness

            witness = read_witness(plain, coarse.members(cells))
        statement = coarse.over(cells, witness).statement
    elif outer.is_large(problem):
        statement = outer.over_segments(problem)
    elif network:
        statement = (outer.outer_network(problem) or problem).statement
    else:
        statement = outer.over_places(problem).statement
    return OuterProof(
        cells, statement, decode_multipliers(plain["multipliers"], statement), witness
    )
