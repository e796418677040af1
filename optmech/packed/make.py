"""From a design to a packed mechanism, and the proof that one is what its design promises."""

from __future__ import annotations

import hashlib
import json
import math
import re
from fractions import Fraction
from pathlib import Path

import numpy as np

from optmech.base.arrays import Floats
from optmech.base.storage import refuse_unwritable, write_atomically
from optmech.certificate import check_exact, values
from optmech.certificate.check import CheckReport
from optmech.certificate.objective import relative_gap
from optmech.designs.design import Design
from optmech.designs.encoding import encode_numerators, encode_problem
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators
from optmech.packed.cbor import encode
from optmech.packed.file import (
    BITS,
    OUTSIDE,
    Accuracy,
    Header,
    Loss,
    Parts,
    decode_parts,
    encode_parts,
)
from optmech.packed.load import PackedMechanism, load_packed
from optmech.packed.places import encode_places, reach_of
from optmech.packed.words import DOES_NOT_PROMISE, constraints_of, region_of
from optmech.repair.few_bits import few_bits
from optmech.repair.release import Released
from optmech.spaces.domain import Domain, Grid, great_circle

MAX_LOSS = 0.01
"""Allowed relative increase of the loss where nothing is said."""
QUANTILE = 0.95
"""Of the accuracy that goes with a report; what the Geolocation API means by the word."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?")
_METRES = 1000.0
_COSINES = 1e-9


def pack(
    design: Design,
    path: str | Path,
    bits: int = 24,
    *,
    max_loss: float | str = MAX_LOSS,
    prior_date: str | None = None,
    outside: str = "refuse",
    sign: str | Path | None = None,
) -> PackedMechanism:
    """Release a design again as whole numbers over 2^bits, and write it as a packed file.

    Every inequality of the design's problem holds for the packed numbers exactly, at the same ε
    (docs/theory.md, "Packing"); the file is specified in docs/packed.md.

    Parameters
    ----------
    bits:
        16, 24, 32 or 48.
    max_loss:
        Allowed increase of the objective relative to the design's: 0.001 or "0.1%".
    prior_date:
        When the prior's data are from, as YYYY-MM or YYYY-MM-DD; goes into the header.
    outside:
        What a position outside the region gets: ``"refuse"`` no report, ``"nearest"`` that of the
        nearest place.
    sign:
        A PEM file with an Ed25519 private key (``pip install optmech[sign]``).

    Returns the mechanism as it was written. Raises ProblemError on bad arguments, a design without
    a mechanism, and where so few bits cost more than allowed; the message has the figures.
    """
    if bits not in BITS or type(bits) is not int:
        raise ProblemError(f"{bits!r} is none of {', '.join(map(str, BITS))}", where="bits")
    if outside not in OUTSIDE:
        raise ProblemError(f"{outside!r} is neither refuse nor nearest", where="outside")
    if prior_date is not None and not _DATE.fullmatch(prior_date):
        raise ProblemError(f"{prior_date!r} is no date", where="prior_date", remedy="Give YYYY-MM")
    allowed = share(max_loss, "max_loss")
    refuse_unwritable(path)
    mechanism = getattr(design, "exact", None)
    if not isinstance(design, Design) or not isinstance(mechanism, Numerators):
        raise ProblemError(
            "has no table of probabilities to pack",
            where="design",
            remedy="Pack a feasible design on finitely many secrets",
        )
    released = few_bits(design.problem.statement, mechanism.matrix, bits)
    increase = math.inf if released is None else _increase(design, released.exact)
    if released is None or increase > allowed:
        raise _refusal(design, bits, increase, allowed)
    content = encode_parts(_parts(design, released, prior_date, outside))
    found = PackedMechanism(decode_parts(content, str(path)))
    if found.exact.rows != released.exact.rows:
        raise ProblemError("was not written as it was released", where=str(path))
    if sign is not None:
        from optmech.packed.signature import sign as signed

        content = signed(content, sign)
    write_atomically(path, content)
    return found


def check_packed(
    path: str | Path, design: Design, *, signer: str | Path | None = None
) -> CheckReport:
    """Prove that a packed file is what its ``design`` promises: every inequality of the problem on
    the packed numbers, the design's digest, and all that follows from the design in the header.

    Raises ProblemError or VerificationError where the file cannot be read as ``load_packed`` does.
    """
    packed = load_packed(path, signer=signer)
    problem, said = design.problem, packed.header
    faults = []
    for name, own, stated in (
        ("secrets", packed.secrets, problem.secrets),
        ("reports", packed.observables, problem.observables),
    ):
        if encode(encode_places(own)) != encode(encode_places(stated)):
            faults.append(f"the {name} are not those of the design")
    if faults:
        nan = math.nan
        return CheckReport(str(path), "failed", (), nan, nan, nan, nan, nan, tuple(faults))
    numbers = Numerators(packed.bits, packed.exact.rows)
    checks = check_exact(problem.statement, numbers)
    faults += [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    proper = _header(design, numbers, packed._parts.columns, said.prior_date, said.outside)
    for name, value in vars(proper).items():
        if name != "title" and not _agree(getattr(said, name), value):
            faults.append(f"{name.replace('_', ' ')} in the file is not that of the design")
    loss = values.rounded_up(_expected(design, numbers))
    sign = -1.0 if problem.statement.objective == "maximize_distortion" else 1.0
    return CheckReport(
        path=str(path),
        status="failed" if faults else "packed",
        checks=checks,
        objective=proper.loss.packed,
        bound=design.bound,
        gap=relative_gap(sign * proper.loss.packed, sign * design.bound),
        loss=loss,
        lower_bound=design.lower_bound,
        faults=tuple(faults),
    )


def design_digest(design: Design) -> str:
    """SHA-256 of a design's problem and mechanism, however its file is laid out."""
    assert design.exact is not None
    body = {
        "mechanism": encode_numerators(design.exact),
        "problem": encode_problem(design.problem),
    }
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _agree(said: object, proper: object) -> bool:
    """Whether two entries of headers are the same, lengths as far as cosines of machines are."""
    if isinstance(said, Accuracy) and isinstance(proper, Accuracy):
        same = said.quantile == proper.quantile and len(said.radius) == len(proper.radius)
        return same and bool(np.allclose(said.radius, proper.radius, rtol=_COSINES, atol=0))
    if isinstance(said, float) and isinstance(proper, float):
        return math.isclose(said, proper, rel_tol=_COSINES)
    return said == proper


