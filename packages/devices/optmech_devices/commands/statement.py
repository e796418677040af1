"""``optmech statement``: one page in plain words about a design or a protected table."""

from argparse import Namespace
from pathlib import Path

from optmech.base.storage import write_atomically
from optmech.cli.inputs import option
from optmech.cli.output import Answer, claim_outputs

SUMMARY = "write one page in plain words on what a design or a protected table promises"
EXAMPLE = "optmech statement summary.json -o promise.md"
ARGUMENTS = {
    "source DESIGN|SUMMARY": "a design, a packed file, or what optmech protect --summary wrote",
    "-o --output OUT": option("a .md, .html or .pdf file", required=True),
    "--title TITLE": "of the page (default: the name of the file)",
}


def run(args: Namespace) -> Answer:
    """Read the file, write the page."""
    from optmech_devices.protection.statement import statement_of, written

    claim_outputs(args, [args.source])
    title = args.title or f"What is promised by {Path(args.source).name}"
    sections = statement_of(args.source)
    write_atomically(args.output, written(sections, args.output, title))
    values = {"sections": [head for head, _ in sections], "title": title}
    return Answer(values, files={"output": "statement"})
