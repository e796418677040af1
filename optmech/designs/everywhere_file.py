"""The file of a design that is private at every point: one JSON document with the problem and its
mesh, the rows of the vertices, and the multipliers of both bounds, behind a digest."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.storage import compressed, write_atomically
from optmech.certificate import Multipliers, lower_bound
from optmech.certificate.check import CheckReport
from optmech.certificate.mesh_program import MOST_BITS, MeshMultipliers
from optmech.certificate.objective import relative_gap, status_faults
from optmech.designs.encoding import (
    OUTER,
    decode_multipliers,
    decode_numerators,
    decode_outer,
    decode_problem,
    encode_multipliers,
    encode_numerators,
    encode_outer,
    encode_problem,
)
from optmech.designs.everywhere import (
    EverywhereDesign,
    OuterProof,
    checks_of,
    figures_of,
    gradient_in,
    program_of,
)
from optmech.designs.outer import has_outer, outer_problem
from optmech.errors import ProblemError, VerificationError
from optmech.exact.checked import require_keys
from optmech.mesh import Mesh
from optmech.problem import Problem
from optmech.problem.everywhere import gradient_of, over_places
from optmech.reading.sealed import EVERYWHERE, decoding, read_sealed, written

Plain = Any
_KEYS = {"digest", "format", "problem", "result", "mechanism", "multipliers", "outer"}
_FIGURES = ("loss", "bound", "lower_bound", "seconds")
_TEXTS = ("engine", "engine_reason", "reason")
_REWRITE = "Solve the problem again and save the design"
_MOST = 2**63
_LONG = 2**20
"""Bytes of a document above which its long lists are not written as text."""
_OWN_WORDS = "said by the file, not checked: "


def save_everywhere(design: EverywhereDesign, path: str | Path) -> None:
    """Write a design; raises ProblemError where labels cannot be written or the path cannot."""
    write_atomically(path, compressed(path, encode_everywhere(design)))


def encode_everywhere(design: EverywhereDesign) -> bytes:
    """The content of a design's file."""
    body = {
        "format": EVERYWHERE,
        "problem": encode_problem(design.problem),
        "result": {
            "status": design.status,
            **{name: getattr(design, name) for name in (*_FIGURES, *_TEXTS)},
            "notes": list(design.notes),
        },
        "mechanism": encode_numerators(design.exact),
        "multipliers": _vectors(design),
        "outer": None if design.outer is None else encode_outer(design.outer),
    }
    return written(body, _LONG)


def _vectors(design: EverywhereDesign) -> Plain:
    """The multipliers of the promise, and those of what stands beside it, if something does."""
    given = design.multipliers
    out: Plain = {"bits": given.bits, "vectors": [_sparse(part) for part in given.vectors]}
    statement = over_places(design.problem.statement)
    if statement.families:
        out["joint"] = encode_multipliers(design.joint, statement)
    return out


def _sparse(part: tuple[tuple[int, ...], ...]) -> Plain:
    """The reports of a triangle with vectors other than zero, and these."""
    kept = [o for o, vectors in enumerate(part) if any(vectors)]
    return [kept, [list(part[o]) for o in kept]]


def load_everywhere(path: str | Path) -> EverywhereDesign:
    """Read a design and check it again.

    Raises
    ------
    ProblemError
        If the file cannot be read or is not one of this format.
    VerificationError
        If it was altered, or does not hold what it claims.
    """
    return decode_everywhere(read_sealed(path, (EVERYWHERE,), _REWRITE), str(path))


def decode_everywhere(body: dict[str, Any], where: str) -> EverywhereDesign:
    """As ``load_everywhere``, from a file's content; ``where`` names it in messages."""
    claimed = _decode(body, where)
    report = _examined(claimed, where)
    if not report.passed:
        raise VerificationError(report.faults[0], where=where, remedy=_REWRITE)
    return claimed.design


def examine_everywhere(body: dict[str, Any], path: str) -> CheckReport:
    """Every claim of a file, recomputed from its numbers."""
    return _examined(_decode(body, path), path)


@dataclass(frozen=True)
class _Claimed:
    """A design as its file has it, and what follows from the file's numbers."""

    design: EverywhereDesign
    status: str
    loss: float
    bound: float
    lower_bound: float


def _examined(claimed: _Claimed, path: str) -> CheckReport:
    design = claimed.design
    faults = [f"{check.name}: {check.detail}" for check in design.checks if not check.passed]
    if design.loss != claimed.loss:
        faults.append(f"loss is {design.loss!r} in the file and {claimed.loss!r} recomputed")
    # the file may claim less than its multipliers prove, never more
    for name in ("bound", "lower_bound"):
        stated, proved = getattr(design, name), getattr(claimed, name)
        if stated > proved:
            faults.append(f"{name} is {stated!r} in the file and {proved!r} recomputed")
    faults += status_faults(claimed.status, design.gap)
    return CheckReport(
        path=path,
        status="failed" if faults else design.status,
        checks=design.checks,
        objective=claimed.loss,
        bound=design.bound,
        gap=design.gap,
        loss=claimed.loss,
        lower_bound=design.lower_bound,
        faults=tuple(faults),
        reason=design.reason,
        notes=about_bounds(design),
    )


