"""``optmech problems``: the gallery."""

from __future__ import annotations

import argparse

SUMMARY = "list the gallery of problems and traces"
EXAMPLE = "optmech problems"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Name, size, known optimum and title of every problem, then the traces."""
    from optmech.cli.output import blank, grid, note, print_json
    from optmech.files import list_gallery, list_traces

    entries, traces = list_gallery(), list_traces()
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
        print_json({"problems": listed, "traces": traces})
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
    blank()
    grid(("trace", "title"), [(t["name"], t["title"]) for t in traces])
    for e in entries:
        if e.note:
            note(f"note: {e.name}: {e.note}")
    return 0
