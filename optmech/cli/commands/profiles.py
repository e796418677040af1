"""``optmech profiles``: the solver profiles."""

from argparse import Namespace
from dataclasses import asdict

from optmech.cli.output import Answer, Grid

SUMMARY = "list the solver profiles"
EXAMPLE = "optmech profiles"


def run(args: Namespace) -> Answer:
    """Name, engine, gap and description of every profile."""
    from optmech.pipeline.profiles import list_profiles

    profiles = list_profiles()
    rows = [(p.name, p.engine, f"{p.gap:g}", p.description) for p in profiles]
    return Answer(
        {"profiles": [asdict(profile) for profile in profiles]},
        [Grid(("name", "engine", "gap", "description"), rows, right=(2,))],
    )
