"""What a file is that optmech writes, for somebody who has nothing else: its kind, what it promises
about points, and whether that was proved again."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optmech.base.extensions import FILES, extension
from optmech.certificate.proved import Proved, ProvedLoss, examined
from optmech.designs.design import Design
from optmech.designs.notes import threshold_notes
from optmech.designs.promise import Promise, guess_words, promise_of
from optmech.designs.sentences import figure_words, figures, nearness
from optmech.errors import ProblemError, moved
from optmech.exact.number import from_below
from optmech.reading.bounded import read_bytes, read_start
from optmech.reading.errors import WORDS, by_ending, kind_of
from optmech.reading.sealed import FORMATS, begins, distinct, packed_reader, read_sealed
from optmech.reading.source import read_document

_START = 400
"""Bytes in which a sealed document says what it is."""


@dataclass(frozen=True)
class Described:
    """What a file is, for somebody who has nothing else."""

    kind: str
    """ "design", "coupling", "noise", "packed", "ledger", "sweep", "problem", or another word."""
    what: str
    """The kind as people say it."""
    promise: Promise
    digest: str
    bytes: int
    checked: bool
    """Whether every claim of the file was decided again."""
    verdict: str
    """What was checked, or what would check it."""
    size: str = ""
    """How much it holds, in words."""
    title: str = ""
    more: tuple[tuple[str, str], ...] = ()
    faults: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        known = {name: own for name, own in vars(self).items() if name not in ("promise", "more")}
        return {**known, **self.promise.plain()}


def described(path: str | Path) -> Described:
    """What a file that optmech writes is, what it promises about points, and whether that holds.

    A design, coupling mechanisms and noise are proved again. A packed file is read and compared
    with its digest: its proof is its design. Raises ProblemError where a file cannot be read, or
    is of no kind that is known; VerificationError where it was altered.
    """
    if os.path.isdir(path):
        return _of_run(Path(path))
    packed = packed_reader(path)
    if packed is not None:
        said: Described = packed.described(path)
        return said
    start = read_start(path, _START)
    if any(begins(start, name) for name in FORMATS) or str(path).lower().endswith(".gz"):
        return _of_proved(path)
    content = read_bytes(path)
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    try:
        body = json.loads(content, object_pairs_hook=distinct)
    except (ValueError, RecursionError, ProblemError):
        body = None
    if isinstance(body, dict) and kind_of(body) == "ledger":
        with moved(str(path)):
            reader = extension(FILES, "ledger")
        ledger: Described = reader.described(body, digest, len(content))
        return ledger
    return _of_asked(path, digest, len(content))


def _of_proved(path: str | Path) -> Described:
    body = read_sealed(path, Proved.formats)
    found, report = examined(body, str(path))
    stated = FORMATS[body["format"]]
    size, title, more = "", "", list[tuple[str, str]]()
    if isinstance(found, Design):
        kind, title, promise = "design", found.problem.title, found.promise
        if found.exact is None:
            promise = Promise("use", "Nothing: no mechanism is there.")
        size = f"{len(found.problem.secrets):,} places"
        size = size if found.mesh else f"{len(found.problem.secrets):,} secrets"
        size += f", {len(found.problem.observables):,} reports"
        if found.matrix is not None:
            more.append(("best guess", guess_words(found.mechanism, found.problem.prior)))
        more += _proved_of(found)
        more += [("thresholds", note) for note in threshold_notes(found)]
    else:
        assert isinstance(found, ProvedLoss)
        kind = "noise" if "noise" in stated.name else "coupling"
        promise = Promise("secrets", found.promise[:1].upper() + found.promise[1:] + ".")
        more = [(found.measured, f"{found.loss:.6g}, at least {from_below(found.lower_bound)}")]
    verdict = "yes: every claim of the file was proved again"
    if not report.passed:
        verdict = f"NO: {'; '.join(report.faults)}"
    return Described(
        kind, stated.what, promise, str(body["digest"]), os.path.getsize(path), report.passed,
        verdict, size, title, tuple(more), tuple(report.faults),
    )  # fmt: skip


def _proved_of(design: Design) -> list[tuple[str, str]]:
    """How good a design is, or why there is none."""
    if design.exact is None:
        return [("infeasible", design.reason)]
    known = [(own.name, figure_words(own)) for own in figures(design)]
    return [("status", f"{design.status}: {nearness(design)}"), *known]


def _of_run(folder: Path) -> Described:
    with moved(str(folder)):
        reader = extension(FILES, "run")
    said: Described = reader.described(folder)
    return said


def _of_asked(path: str | Path, digest: str, size: int) -> Described:
    """A problem file, whose promise is what is asked for; of other files what they are."""
    from optmech.files import read_problem

    other = by_ending(path)
    if other is not None:
        raise ProblemError(f"is {other[0]}, and promises nothing", where=path, remedy=other[1])
    kind = kind_of(read_document(Path(path)))
    if kind == "run":
        return _of_run(Path(path).parent)
    if kind == "problem":
        file = read_problem(path)
        return Described(
            "problem", WORDS["problem"][0], promise_of(file.problem), digest, size, False,
            "no: it is what is asked for, and optmech solve makes the design",
            f"{len(file.problem.secrets):,} secrets, {len(file.problem.observables):,} reports",
            file.title,
        )  # fmt: skip
    if kind is None:
        raise ProblemError(
            "is of no kind that optmech writes",
            where=path,
            remedy="Give a design, noise, coupling mechanisms, a packed file, a ledger or the "
            "directory of a sweep",
        )
    what, command = WORDS[kind]
    return Described(
        kind, what, Promise("use", f"Not said by this file. {command}."), digest, size, False,
        "no: it has no proof of its own",
    )  # fmt: skip
