"""What the check and the audit say of files of noise."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import optmech_audit as audit
from mutations import altered, anywhere

import optmech as om


def verdicts(content: bytes, path: Path) -> tuple[bool, bool]:
    """Whether the check and the audit accept a file; anything but a refusal is raised."""
    path.write_bytes(content)
    try:
        passed = om.check(path).passed
    except (om.VerificationError, om.ProblemError):
        passed = False
    return passed, audit.main([str(path)]) == 0


def refused_alike(files: dict[str, bytes], count: int, seed: int, path: Path) -> int:
    """How many of so many altered files both refuse; both accept the others."""
    rng = np.random.default_rng(seed)
    names = list(files)
    refused = 0
    for _ in range(count):
        content = files[names[int(rng.integers(len(names)))]]
        forged, how = altered(rng, content, (anywhere,), raw=0.15, again=0.2)
        passed, audited = verdicts(forged, path)
        assert passed == audited, how
        refused += not passed
    return refused
