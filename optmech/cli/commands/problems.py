"""``optmech problems``: the gallery."""

from __future__ import annotations

import argparse

SUMMARY = "list the gallery of problems"
EXAMPLE = "optmech problems"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Name, size, known optimum and title of every problem."""
    from optmech.cli.output import grid, note, print_json
    from optmech.files import list_gallery

    entries = list_gallery()
    if args.json:
        listed = [
            {
                "name": e.name,
                "title": e.title,
                "path": str(e.path),
                "secrets": e.secrets,
                "observables": e.observables,
                "optimum": e.optimum,
                "note": e.note,
            }
            for e in entries
        ]
        print_json({"problems": listed})
        return 0
    grid(
        ("name", "secrets", "observables", "optimum", "title"),
        [
            (
                e.name,
                "?" if e.secrets is None else str(e.secrets),
                "?" if e.observables is None else str(e.observables),
                "" if e.optimum is None else f"{e.optimum:.6f}",
                e.title,
            )
            for e in entries
        ],
        right=(1, 2, 3),
    )
    for e in entries:
        if e.note:
            note(f"note: {e.name}: {e.note}")
    return 0
