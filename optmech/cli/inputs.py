"""What commands work on: a saved design, or a matrix of another tool with its problem."""

from __future__ import annotations

import argparse
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
    from optmech.designs.file import load_design

    design = load_design(path)
    return design.problem, design.mechanism
