"""The design file: one JSON document with the problem, the matrix, the multipliers, a digest.

Documents above a mebibyte hold their long lists as bytes (format 3), others as text (format 2).

Self-contained (distances are written as matrices), inspectable, and loaded without executing
anything. Floats are written so that they read back bit by bit.
"""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optmech.base.arrays import Floats, Ints
from optmech.certificate import Bound, check_exact, lower_bound
from optmech.certificate.bound import closed_form_reason, multiplier_reason, support_reason
from optmech.certificate.check import CheckReport
from optmech.certificate.claims import Claim, bounded, proved, report_on
from optmech.certificate.objective import Figures, figures_of, relative_gap
from optmech.designs.approximation import disagreements, measure_approximations
from optmech.designs.design import Certificate, Design, OuterProof, mechanism_of, plain
from optmech.designs.encoding import (
    RESULT,
    StatedResult,
    decode_multipliers,
    decode_numerators,
    decode_outer,
    decode_problem,
    decode_result,
    encode_multipliers,
    encode_numerators,
    encode_outer,
    encode_problem,
)
from optmech.designs.notes import about_bounds, design_notes
from optmech.errors import ProblemError, VerificationError
from optmech.exact.checked import require_keys
from optmech.problem import Problem
from optmech.problem.constraint import idle_notes
from optmech.problem.given_rows import GivenRows
from optmech.problem.regions import gradient_of
from optmech.reading.sealed import (
    DESIGN,
    decoding,
    parse_sealed,
    read_sealed,
    written,
)
from optmech.spaces.mechanism import Mechanism
from optmech.spaces.tabulated import distance_words

if TYPE_CHECKING:
    from optmech.reductions.witness import Witness

_KEYS = {"digest", "format", "problem", "result", "mechanism", "multipliers"}
_LONG = 2**20
"""Bytes of a document above which its long lists are not written as text."""
_OUTER = "outer"
"""Files have it where cells of the secrets prove the bound."""
_STATED = "said by the file, not checked: "
REWRITE = "Solve the problem again and save the design"


def encode_design(design: Design) -> bytes:
    """The content of a design's file; raises ProblemError where labels cannot be written."""
    body = {
        "format": DESIGN,
        "problem": encode_problem(design.problem),
        "result": {name: plain(getattr(design, name)) for name in RESULT},
        "mechanism": None if design.exact is None else encode_numerators(design.exact),
        "multipliers": encode_multipliers(design.certificate.multipliers, design.problem.statement),
    }
    outer = design.certificate.outer
    if outer is not None:
        body[_OUTER] = encode_outer(outer)
    try:
        return written(body, _LONG)
    except (TypeError, ValueError) as error:
        # fields of constraints of other packages
        raise ProblemError(f"cannot be written to a file: {error}", where="constraints") from error


def load_mechanism(path: str | Path) -> Mechanism:
    """The mechanism of a design's file, to sample from: every inequality is decided again, what was
    proved about its loss is not read. Raises as ``load_design``; InfeasibleError where the design
    has none."""
    return _sampled(path)[0]


def rows_of_design(path: str | Path) -> GivenRows:
    """The rows of a design's file with its digest, to be kept in another design. Raises as
    ``load_mechanism``."""
    mechanism, digest = _sampled(path)
    return replace(GivenRows.of(mechanism), source=digest)


def _sampled(path: str | Path) -> tuple[Mechanism, str]:
    """The mechanism, and the digest of the file."""
    body = read_sealed(path, (DESIGN,), REWRITE, unread=("multipliers", _OUTER))
    digest = str(body.get("digest"))
    if body.get("mechanism") is None:
        return load_design(path).mechanism, digest
    with decoding(str(path), REWRITE):
        require_keys(body, _KEYS, "file", optional=_OUTER)
        problem = decode_problem(body["problem"])
        statement = problem.statement
        exact = decode_numerators(body["mechanism"], statement.rows, statement.observables)
        broken = [c for c in check_exact(statement, exact) if not c.passed]
    if broken:
        said = f"{broken[0].name}: {broken[0].detail}"
        raise VerificationError(said, where=str(path), remedy=REWRITE)
    return mechanism_of(problem, exact), digest


def read_with_digest(path: str | Path) -> tuple[Design, str]:
    """As ``load_design``, with the digest of the file."""
    body = read_sealed(path, (DESIGN,), REWRITE)
    return proved(decode_document, body, str(path), REWRITE), str(body["digest"])


def load_design(path: str | Path) -> Design:
    """Read a design and check it again. Raises ProblemError if the file cannot be read or is not a
    design file; VerificationError if it was altered, or does not hold what it claims."""
    return read_with_digest(path)[0]


def decode_design(content: bytes, where: str) -> Design:
    """As ``load_design``, from a file's content; ``where`` names it in messages."""
    body = parse_sealed(content, where, (DESIGN,), REWRITE)
    return proved(decode_document, body, where, REWRITE)


def decode_document(body: dict[str, Any], where: str) -> tuple[Design, CheckReport]:
    """A design from a file's content, and every claim of it recomputed."""
    design, stated = _decode(body, where)
    return design, _examine(design, stated, where)


