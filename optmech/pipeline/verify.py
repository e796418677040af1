"""Checking a saved file from that file alone, of whichever format it is."""

from __future__ import annotations

from pathlib import Path

from optmech.certificate.check import CheckReport
from optmech.designs.file import REWRITE, examine_design
from optmech.reading.sealed import DESIGN, FAMILY, NOISE, read_sealed


def check(path: str | Path) -> CheckReport:
    """Recompute every inequality, the value and the bound from a saved file alone: a design, or a
    family of coupling mechanisms, a mechanism for every point of a region, or noise.

    Raises ProblemError if the file cannot be read, VerificationError if it is altered or
    malformed; what merely does not hold is reported in ``faults``.
    """
    body = read_sealed(path, (DESIGN, FAMILY, NOISE), REWRITE)
    if body["format"] == FAMILY:
        from optmech.targets.file import examine_target

        return examine_target(body, str(path))
    if body["format"] == NOISE:
        from optmech.additive.file import examine_noise

        return examine_noise(body, str(path))
    return examine_design(body, str(path))
