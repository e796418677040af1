"""From a design to a packed mechanism, and the proof that one is what its design promises."""

from __future__ import annotations

import math
import re
from datetime import date
from pathlib import Path

from optmech.base.storage import refuse_unwritable
from optmech.certificate import check_exact, values
from optmech.certificate.check import CheckReport
from optmech.certificate.objective import relative_gap
from optmech.designs.design import Design, unit_after
from optmech.designs.notes import about_bounds
from optmech.errors import ProblemError
from optmech.exact.arguments import float_or_nan
from optmech.spaces.arguments import checked_arguments
from optmech_devices.packed.documents import load_packed, mechanism_of
from optmech_devices.packed.file import BITS, decode_parts, encode_parts, write_file
from optmech_devices.packed.header import OUTSIDE, Accuracy, Beliefs, differing
from optmech_devices.packed.mechanism import PackedMechanism
from optmech_devices.packed.packing import Packing
from optmech_devices.packed.sentences import NOT_CHECKED

MAX_LOSS = 0.01
"""Allowed relative increase of the loss where nothing is said."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?")


@checked_arguments
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
    (docs/theory/files.md, "Packing"); the file is specified in docs/packed.md.

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
        nearest place, or of the nearest point of the region.
    sign:
        A PEM file with an Ed25519 private key (needs the extra ``sign``).

    Returns the mechanism as it was written. Raises ProblemError on bad arguments, a design without
    a mechanism, and where so few bits cost more than allowed; the message has the figures.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> packed = om.pack(om.solve(problem), "cells.omm")
    >>> import pathlib
    >>> pathlib.Path("cells.omm").stat().st_size < 2000  # bytes
    True
    >>> round(om.measures.epsilon(packed, km), 4) <= 1  # the same ε
    True
    """
    if bits not in BITS or type(bits) is not int:
        raise ProblemError(f"{bits!r} is none of {', '.join(map(str, BITS))}", where="bits")
    if outside not in OUTSIDE:
        raise ProblemError(f"{outside!r} is neither refuse nor nearest", where="outside")
    if prior_date is not None and not _is_date(prior_date):
        raise ProblemError(
            f"{prior_date!r} is no date", where="prior_date", remedy="Give YYYY-MM or YYYY-MM-DD"
        )
    allowed = share(max_loss, "max_loss")
    refuse_unwritable(path)
    content, found = packed_content(
        design, bits, allowed, prior_date=prior_date, outside=outside, where=str(path)
    )
    write_file(path, content, sign)
    return found


def _is_date(text: str) -> bool:
    """Whether a text is a month, or a day that there was."""
    try:
        date.fromisoformat(text if len(text) > len("YYYY-MM") else f"{text}-01")
    except (TypeError, ValueError):
        return False
    return _DATE.fullmatch(text) is not None


def packed_content(
    design: Design,
    bits: int,
    allowed: float,
    *,
    prior_date: str | None = None,
    outside: str,
    where: str = "",
) -> tuple[bytes, PackedMechanism]:
    """The plain file of a design, not written, and the mechanism that it is read as; ``allowed``
    is the increase of the objective relative to the design's. Raises ProblemError as ``pack``."""
    if design.exact is None:
        raise ProblemError(
            "has no table of probabilities to pack",
            where="design",
            remedy="Pack a feasible design, on finitely many secrets or on a mesh",
        )
    packing = Packing(design)
    released = packing.rounded(bits)
    increase = math.inf if released is None else packing.increase(released)
    if released is None or increase > allowed:
        raise _refusal(packing, bits, increase, allowed)
    content = encode_parts(packing.parts(released, prior_date, outside))
    found = mechanism_of(decode_parts(content, where))
    if found.rows.rows != released.rows:
        raise ProblemError("was not written as it was released", where=where)
    return content, found


@checked_arguments
def check_packed(
    path: str | Path, design: Design, *, signer: str | Path | None = None
) -> CheckReport:
    """Prove that a packed file is what its ``design`` promises: every inequality of the problem on
    the packed numbers, the design's digest, and all that follows from the design in the header.

    Raises ProblemError or VerificationError where the file cannot be read as ``load_packed`` does.

    Examples
    --------
    >>> cells = om.Grid(2, 2, unit="km")
    >>> km = om.distances.euclidean()
    >>> problem = om.Problem(om.Prior.uniform(cells), km, constraints=[om.MetricPrivacy(1, km)])
    >>> design = om.solve(problem)
    >>> _ = om.pack(design, "cells.omm")
    >>> om.devices.check_packed("cells.omm", design).passed
    True
    """
    packed = load_packed(path, signer=signer)
    packing, said = Packing(design), packed.header
    faults = packing.differs(packed)
    if faults:
        nan = math.nan
        return CheckReport(str(path), "failed", (), nan, nan, nan, nan, nan, tuple(faults))
    numbers = packed.rows
    checks = check_exact(packing.statement, numbers)
    faults += [f"{check.name}: {check.detail}" for check in checks if not check.passed]
    columns = packed._parts.table.columns
    date = None if said.prior is None else said.prior.date
    proper = packing.header(numbers, columns, date, said.outside)
    for name in differing(said, proper, (Accuracy, Beliefs, float)):
        if name != "title":
            faults.append(f"{name} in the file is not that of the design")
    sign = packing.statement.sign
    loss = values.rounded_up(packing.expected(numbers))
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
        notes=(
            *about_bounds(design, loss),
            f"not checked, as they are the file's own words: {', '.join(NOT_CHECKED)}",
        ),
        total_gap=None if design.mesh is None else relative_gap(loss, design.lower_bound),
        unit=unit_after(design.problem, design.problem.loss).strip(),
    )


def share(value: float | str, where: str) -> float:
    """A share such as 0.001 or "0.1%". Raises ProblemError on anything else."""
    text = str(value).strip()
    found = float_or_nan(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    if not (math.isfinite(found) and found >= 0) or isinstance(value, bool):
        raise ProblemError(
            f"{text[:40]!r} is no share",
            where=where,
            remedy='Give a share >= 0 such as 0.001 or "0.1%"',
        )
    return found


def _refusal(packing: Packing, bits: int, increase: float, allowed: float) -> ProblemError:
    found = []
    for more in BITS[BITS.index(bits) + 1 :]:
        released = packing.rounded(more)
        if released is not None:
            cost = packing.increase(released)
            found.append(f"{more} bits cost {cost:.3g}")
            if cost <= allowed:
                break
    held = packing.statement.held
    if held is not None and held.exact.bits > bits:
        raise ProblemError(
            f"the rows held fixed are whole numbers over 2^{held.exact.bits}, which {bits} bits "
            "cannot keep",
            where="bits",
            remedy="Keep the rows of the packed mechanism instead: "
            "om.redesign(om.devices.load_packed(…), …), or optmech redesign city.omm …",
        )
    what = "no whole numbers that keep every inequality were found"
    if increase < math.inf:
        what = f"the loss grows by {increase:.3g} of itself, more than the {allowed:.3g} allowed"
    return ProblemError(
        f"at {bits} bits {'; '.join([what, *found])}",
        where="bits",
        remedy="Give more bits or a larger allowance" if found else "Sample from the design itself",
    )
