"""``optmech estimate``: what the reports that were collected say about everybody."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optmech.cli.inputs import INPUT, option, read_input, require_seed
from optmech.cli.output import Answer, Facts, Grid, claim_outputs, number

if TYPE_CHECKING:
    from optmech.analysis.estimate import Frequencies, PriorEstimate
    from optmech.base.arrays import Floats

SUMMARY = "estimate the frequencies of secrets from counts of a design's reports"
EXAMPLE = "optmech estimate design.json counts.csv --bootstrap 200"


ARGUMENTS = {
    **INPUT,
    "counts COUNTS": (
        "a CSV file with the columns observable and count, or observable alone with a row "
        "for every report"
    ),
    "--bootstrap N": option(
        "confidence intervals from N samples of the reports (default: none)", type=int, default=0
    ),
    "--confidence P": option("of the intervals, secret by secret (default: 0.95)", default="0.95"),
    "--gap G": option(
        "stop when no prior is likelier by more than G nats per report (default: 1e-8)",
        default="1e-8",
    ),
    "--seed N": option("of the bootstrap (default: 0)", type=int),
    "-o --output OUT": "write the estimates as CSV",
}


def run(args: argparse.Namespace) -> Answer:
    """Always 0: estimates are reported, not judged."""
    import numpy as np

    from optmech.analysis import estimate
    from optmech.analysis.estimate import read_counts
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
    seed, samples = args.seed or 0, args.bootstrap
    found = estimate.prior(m, counts, gap=gap, bootstrap=samples, confidence=level, seed=seed)
    more: list[tuple[str, str]] = []
    try:
        flat = estimate.frequencies(m, counts)
    except ProblemError as error:
        flat, more = None, [("no unbiased estimate", error.message)]
    columns = _columns(found, flat)
    header = ["secret", *columns]
    table = np.column_stack([*columns.values()]).tolist()
    rows = list(zip(map(label_text, m.secrets.labels), table, strict=True))
    keys = [name.replace(" ", "_") for name in header]
    if args.output is not None:
        lines = [keys, *([label, *map(repr, row)] for label, row in rows)]
        write_atomically(args.output, csv_bytes(lines))
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


def _columns(found: PriorEstimate, flat: Frequencies | None) -> dict[str, Floats]:
    """What is said of every secret, by the name of its column."""
    out = {"likeliest": found.prior.weights}
    if found.lower is not None and found.upper is not None:
        out |= {"lower": found.lower, "upper": found.upper}
    if flat is not None:
        out |= {"unbiased": flat.values, "standard error": flat.errors}
    return out
