"""``optmech problems``: the gallery."""

from argparse import Namespace
from dataclasses import asdict

from optmech.cli.output import Answer, Grid

SUMMARY = "list the gallery of problems"
EXAMPLE = "optmech problems"


def run(args: Namespace) -> Answer:
    """Name, size, known optimum and title of every problem, then other tasks."""
    from optmech.files import list_gallery, list_tasks

    entries, tasks = list_gallery(), list_tasks()
    rows = [
        (
            e.name,
            str(e.secrets or "?"),
            str(e.observables or "?"),
            "" if e.optimum is None else f"{e.optimum:.6f}",
            e.title,
        )
        for e in entries
    ]
    return Answer(
        {
            "problems": [asdict(e) | {"path": str(e.path)} for e in entries],
            **{f"{kind}s": listed for kind, listed in tasks.items()},
        },
        [
            Grid(("name", "secrets", "observables", "optimum", "title"), rows, right=(1, 2, 3)),
            *(
                Grid((kind, "title"), [(t["name"], t["title"]) for t in listed])
                for kind, listed in tasks.items()
            ),
        ],
        notes=[f"{e.name}: {e.note}" for e in entries if e.note],
    )
