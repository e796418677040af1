"""``optmech schema``: the JSON Schema of problem files."""

from __future__ import annotations

import argparse

SUMMARY = "print the JSON Schema of problem files"
EXAMPLE = "optmech schema > problem.schema.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Indented for people, on one line with --json."""
    import json

    from optmech.files import problem_schema

    print(json.dumps(problem_schema(), indent=None if args.json else 2))
    return 0
