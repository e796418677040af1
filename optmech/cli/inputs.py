"""What commands work on: a saved design, or a matrix of another tool with its problem."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.mesh.mechanism import EverywhereMechanism
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
    if args.problem is not None:
        from optmech.exchange.numbers import read_matrix
        from optmech.files import read_problem

        problem = read_problem(args.problem).problem
        return problem, read_matrix(args.design, problem.secrets, problem.observables)
    if Path(args.design).suffix.lower() in (".csv", ".npy", ".nc", ".parquet"):
        raise ProblemError(
            f"{args.design}: a matrix needs its problem",
            where="--problem",
            remedy="Give the problem file, or a gallery name",
        )
    from optmech.designs.file import load_design

    design = load_design(args.design)
    return design.problem, design.mechanism


def add_family_input(parser: argparse.ArgumentParser) -> None:
    """The option --input, for files with a mechanism for every auxiliary input."""
    parser.add_argument(
        "--input",
        metavar="NAME",
        help="the auxiliary input, for a file written by optmech transport -o",
    )


def released_mechanism(path: str, name: str | None) -> Mechanism | EverywhereMechanism:
    """What a file releases, checked again: of a family the mechanism of the input ``name``."""
    from optmech.designs.design import Design
    from optmech.reading.sealed import FAMILY, is_of_format
    from optmech.targets import TargetDesign

    if not is_of_format(path, FAMILY):
        if name is not None:
            raise ProblemError(
                "has one mechanism for all secrets", where=path, remedy="Leave out --input"
            )
        return Design.load(path).mechanism
    family = TargetDesign.load(path)
    if name is None:
        raise ProblemError(
            "has a mechanism for every auxiliary input",
            where=path,
            remedy=f"Choose one with --input: {', '.join(family.names)}",
        )
    return family.mechanisms[family.index(name)]
