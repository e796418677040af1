"""``optmech plan``: how a problem would be solved, and why."""

from argparse import Namespace

from optmech.cli.inputs import SOLVING
from optmech.cli.output import Answer, Facts, Title, named

SUMMARY = "say how a problem would be solved, and why; nothing is solved"
EXAMPLE = "optmech plan montreal"
_PROFILE, _GAP, _LIMIT, _ = SOLVING

ARGUMENTS = {
    "problem FILE|NAME": "a problem file, or a gallery name",
    **{option: SOLVING[option] for option in (_PROFILE, _GAP, _LIMIT)},
}


def run(args: Namespace) -> Answer:
    """Always 0."""
    from optmech.cli.commands.solve import asked
    from optmech.pipeline.plan import plan

    file, profile = asked(args)
    found = plan(file.problem, profile.with_limits(args.gap, args.time_limit))
    values = {**named(found, "name", "reason"), "profile": profile.name}
    facts = {"plan": found.name, "reason": found.reason, "profile": profile.name}
    return Answer(values, [Title(file.title or args.problem), Facts(facts)])