def share(value: float | str, where: str) -> float:
    """A share such as 0.001 or "0.1%". Raises ProblemError on anything else."""
    remedy = 'Give a share >= 0 such as 0.001 or "0.1%"'
    text = str(value).strip()
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError as error:
        raise ProblemError(f"{text[:40]!r} is no share", where=where, remedy=remedy) from error
    if not (math.isfinite(found) and found >= 0) or isinstance(value, bool):
        raise ProblemError(f"{text[:40]!r} is no share", where=where, remedy=remedy)
    return found


def _parts(design: Design, released: Released, prior_date: str | None, outside: str) -> Parts:
    entries = np.array(released.exact.rows, dtype=np.uint64)
    columns = np.flatnonzero(entries.any(axis=0))
    numbers: dict[tuple[int, ...], int] = {}
    row_of = np.array([numbers.setdefault(row, len(numbers)) for row in released.exact.rows])
    first = np.unique(row_of, return_index=True)[1]
    return Parts(
        header=_header(design, released.exact, columns, prior_date, outside),
        secrets=design.problem.secrets,
        reports=design.problem.observables,
        bits=released.exact.bits,
        columns=columns,
        row_of=row_of,
        rows=entries[np.ix_(first, columns)],
    )


def _header(
    design: Design,
    released: Numerators,
    columns: np.ndarray[tuple[int], np.dtype[np.int64]],
    prior_date: str | None,
    outside: str,
) -> Header:
    """All that follows from a design and its packed numbers."""
    problem = design.problem
    constraints = constraints_of(problem)
    sign = -1 if problem.statement.objective == "maximize_distortion" else 1
    packed = values.rounded_up(values.objective(problem.statement, released))
    kind = "distortion of the best attack" if sign < 0 else str(problem.objective).replace("_", " ")
    return Header(
        title=problem.title,
        protects=tuple(f"{part['kind']}: {part['promise']}" for part in constraints),
        does_not_promise=DOES_NOT_PROMISE,
        constraints=constraints,
        region=region_of(problem.secrets),
        prior=f"entropy {problem.prior.entropy:.3f} bits over {len(problem.secrets)} places",
        prior_date=prior_date,
        loss=Loss(kind, float(design.objective), sign * packed, _increase(design, released)),
        design=design_digest(design),
        outside=outside,
        reach=reach_of(problem.secrets),
        accuracy=_accuracy(design, released.matrix[:, columns], columns),
    )


