"""``optmech profiles``: the solver profiles."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from optmech.cli import output

SUMMARY = "list the solver profiles"
EXAMPLE = "optmech profiles"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Name, engine, gap and description of every profile."""
    from optmech.pipeline.profiles import list_profiles

    profiles = list_profiles()
    if args.json:
        output.print_json({"profiles": [asdict(profile) for profile in profiles]})
        return 0
    output.grid(
        ("name", "engine", "gap", "description"),
        [(p.name, p.engine, f"{p.gap:g}", p.description) for p in profiles],
        right=(2,),
    )
    return 0