def about_bounds(design: EverywhereDesign) -> tuple[str, ...]:
    """What gap and lower bound are about, in words."""
    first = (
        f"the gap of {design.gap:.2g} is to {design.bound:.6g}, proved for all mechanisms that are "
        f"{form_of(design.mesh)} in every triangle of the mesh"
    )
    others = [f"constraints[{k}]" for k in range(len(design.problem.constraints))]
    others.pop(design.gradient.index)
    beside = f" and satisfies {', '.join(others)}" if others else ""
    if beside:
        first += " and satisfy the other constraints"
    if design.outer is None:
        return first, "no lower bound was looked for that holds for every mechanism"
    cells = design.outer.cells
    what = "the places of the prior"
    if cells is not None:
        what = f"{len(np.unique(cells))} cells of the {len(cells):,} places of the prior"
        beside = f", whether it satisfies {', '.join(others)} or not" if others else ""
    return (
        first,
        f"the lower bound of {design.lower_bound:.6g} holds for every mechanism that is private at "
        f"every point{beside}, by {what}: the loss is at most {design.total_gap:.2g} of itself "
        "above it",
    )


def _decode(body: dict[str, Any], path: str) -> _Claimed:
    with decoding(path, _REWRITE):
        require_keys(body, _KEYS, "file")
        problem = decode_problem(body["problem"])
        if gradient_of(problem.statement.families) is None:
            raise ProblemError("promises nothing at every point", where="problem")
        program = program_of(problem)
        reports = len(problem.observables)
        exact = decode_numerators(body["mechanism"], program.mesh.rows, reports)
        places = over_places(problem.statement)
        keys = {"bits", "vectors", *(["joint"] if places.families else [])}
        require_keys(body["multipliers"], keys, "multipliers")
        multipliers = _decode_vectors(body["multipliers"], program.mesh.control.shape, reports)
        joint = Multipliers()
        if places.families:
            joint = decode_multipliers(body["multipliers"]["joint"], places)
        stated = _result(body["result"])
        outer, proved = _decode_outer(body["outer"], problem)
        loss, bound, _ = figures_of(problem, exact, multipliers, joint)
        checks = checks_of(problem, exact)
        design = EverywhereDesign(
            problem=problem,
            exact=exact,
            loss=stated["loss"],
            bound=stated["bound"],
            lower_bound=stated["lower_bound"],
            gap=relative_gap(stated["loss"], stated["bound"]),
            verified=all(check.passed for check in checks),
            checks=checks,
            multipliers=multipliers,
            outer=outer,
            engine=stated["engine"],
            engine_reason=stated["engine_reason"],
            seconds=stated["seconds"],
            reason=_marked(stated["reason"]),
            notes=tuple(map(_marked, stated["notes"])),
            joint=joint,
        )
        return _Claimed(design, stated["status"], loss, bound, proved)


def _marked(text: str) -> str:
    return text if not text or text.startswith(_OWN_WORDS) else _OWN_WORDS + text


def _result(plain: Plain) -> dict[str, Any]:
    """The claims, of the right types."""
    require_keys(plain, {"status", "notes", *_FIGURES, *_TEXTS}, "result")
    if plain["status"] not in ("optimal", "feasible"):
        raise ProblemError(f"status {plain['status']!r} is unknown", where="result")
    for name in _FIGURES:
        if type(plain[name]) is not float or not 0 <= plain[name] < np.inf:
            raise ProblemError(f"{name} is {plain[name]!r} and no number >= 0", where="result")
    texts = [plain[name] for name in _TEXTS]
    if type(plain["notes"]) is not list or not all(
        type(text) is str for text in (*texts, *plain["notes"])
    ):
        raise ProblemError("a text is missing", where="result")
    return dict(plain)


def form_of(mesh: Mesh) -> str:
    """What mechanisms are in a triangle."""
    if mesh.degree == 1:
        return "linear"
    return f"such polynomials of degree {mesh.degree}"


def _decode_vectors(plain: Plain, control: tuple[int, ...], reports: int) -> MeshMultipliers:
    bits, parts = plain["bits"], plain["vectors"]
    if type(bits) is not int or not 0 <= bits < MOST_BITS or len(parts) != control[0]:
        raise ProblemError("are not those of the mesh", where="multipliers")
    return MeshMultipliers(bits, tuple(_dense(part, 2 * control[1], reports) for part in parts))


def _dense(plain: Plain, numbers: int, reports: int) -> tuple[tuple[int, ...], ...]:
    kept, vectors = plain
    out = [(0,) * numbers] * reports
    before = -1
    if len(kept) != len(vectors):
        raise ProblemError("lists of different lengths", where="multipliers")
    for o, vector in zip(kept, vectors, strict=True):
        whole = len(vector) == numbers and all(type(v) is int and abs(v) < _MOST for v in vector)
        if type(o) is not int or not before < o < reports or not whole or not any(vector):
            raise ProblemError(f"{o!r}: {vector!r} are no vectors", where="multipliers")
        out[o], before = tuple(vector), o
    return tuple(out)


def _decode_outer(plain: Plain, problem: Problem) -> tuple[OuterProof | None, float]:
    """The proof of the lower bound, and what it proves."""
    if plain is None:
        return None, 0.0
    cells, gradient = _cells(plain["cells"], len(problem.secrets)), gradient_in(problem)
    if cells is None:
        require_keys(plain, OUTER, "outer")
        statement = outer_problem(problem, gradient, None).statement
        proof = OuterProof(None, statement, decode_multipliers(plain["multipliers"], statement))
    else:
        if not has_outer(problem, gradient):
            raise ProblemError("so many places in degrees have no bound by cells", where="outer")
        proof = decode_outer(
            plain, problem, cells, lambda found: outer_problem(problem, gradient, cells, found)
        )
    # all of it: what a file claims of it is ``claimable``, a little less, for other roundings' sake
    return proof, max(lower_bound(proof.statement, proof.multipliers).proved, 0.0)


def _cells(plain: Plain, count: int) -> Ints | None:
    if plain is None:
        return None
    if len(plain) != count or not all(type(c) is int and 0 <= c < count for c in plain):
        raise ProblemError(f"are not {count} numbers of cells", where="cells")
    return np.array(plain, dtype=np.int64)
