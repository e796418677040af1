"""``optmech profiles``: the solver profiles."""

from argparse import Namespace
from dataclasses import asdict

from optmech.cli.output import Answer, Grid, Lines

SUMMARY = "list the solver profiles"
EXAMPLE = "optmech profiles"


def run(args: Namespace) -> Answer:
    """Name, engine, gap and description of every profile, and which kernels run."""
    from optmech.base.native import variant, words
    from optmech.pipeline.profiles import list_profiles

    profiles = list_profiles()
    rows = [(p.name, p.engine, f"{p.gap:g}", p.description) for p in profiles]
    return Answer(
        {"profiles": [asdict(profile) for profile in profiles], "kernels": variant()},
        [Grid(("name", "engine", "gap", "description"), rows, right=(2,)), Lines(words())],
    )
