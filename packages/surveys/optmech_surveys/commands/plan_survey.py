"""``optmech plan-survey``: people for an error, or the error with so many people."""

from __future__ import annotations

import math
from argparse import Namespace

from optmech.cli.output import Answer, Facts, Grid, claim_outputs, note, number
from optmech.exact.number import from_below

SUMMARY = "how many people a survey takes, by the designed mechanism and by those in use"
EXAMPLE = "optmech plan-survey survey.toml --error 0.01"

ARGUMENTS = {
    "problem FILE|NAME": "a problem with the objective minimize_variance",
    "--people N": "how many report",
    "--error E": "half-width that the interval of every number is to have",
    "--level P=0.95": "of the intervals (default: 0.95)",
    "--gap G=0.01": "of the design to its bound (default: 0.01)",
    "-o --output OUT": "write the design",
}


def run(args: Namespace) -> Answer:
    """Always 0: plans are reported, not judged."""
    from optmech.exact.number import float_of
    from optmech.files.load import load_problem
    from optmech_surveys.planning import plan_survey

    claim_outputs(args, [args.problem])
    asked = {
        name: None if value is None else float_of(value, f"--{name}", positive=True)
        for name, value in (("people", args.people), ("error", args.error))
    }
    level, gap = (
        float_of(getattr(args, own), f"--{own}", positive=True) for own in ("level", "gap")
    )
    note("designing a mechanism, and comparing those in use")
    found = plan_survey(load_problem(args.problem), **asked, level=level, gap=gap)
    if args.output:
        found.design.save(args.output)
    best = found.rows[0]
    rows = [
        (
            row.name,
            *(
                number(v) if math.isfinite(v) else "-"
                for v in (row.variance, row.people, row.error)
            ),
            f"{row.variance / best.variance:.3g}" if math.isfinite(row.variance) else row.why[:60],
        )
        for row in found.rows
    ]
    header = ("mechanism", "N x variance", "people", "error", "times the people")
    facts = {
        "least of every mechanism": f"N x variance {from_below(found.bound)}, proved",
        "intervals": f"of every number by itself, {found.level:g}, by a normal law",
    }
    plain = [
        {
            name: value if not isinstance(value, float) or math.isfinite(value) else None
            for name in ("name", "variance", "largest", "people", "error", "why")
            for value in (getattr(row, name),)
        }
        for row in found.rows
    ]
    values = {"mechanisms": plain, "bound": found.bound, "level": found.level}
    return Answer(
        values, [Grid(header, rows, right=(1, 2, 3, 4)), Facts(facts)], {"output": "design"}
    )