def _increase(design: Design, released: Numerators) -> float:
    """By how much the objective is worse than the design's, relatively, rounded up."""
    statement = design.problem.statement
    assert design.exact is not None
    before = values.objective(statement, design.exact)
    change = values.objective(statement, released) - before
    if before == 0:
        return 0.0 if change == 0 else math.copysign(math.inf, change)
    return values.rounded_up(change / abs(before))


def _expected(design: Design, released: Numerators) -> Fraction:
    """Expected loss, or the worst where that is minimised."""
    statement = design.problem.statement
    if statement.objective == "maximize_distortion":
        return values.expected(statement.prior, values.losses(statement.loss, released))
    return values.objective(statement, released)


def _refusal(design: Design, bits: int, increase: float, allowed: float) -> ProblemError:
    assert design.exact is not None
    found = []
    for more in BITS:
        if more > bits:
            released = few_bits(design.problem.statement, design.exact.matrix, more)
            if released is not None:
                cost = _increase(design, released.exact)
                found.append(f"{more} bits cost {cost:.3g}")
                if cost <= allowed:
                    break
    held = design.problem.statement.held
    if held is not None and held.exact.bits > bits:
        raise ProblemError(
            f"the rows held fixed are whole numbers over 2^{held.exact.bits}, which {bits} bits "
            "cannot keep",
            where="bits",
            remedy="Keep the rows of the packed mechanism instead: om.redesign(om.load_packed(…), "
            "…), or optmech redesign city.omm …",
        )
    what = "no whole numbers that keep every inequality were found"
    if increase < math.inf:
        what = f"the loss grows by {increase:.3g} of itself, more than the {allowed:.3g} allowed"
    return ProblemError(
        f"at {bits} bits {'; '.join([what, *found])}",
        where="bits",
        remedy="Give more bits or a larger allowance" if found else "Sample from the design itself",
    )


def _accuracy(
    design: Design, matrix: Floats, columns: np.ndarray[tuple[int], np.dtype[np.int64]]
) -> Accuracy | None:
    """Quantiles of the distance between secret and report under the posterior."""
    secrets, reports = design.problem.secrets, design.problem.observables
    if secrets.points is None or reports.points is None:
        return None
    if (secrets.coordinates, secrets.points.shape[1]) != (
        reports.coordinates,
        reports.points.shape[1],
    ):
        return None
    points, others = secrets.points[:, None], reports.points[None, columns]
    if secrets.coordinates == "lonlat":
        apart = _METRES * great_circle(points, others)
    else:
        apart = np.sqrt(((points - others) ** 2).sum(axis=2)) * _scale(secrets)
    joint = design.problem.prior.weights[:, None] * matrix
    radius = []
    for own, weight in zip(apart.T, joint.T, strict=True):
        order = np.argsort(own, kind="stable")
        reached = np.cumsum(weight[order])
        # a report that no likely secret makes may come from any
        place = int(np.searchsorted(reached, QUANTILE * reached[-1])) if reached[-1] else -1
        radius.append(float(own[order[min(place, len(own) - 1)]]) + _half_diagonal(secrets))
    return Accuracy(QUANTILE, tuple(radius))


def _scale(domain: Domain) -> float:
    return _METRES if isinstance(domain, Grid) and domain.bounds is not None else 1.0


def _half_diagonal(domain: Domain) -> float:
    """How far a position may be from the centre of its cell."""
    return math.hypot(*domain.cell) / 2 * _scale(domain) if isinstance(domain, Grid) else 0.0
