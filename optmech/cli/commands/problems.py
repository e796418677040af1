"""``optmech problems``: the gallery."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from optmech.cli import output

SUMMARY = "list the gallery of problems and traces"
EXAMPLE = "optmech problems"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments of its own."""


def run(args: argparse.Namespace) -> int:
    """Name, size, known optimum and title of every problem, then the traces."""
    from optmech.files import list_gallery, list_traces

    entries, traces = list_gallery(), list_traces()
    if args.json:
        listed = [asdict(e) | {"path": str(e.path)} for e in entries]
        output.print_json({"problems": listed, "traces": traces})
        return 0
    output.grid(
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
    output.blank()
    output.grid(("trace", "title"), [(t["name"], t["title"]) for t in traces])
    for e in entries:
        if e.note:
            output.note(f"note: {e.name}: {e.note}")
    return 0
