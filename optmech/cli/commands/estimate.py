"""``optmech estimate``: what the reports that were collected say about everybody."""

import argparse

from optmech.cli.inputs import add_input, argument, read_input, require_seed
from optmech.cli.output import Answer, Facts, Grid, claim_outputs, number

SUMMARY = "estimate the frequencies of secrets from counts of a design's reports"
EXAMPLE = "optmech estimate design.json counts.csv --bootstrap 200"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    argument(
        parser,
        "counts COUNTS",
        "a CSV file with the columns observable and count, or observable alone with a row "
        "for every report",
    )
    argument(
        parser,
        "--bootstrap N",
        "confidence intervals from N samples of the reports (default: none)",
        type=int,
        default=0,
    )
    argument(
        parser,
        "--confidence P",
        "of the intervals, secret by secret (default: 0.95)",
        default="0.95",
    )
    argument(
        parser,
        "--gap G",
        "stop when no prior is likelier by more than G nats per report (default: 1e-8)",
        default="1e-8",
    )
    argument(parser, "--seed N", "of the bootstrap (default: 0)", type=int)
    argument(parser, "-o --output OUT", "write the estimates as CSV")


def run(args: argparse.Namespace) -> Answer:
    """Always 0: estimates are reported, not judged."""
    import numpy as np

    from optmech.analysis import estimate
    from optmech.analysis.estimate import read_counts
    from optmech.base.storage import csv_bytes, write_atomically
    from optmech.errors import ProblemError
    from optmech.exact.number import parse_exact
    from optmech.spaces.labels import label_text

    require_seed(args.seed)
    gap = float(parse_exact(args.gap, where="--gap", positive=True))
    level = float(parse_exact(args.confidence, where="--confidence", positive=True))
    if not level < 1:
        raise ProblemError(f"{level:g} is not below 1", where="--confidence")
    claim_outputs(args, [args.design, args.problem, args.counts])
    _, m = read_input(args)
    counts = read_counts(args.counts, m.observables)
    found = estimate.prior(
        m,
        counts,
        gap=gap,
        bootstrap=args.bootstrap,
        confidence=level,
        seed=args.seed or 0,
    )
    more: list[tuple[str, str]] = []
    try:
        flat = estimate.frequencies(m, counts)
    except ProblemError as error:
        flat, more = None, [("no unbiased estimate", error.message)]
    header = ["secret", "likeliest"]
    columns = [found.prior.weights]
    if found.lower is not None and found.upper is not None:
        header += ["lower", "upper"]
        columns += [found.lower, found.upper]
    if flat is not None:
        header += ["unbiased", "standard error"]
        columns += [flat.values, flat.errors]
    labels = [label_text(label) for label in m.secrets.labels]
    rows: list[tuple[str, list[float]]] = list(
        zip(labels, np.column_stack(columns).tolist(), strict=True)
    )
    keys = [name.replace(" ", "_") for name in header]
    if args.output is not None:
        table = [keys, *([label, *map(repr, row)] for label, row in rows)]
        write_atomically(args.output, csv_bytes(table))
    values = {
        "reports": found.reports,
        "gap": found.gap,
        "log_likelihood": found.log_likelihood,
        "iterations": found.iterations,
        "confidence": found.confidence if args.bootstrap else None,
        "estimates": [dict(zip(keys, (label, *row), strict=True)) for label, row in rows],
    }
    shown = [(label, *map(number, row)) for label, row in rows]
    facts = [
        ("reports", number(found.reports)),
        ("no prior is likelier by more than", f"{found.gap:.3g} nats per report"),
    ]
    grid = [Grid(header, shown, right=range(1, len(header)))] if args.output is None else []
    return Answer(values, [*grid, Facts(facts + more)], {"output": "estimates"})
