"""What several commands are given: options, and saved designs or matrices of other tools."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from optmech.base.numerals import float_of_text, fraction_of_text, int_of_text
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.designs.design import Design
    from optmech.problem import Problem
    from optmech.spaces.mechanism import Mechanism
    from optmech.spaces.mesh import Mesh


Option = tuple[str, dict[str, Any]]
"""A help, and what else ``argparse`` is to know."""


def option(what: str, **more: Any) -> Option:
    """An argument with more than its help."""
    return what, more


def columns(what: str) -> Option:
    """An option that takes names of columns, once or several times."""
    return option(what, nargs="+", action="extend", default=[])


INPUT = {
    "design DESIGN": "a file written by optmech solve -o; or, with --problem, a matrix p(o|s): "
    ".csv (no header), .npy, .nc or .parquet",
    "--problem FILE|NAME": "the problem that a matrix of another tool belongs to",
}
SOLVING = {
    "--profile NAME|FILE": "solver profile (default: the one that the file recommends, else auto)",
    "--gap G:float": "relative gap to certify",
    "--time-limit S:float": (
        "seconds for the whole command, or for every task of a sweep: the best verified result "
        "so far is what there is then"
    ),
    "-q --quiet": "no progress on standard error",
}
"""The options of commands that search."""
FAMILY_INPUT = {"--input NAME": "the auxiliary input, for a file written by optmech transport -o"}
"""For files with a mechanism for every auxiliary input."""
DRAW_SEED = {
    "--seed K:int": "make the draws reproducible, and unfit for release (default: system entropy)"
}


_PLACE = re.compile(r"(?P<place>.+?)(:(?P<type>int|float))?(=(?P<default>.*))?")


def _typed(kind: str, read: Callable[[str], float]) -> Callable[[str], float]:
    """The type of an option whose text is a number, in the words of ``argparse``."""

    def typed(text: str) -> float:
        try:
            return read(text)
        except ValueError:
            raise ArgumentTypeError(f"invalid {kind} value: {text!r}") from None

    return typed


_TYPES = {"int": _typed("int", int_of_text), "float": _typed("float", float_of_text)}


def add_arguments(parser: Any, arguments: Mapping[str, Any]) -> None:
    """Add the arguments of a table: of each, as a help writes it, its names and the place of its
    value, with its type and default where it has them (``--seed N:int=0``); and then the help, what
    ``option`` makes, or the table of a group. An option without that place, and without choices, is
    a flag."""
    for words, what in arguments.items():
        if isinstance(what, Mapping):
            add_arguments(parser.add_argument_group(words), what)
            continue
        said, given = option(what) if isinstance(what, str) else what
        more: dict[str, Any] = {"help": said}
        *names, last = words.split()
        if names and not last.startswith("-"):
            found = cast(re.Match[str], _PLACE.fullmatch(last))
            more["metavar"] = found["place"]
            if found["type"]:
                more["type"] = _TYPES[found["type"]]
            if found["default"] is not None:
                more["default"] = found["default"]
        else:
            names.append(last)
            if last.startswith("-") and "choices" not in given:
                more["action"] = "store_true"
        parser.add_argument(*names, **more, **given)


def read_input(args: Namespace) -> tuple[Problem, Mechanism]:
    """The problem and the mechanism, from a design or from a matrix and its problem."""
    return read_design(args.design, args.problem)


def read_design(path: str, stated: str | None) -> tuple[Problem, Mechanism]:
    """The problem and the mechanism, from a path and, for a matrix, that or the name of its
    problem."""
    return read_solved(path, stated)[:2]


def read_solved(path: str, stated: str | None) -> tuple[Problem, Mechanism, Design | None]:
    """The same, and the design where that is what the file holds."""
    if stated is not None:
        from optmech.exchange.matrices import read_matrix
        from optmech.files import read_problem

        problem = read_problem(stated).problem
        return problem, read_matrix(path, problem.secrets, problem.observables), None
    if Path(path).suffix.lower() in (".csv", ".npy", ".nc", ".parquet"):
        raise ProblemError(
            f"{path}: a matrix needs its problem",
            where="--problem",
            remedy="Give the problem file, or a gallery name",
        )
    from optmech.designs.design import Design

    design = Design.load(path)
    return design.problem, design.mechanism, design


def released_mechanism(path: str, name: str | None) -> Mechanism:
    """What the file of a design releases, its inequalities decided again; of a family the mechanism
    of the input ``name``."""
    from optmech.designs.file import load_mechanism
    from optmech.mechanisms.targets.design import TargetDesign
    from optmech.reading.sealed import FAMILY, is_of_format

    if not is_of_format(path, FAMILY):
        if name is not None:
            raise ProblemError(
                "has one mechanism for all secrets", where=path, remedy="Leave out --input"
            )
        return load_mechanism(path)
    family = TargetDesign.load(path)
    if name is None:
        raise ProblemError(
            "has a mechanism for every auxiliary input",
            where=path,
            remedy=f"Choose one with --input: {', '.join(family.names)}",
        )
    return family.mechanisms[family.index(name)]


def require_limits(args: Namespace) -> None:
    """Refuse a --gap or a --time-limit that is none."""
    for option, value, least in (
        ("--gap", args.gap, "0.01"),
        ("--time-limit", args.time_limit, "60"),
    ):
        if value is None:
            continue
        problem = "" if 0 < value < math.inf else "is not a positive number"
        if option == "--gap" and 1 < value < math.inf:
            problem = "is more than all of the loss"
        if problem:
            raise ProblemError(
                f"{value:g} {problem}",
                where=option,
                remedy=f"Leave it out, or give one, such as {least}",
            )


def require_beside(args: Namespace, name: str, other: str) -> None:
    """Refuse an option that counts together with another one that is not given."""
    if getattr(args, name) is not None and not getattr(args, other):
        raise ProblemError(
            f"counts with --{other} only", where=f"--{name}", remedy=f"Give --{other} as well"
        )


def require_seed(seed: int | None) -> None:
    """Refuse a seed that is no whole number of at most 64 bits."""
    if seed is not None and not 0 <= seed < 2**64:
        raise ProblemError(
            f"{seed if abs(seed) < 2**70 else 'the number'} is out of range",
            where="--seed",
            remedy="Give 0 to 2^64 - 1",
        )


def point(text: str, mesh: Mesh | None = None) -> Any:
    """A point as it is written, exactly: two coordinates, ``1.25,3/2``; of a line one; of roads the
    labels of their ends and a share, ``a,b,1/2``."""
    from optmech.spaces.labels import find_label

    *before, last = text.split(",")
    wanted, kind = 1, "point: this design reports from any point of a region"
    remedy = "Give two coordinates, as 1.25,3.5 (-- before them where the first is negative)"
    network = mesh is not None and not mesh.is_region
    if mesh is not None and network:
        line = mesh.vertices.shape[1] == 1
        wanted, kind = 0 if line else 2, f"point of {mesh.words}"
        remedy = "Give a number" if line else "Give two labels and a share, as a,b,1/2"
    try:
        if len(before) == wanted and len(text) <= 200:
            share = fraction_of_text(last)
            if mesh is None or not network:
                return fraction_of_text(before[0]), share
            ends = [find_label(mesh.domain, name.strip()) for name in before]
            return (*ends, share) if ends else share
    except (ValueError, ZeroDivisionError):
        pass
    raise ProblemError(f"{text[:40]!r} is no {kind}", where="POINT", remedy=remedy)


def pairs_of(args: Namespace) -> list[tuple[str, str]]:
    """The pairs of columns that --pair names, as ``start_lon,start_lat``; refused beside other
    options that say the same."""
    found = []
    for text in args.pair or ():
        x, comma, y = text.partition(",")
        if not (comma and x.strip() and y.strip()) or "," in y:
            raise ProblemError(
                f"{text[:60]!r} is no pair of columns",
                where="--pair",
                remedy="Give two names with a comma between them, as start_lon,start_lat",
            )
        found.append((x.strip(), y.strip()))
    if found and (args.x, args.y, args.label) != (None, None, None):
        raise ProblemError(
            "says where a row is, as do --x, --y and --label",
            where="--pair",
            remedy="Give one or the other",
        )
    return found
