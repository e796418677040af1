"""``optmech schema``: the JSON Schema of problem, trace and sweep files."""

from argparse import Namespace

from optmech.base.extensions import TASKS, added
from optmech.cli.inputs import option
from optmech.cli.output import Answer, Lines

SUMMARY = "print the JSON Schema of problem files, or of trace or sweep files"
EXAMPLE = "optmech schema > problem.schema.json"


ARGUMENTS = {
    "of": option(
        "the kind of file (default: problem)",
        nargs="?",
        choices=("problem", "sweep", *added(TASKS)),
        default="problem",
    ),
}


def run(args: Namespace) -> Answer:
    """Indented for people, on one line with --json."""
    import json

    from optmech.files import problem_schema, sweep_schema, task_schema

    schemas = {"problem": problem_schema, "sweep": sweep_schema}
    schema = schemas[args.of]() if args.of in schemas else task_schema(args.of)
    return Answer(schema, [Lines(json.dumps(schema, indent=2))])
