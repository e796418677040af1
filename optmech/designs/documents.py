"""Files of every kind: checked and loaded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optmech.certificate.check import CheckReport
from optmech.certificate.proved import Proved, examined
from optmech.reading.sealed import packed_reader, read_sealed
from optmech.spaces.arguments import checked_arguments


@checked_arguments
def check(path: str | Path) -> CheckReport:
    """Recompute every inequality, the value and the bound from a saved file alone: a design, a
    family of coupling mechanisms, or noise; or a packed file for the whole earth.

    Raises ProblemError if the file cannot be read, or is packed from a design, which
    ``om.devices.check_packed`` takes with it; VerificationError if it is altered or malformed; what
    merely does not hold is reported in ``faults``.

    Examples
    --------
    >>> coin = om.mechanisms.optimal_target([[1, 0], [0, 1]], [[0, 1], [1, 0]])
    >>> coin.save("coin.json")
    >>> om.check("coin.json").passed
    True
    """
    packed = packed_reader(path)
    if packed is not None:
        report: CheckReport = packed.check(path)
        return report
    return examined(read_sealed(path, Proved.formats), str(path))[1]


@checked_arguments
def load(path: str | Path) -> Proved | Any:
    """What a file holds, of whichever kind it is, everything that it claims proved again.

    A design, a family of coupling mechanisms or noise is read as by its own ``load``, a packed
    mechanism as by ``om.devices.load_packed``: such a file has no proof of its own, see
    ``om.devices.check_packed``. A file for the whole earth has one, and is read as by
    ``om.devices.Earth.load``.

    Raises
    ------
    ProblemError
        If the file cannot be read, is of none of these kinds, or of one that is not installed.
    VerificationError
        If it was altered, or does not hold what it claims.

    Examples
    --------
    >>> coin = om.mechanisms.optimal_target([[1, 0], [0, 1]], [[0, 1], [1, 0]])
    >>> coin.save("coin.json")
    >>> om.load("coin.json").losses == coin.losses
    True
    """
    packed = packed_reader(path)
    return Proved.load(path) if packed is None else packed.load(path)
