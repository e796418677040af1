"""``optmech estimate``: what the reports that were collected say about everybody."""

from argparse import Namespace

from optmech.cli.inputs import INPUT, read_input, require_seed
from optmech.cli.output import Answer, Facts, Grid, claim_outputs, named, number

SUMMARY = "estimate the frequencies of secrets from counts of a design's reports"
EXAMPLE = "optmech estimate design.json counts.csv --bootstrap 200"


ARGUMENTS = {
    **INPUT,
    "counts COUNTS": (
        "a CSV file with the columns observable and count, or observable alone with a row "
        "for every report"
    ),
    "--bootstrap N:int=0": "confidence intervals from N samples of the reports (default: none)",
    "--confidence P=0.95": "of the intervals, secret by secret (default: 0.95)",
    "--gap G=1e-8": "stop when no prior is likelier by more than G nats per report (default: 1e-8)",
    "--seed N:int": "of the bootstrap (default: 0)",
    "-o --output OUT": "write the estimates as CSV",
}


def run(args: Namespace) -> Answer:
    """Always 0: estimates are reported, not judged."""
    import numpy as np

    from optmech.analysis import estimate
    from optmech.analysis.counts import read_counts
    from optmech.base.storage import csv_bytes, write_atomically
    from optmech.errors import ProblemError
    from optmech.exact.number import float_of
    from optmech.spaces.labels import label_text

    require_seed(args.seed)
    gap = float_of(args.gap, "--gap", positive=True)
    level = float_of(args.confidence, "--confidence", positive=True)
    if not level < 1:
        raise ProblemError(f"{level:g} is not below 1", where="--confidence")
    claim_outputs(args, [args.design, args.problem, args.counts])
    _, m = read_input(args)
    counts = read_counts(args.counts, m.observables)
    found = estimate.prior(
        m, counts, gap=gap, bootstrap=args.bootstrap, confidence=level, seed=args.seed or 0
    )
    columns = {"likeliest": found.prior.weights}
    if found.lower is not None and found.upper is not None:
        columns |= {"lower": found.lower, "upper": found.upper}
    facts = {
        "reports": number(found.reports),
        "no prior is likelier by more than": f"{found.gap:.3g} nats per report",
    }
    try:
        flat = estimate.frequencies(m, counts)
        columns |= {"unbiased": flat.values, "standard error": flat.errors}
    except ProblemError as error:
        facts["no unbiased estimate"] = error.message
    header = ["secret", *columns]
    table = np.column_stack([*columns.values()]).tolist()
    rows = list(zip(map(label_text, m.secrets.labels), table, strict=True))
    keys = [name.replace(" ", "_") for name in header]
    grid = []
    if args.output is not None:
        lines = [keys, *([label, *row] for label, row in rows)]
        write_atomically(args.output, csv_bytes(lines))
    else:
        shown = [(label, *map(number, row)) for label, row in rows]
        grid = [Grid(header, shown, right=range(1, len(header)))]
    values = {
        **named(found, "reports", "gap", "log_likelihood", "iterations"),
        "confidence": found.confidence if args.bootstrap else None,
        "estimates": [dict(zip(keys, (label, *row), strict=True)) for label, row in rows],
    }
    return Answer(values, [*grid, Facts(facts)], {"output": "estimates"})