def _proved_outside(certificate: Certificate) -> float:
    """What the coarser problem proves here; 0 without one."""
    return 0.0 if certificate.outer is None else certificate.outer.bound.proved


def _examine_infeasible(design: Design, path: str) -> CheckReport:
    nan = float("nan")
    unproved = "the file says that the problem is infeasible and has no proof of it"
    missing = [] if design.reason else [unproved]
    figures = (design.objective, design.bound, design.loss, design.lower_bound)
    if any(map(math.isfinite, figures)):
        missing.append("the file has figures of a mechanism, and none is feasible")
    status = "failed" if missing else design.status
    return CheckReport(path, status, (), nan, nan, nan, nan, nan, tuple(missing), design.reason)


def _examine(design: Design, stated: StatedResult, path: str) -> CheckReport:
    if design.exact is None:
        return _examine_infeasible(design, path)
    statement = design.problem.statement
    checks = design.certificate.checks
    # what the stored multipliers prove here; the file may claim less, never more
    bound = design.certificate.bound
    best = replace(bound, value=bound.proved)
    found = figures_of(statement, design.exact, best, design.certificate.multipliers)
    if statement.spread is not None:
        found = found._replace(lower_bound=max(0.0, _proved_outside(design.certificate)))
    maximised = statement.objective == "maximize_distortion"
    others = disagreements(stated.approximations, design.approximations, larger_is_better=maximised)
    one = statement.target_factors is None and statement.spread is None
    if one and design.bound != design.lower_bound:
        others.append(f"the bound is {design.bound!r} and the lower bound {design.lower_bound!r}")
    return report_on(
        path,
        checks,
        [
            Claim("objective", design.objective, found.objective),
            Claim("loss", design.loss, found.loss),
            bounded("bound", design.bound, found.bound, -1.0 if maximised else 1.0),
            bounded("lower bound", design.lower_bound, found.lower_bound),
        ],
        stated.status,
        Figures(found.objective, design.bound, found.loss, design.lower_bound, design.gap),
        others=others,
        notes=about_bounds(design)
        + _given(design.problem)
        + idle_notes(design.problem.constraints, design.problem.space, statement.families),
    )


def _decode(body: dict[str, Any], path: str) -> tuple[Design, StatedResult]:
    """A design with everything computed that can be, and what its file says."""
    with decoding(path, REWRITE):
        require_keys(body, _KEYS, "file", optional=_OUTER)
        problem = decode_problem(body["problem"])
        statement = problem.statement
        exact = None
        if body["mechanism"] is not None:
            exact = decode_numerators(body["mechanism"], statement.rows, statement.observables)
        stated = decode_result(body["result"], exact is not None)
        multipliers = decode_multipliers(body["multipliers"], statement)
        checks = () if exact is None else check_exact(statement, exact)
        reason = _marked(stated.reason)
        if exact is None:  # proved here, or empty
            reason = (
                closed_form_reason(statement)
                or support_reason(statement)
                or multiplier_reason(statement, multipliers)
            )
        bound, outer = lower_bound(statement, multipliers), None
        if _OUTER in body:
            outer = _decode_outer(body[_OUTER], problem)
            if statement.spread is None and outer.bound.proved > bound.value:
                bound = Bound(outer.bound.proved, 0.0, outer.bound.proved)
        sign = -1.0 if statement.objective == "maximize_distortion" else 1.0
        matrix = None if exact is None else mechanism_of(problem, exact).matrix
        design = Design(
            problem=problem,
            exact=exact,
            objective=stated.objective,
            bound=stated.bound,
            loss=stated.loss,
            lower_bound=stated.lower_bound,
            gap=relative_gap(sign * stated.objective, sign * stated.bound),
            verified=bool(checks) and all(check.passed for check in checks),
            certificate=Certificate(checks, multipliers, bound, outer),
            engine=stated.engine,
            engine_reason=stated.engine_reason,
            seconds=stated.seconds,
            reason=reason,
            notes=_notes(problem, matrix, stated.notes),
            approximations=() if matrix is None else measure_approximations(problem, matrix),
            rounding_cost=stated.rounding_cost,
        )
        return design, stated


def _notes(problem: Problem, matrix: Floats | None, stated: tuple[str, ...]) -> tuple[str, ...]:
    """What follows from the file's problem, and what else the file says, marked as that."""
    found = problem.notes if matrix is None else design_notes(problem, matrix)
    others = (note for note in stated if note not in found)
    return found + tuple(map(_marked, others))


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
    """The proof of a bound by a coarser problem."""
    gradient = gradient_of(problem.statement.families)
    if gradient is None:
        from optmech.designs.resolution import problem_of_cells, refusal

        reason = refusal(problem.statement)
    else:
        from optmech.designs.outer import has_outer, outer_problem

        large = plain["cells"] is not None and not has_outer(problem, gradient)
        reason = "so many places in degrees have no bound by cells" if large else ""
    if reason:
        raise ProblemError(reason, where=_OUTER)

    def made(cells: Ints | None, witness: Witness | None) -> Problem:
        if gradient is not None:
            return outer_problem(problem, gradient, cells, witness)
        if cells is None:
            raise ProblemError("has no cells", where=_OUTER)
        return problem_of_cells(problem, cells, witness)

    return decode_outer(plain, problem, made)
