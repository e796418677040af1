"""The kinds of files that are proved, and what reads each: one table for checking and loading."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optmech.certificate.check import CheckReport
from optmech.certificate.claims import proved
from optmech.designs.file import REWRITE, decode_document
from optmech.reading.sealed import DESIGN, FAMILY, NOISE, read_sealed
from optmech.spaces.arguments import checked_arguments

if TYPE_CHECKING:
    from optmech.additive.certified import ProvedNoise
    from optmech.designs.design import Design
    from optmech.mechanisms.targets.design import TargetDesign
    from optmech.packed.everywhere import PackedEverywhere
    from optmech.packed.load import PackedMechanism

    Proved = Design | TargetDesign | ProvedNoise

Reader = Callable[[dict[str, Any], str], tuple[Any, CheckReport]]
"""What is in a file's body, and the verdict on every claim of it."""


def _noise() -> tuple[Reader, str]:
    from optmech.additive import file

    return file.decode_noise, file.REWRITE


def _family() -> tuple[Reader, str]:
    from optmech.mechanisms.targets import file

    return file.decode_target, file.REWRITE


_READERS: dict[str, Callable[[], tuple[Reader, str]]] = {
    DESIGN: lambda: (decode_document, REWRITE),
    FAMILY: _family,
    NOISE: _noise,
}


@checked_arguments
def check(path: str | Path) -> CheckReport:
    """Recompute every inequality, the value and the bound from a saved file alone: a design, a
    family of coupling mechanisms, or noise.

    Raises ProblemError if the file cannot be read, VerificationError if it is altered or
    malformed; what merely does not hold is reported in ``faults``.
    """
    body = read_sealed(path, tuple(_READERS), REWRITE)
    return _READERS[body["format"]]()[0](body, str(path))[1]


@checked_arguments
def load(
    path: str | Path,
) -> Design | TargetDesign | ProvedNoise | PackedMechanism | PackedEverywhere:
    """What a file holds, of whichever kind it is, everything that it claims proved again.

    A design, a family of coupling mechanisms or noise is read as by its own ``load``, a packed
    mechanism as by ``om.load_packed``: such a file has no proof of its own, see
    ``om.check_packed``.

    Raises
    ------
    ProblemError
        If the file cannot be read, or is of none of these kinds.
    VerificationError
        If it was altered, or does not hold what it claims.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "noise.json"
    >>> om.noise.optimal(epsilon=1, sensitivity=1, gap=1e-3).save(path)
    >>> om.load(path).epsilon
    1
    """
    from optmech.packed.load import is_packed_file, load_packed

    if is_packed_file(path):
        return load_packed(path)
    body = read_sealed(path, tuple(_READERS), REWRITE)
    decode, remedy = _READERS[body["format"]]()
    found: Proved = proved(decode, body, str(path), remedy)
    return found
