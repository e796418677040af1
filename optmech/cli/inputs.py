"""What commands work on: a saved design, or a matrix of another tool with its problem."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.problem import Problem
    from optmech.spaces.mechanism import Mechanism


def add_input(parser: argparse.ArgumentParser) -> None:
    """The positional argument DESIGN, and --problem for matrices."""
    parser.add_argument(
        "design",
        metavar="DESIGN",
        help="a file written by optmech solve -o; or, with --problem, a matrix p(o|s): .csv (no "
        "header), .npy, .nc or .parquet",
    )
    parser.add_argument(
        "--problem",
        metavar="FILE|NAME",
        help="the problem that a matrix of another tool belongs to",
    )


def read_input(args: argparse.Namespace) -> tuple[Problem, Mechanism]:
    """The problem and the mechanism, from a design or from a matrix and its problem."""
    return read_design(args.design, args.problem)


def read_design(path: str, stated: str | None) -> tuple[Problem, Mechanism]:
    """The same, from the path and, for a matrix, that or the name of its problem."""
    if stated is not None:
        from optmech.exchange.numbers import read_matrix
        from optmech.files import read_problem

        problem = read_problem(stated).problem
        return problem, read_matrix(path, problem.secrets, problem.observables)
    if Path(path).suffix.lower() in (".csv", ".npy", ".nc", ".parquet"):
        raise ProblemError(
            f"{path}: a matrix needs its problem",
            where="--problem",
            remedy="Give the problem file, or a gallery name",
        )
    from optmech.designs.design import Design

    design = Design.load(path)
    return design.problem, design.mechanism


def add_family_input(parser: argparse.ArgumentParser) -> None:
    """The option --input, for files with a mechanism for every auxiliary input."""
    parser.add_argument(
        "--input",
        metavar="NAME",
        help="the auxiliary input, for a file written by optmech transport -o",
    )


def released_mechanism(path: str, name: str | None, signer: str | None = None) -> Mechanism:
    """What a file releases, its inequalities decided again: of a family the mechanism of the input
    ``name``; of a packed file, signed with the key ``signer`` where one is given."""
    from optmech.designs.file import load_mechanism
    from optmech.packed.load import is_packed_file, load_packed
    from optmech.reading.sealed import FAMILY, is_of_format
    from optmech.targets import TargetDesign

    if signer is not None or (name is None and is_packed_file(path)):
        return load_packed(path, signer=signer)

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


def require_limits(args: argparse.Namespace) -> None:
    """Refuse a --gap or a --time-limit that is none."""
    for option, value in (("--gap", args.gap), ("--time-limit", args.time_limit)):
        if value is not None and not 0 < value < math.inf:
            problem = "is not a positive number"
        elif value is not None and option == "--gap" and value > 1:
            problem = "is more than all of the loss"
        else:
            continue
        least = "0.01" if option == "--gap" else "60"
        raise ProblemError(
            f"{value:g} {problem}",
            where=option,
            remedy=f"Leave it out, or give one, such as {least}",
        )


def add_draw_seed(parser: argparse.ArgumentParser) -> None:
    """The option --seed of commands that draw reports."""
    parser.add_argument(
        "--seed",
        type=int,
        metavar="K",
        help="make the draws reproducible, and unfit for release (default: system entropy)",
    )
