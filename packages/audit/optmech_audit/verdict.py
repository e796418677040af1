"""The verdict on files of any format, and the command line."""

from __future__ import annotations

import os
import sys

from optmech_audit.couplings import judge_family
from optmech_audit.designs import Verdict, judge_design, promises_of
from optmech_audit.document import FAMILY, NOISE, fields, read
from optmech_audit.earth import is_earth, is_packed, judge_earth
from optmech_audit.noise import Noise, PowerNoise
from optmech_audit.numbers import Fault
from optmech_audit.packed import judge_packed
from optmech_audit.pairs import PlanarNoise, RealNoise, RealPowerNoise
from optmech_audit.radial import RadialNoise
from optmech_audit.regions import judge_region
from optmech_audit.shaped import ShapedNoise


def audit(path: str) -> list[str]:
    """What was verified, line by line; raises Fault where the file does not hold."""
    lines, _ = judge(path)
    return lines


def judge(path: str, design: str | None = None) -> Verdict:
    """The verdict on a file of any format, or on a packed mechanism and its design; whatever its
    entries do to the code is a Fault."""
    try:
        if design is not None:
            return judge_packed(path, design)
        if is_earth(path):
            return judge_earth(path)
        if is_packed(path):
            raise Fault("is a packed mechanism: name the design behind it, which proves it")
        body = read(path)
        if body["format"] == NOISE:
            if "curve" in body:
                return ShapedNoise(body).check()
            if "dimension" in body:
                return RadialNoise(body).check()
            if "norm" in body:
                return PlanarNoise(body).check()
            powers = "renyi" in body or "zcdp" in body
            if "cells" in body:
                return (RealPowerNoise if powers else RealNoise)(body).check()
            return (PowerNoise if powers else Noise)(body).check()
        if body["format"] == FAMILY:
            return judge_family(body)
        meshes = [fields(c.get("everywhere")) for c in promises_of(body)]
        region = any("triangles" in mesh for mesh in meshes)
        return judge_region(body) if region else judge_design(body)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise Fault(f"is not a well-formed design: {error!a}") from error
    except (ArithmeticError, RecursionError, MemoryError) as error:
        raise Fault(f"holds numbers out of range: {error!a}") from error


def shown(words: str) -> str:
    """A text without what a terminal would obey instead of showing it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def verdict(arguments: list[str]) -> tuple[int, list[str]]:
    """The status, 0 when everything holds, 1 when not, 2 without a readable file; and the words."""
    if len(arguments) not in (1, 2):
        return 2, ["usage: python audit.py DESIGN, or PACKED DESIGN"]
    try:
        lines, unchecked = judge(*arguments)
    except (OSError, EOFError) as error:
        return 2, [f"{arguments[0]}: {getattr(error, 'strerror', None) or error}"]
    except Fault as fault:
        return 1, [f"{arguments[0]}: FAILED: {fault}"]
    words = f"not checked, as they are the file's own words: {unchecked}"
    return 0, [*lines, words, "everything that the file claims holds, apart from these"]


def written(words: list[str], number: int) -> str:
    """Lines on standard output (1) or standard error (2); why they cannot be, or nothing."""
    stream = sys.stdout if number == 1 else sys.stderr
    if stream is None:
        return "it is closed"
    try:
        print("\n".join(map(shown, words)), file=stream, flush=True)
    except OSError as error:
        # what is left in the buffer goes nowhere: at the end Python would fail at it again
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        return error.strerror or str(error)
    return ""


def main(arguments: list[str]) -> int:
    """0 when everything holds, 1 when not, 2 without a readable file or where the verdict cannot
    be written."""
    status, words = verdict(arguments)
    if status == 2:
        written(words, 2)
    elif reason := written(words, 1):
        written([f"standard output cannot be written: {reason}"], 2)
        return 2
    return status


def command() -> int:
    """The command ``optmech-audit``."""
    return main(sys.argv[1:])
