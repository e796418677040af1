"""``optmech estimate``: what the reports that were collected say about everybody."""

import math
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from optmech.cli.inputs import INPUT, read_solved, require_seed
from optmech.cli.output import Answer, Facts, Grid, claim_outputs, named, number
from optmech.exact.number import from_above

if TYPE_CHECKING:
    from optmech.analysis.surveys import Estimate
    from optmech.base.arrays import Floats
    from optmech.spaces.domain import Domain

SUMMARY = "estimate the shares of secrets, or a statistic, from a design's reports"
EXAMPLE = "optmech estimate design.json protected.csv --bootstrap 200"


ARGUMENTS = {
    **INPUT,
    "counts TABLE": (
        "a table that optmech protect wrote; or a CSV file with the columns observable and count, "
        "or observable alone with a row for every report"
    ),
    "--report COLUMN": "the column with the reports' labels (default: observable or report, "
    "else the coordinates of the reports)",
    "--bootstrap N:int=0": "confidence intervals of the likeliest prior from N samples of the "
    "reports (default: none)",
    "--confidence P=0.95": "of the intervals, number by number (default: 0.95)",
    "--gap G=1e-8": "stop when no prior is likelier by more than G nats per report (default: 1e-8)",
    "--seed N:int": "of the bootstrap (default: 0)",
    "--picture PNG": "draw the shares and their standard errors to this file",
    "-o --output OUT": "write the estimates as CSV",
}


def run(args: Namespace) -> Answer:
    """Always 0: estimates are reported, not judged."""
    import numpy as np

    from optmech.analysis.counts import read_counts
    from optmech.base.storage import csv_bytes, write_atomically
    from optmech.errors import ProblemError
    from optmech.exact.number import float_of
    from optmech.spaces.labels import label_text
    from optmech_surveys import estimate

    require_seed(args.seed)
    gap = float_of(args.gap, "--gap", positive=True)
    level = float_of(args.confidence, "--confidence", positive=True)
    if not level < 1:
        raise ProblemError(f"{level:g} is not below 1", where="--confidence")
    claim_outputs(args, [args.design, args.problem, args.counts])
    _, m, design = read_solved(args.design, args.problem)
    counts = read_counts(args.counts, m.observables, args.report)
    found = estimate.prior(
        m, counts, gap=gap, bootstrap=args.bootstrap, confidence=level, seed=args.seed or 0
    )
    columns = {"likeliest": found.prior.weights}
    if found.lower is not None and found.upper is not None:
        columns |= {"lower": found.lower, "upper": found.upper}
    facts = {
        "reports": number(found.reports),
        "no prior is likelier by more than": f"{from_above(found.gap, 3)} nats per report",
    }
    surveyed = design is not None and design.certificate.multipliers.variance is not None
    stated = design.estimate(counts) if design is not None and surveyed else None
    flat = None
    try:
        if design is not None and stated is not None:
            flat = design.estimate(counts, "histogram")
        else:
            flat = estimate.statistic(m, counts)
        columns |= _columns(flat, level)
        facts |= dict(_said(flat, level))
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
    values: dict[str, Any] = {
        **named(found, "reports", "gap", "log_likelihood", "iterations"),
        "confidence": level,
        "estimates": [dict(zip(keys, (label, *row), strict=True)) for label, row in rows],
    }
    if stated is not None and not np.array_equal(stated.statistic, np.eye(len(m.secrets))):
        name = design.problem.objective.statistic  # type: ignore[union-attr]
        numbers = _columns(stated, level)
        parts = np.column_stack([*numbers.values()]).tolist()
        values["statistic"] = own = [dict(zip(numbers, row, strict=True)) for row in parts]
        shown = [(str(k), *map(number, row.values())) for k, row in enumerate(own, start=1)]
        title = name if isinstance(name, str) else "row"
        grid.append(Grid([title, *own[0]], shown, right=range(1, len(own[0]) + 1)))
    if args.picture is not None:
        if flat is None:
            raise ProblemError("there is no unbiased estimate to draw", where="--picture")
        _draw(m.secrets, flat, args.picture)
    return Answer(values, [*grid, Facts(facts)], {"output": "estimates", "picture": "picture"})


def _draw(secrets: "Domain", found: "Estimate", path: str) -> None:
    """Estimated shares, those below 0 as 0, beside their standard errors on the same scale."""
    import numpy as np

    from optmech.show.plots.drawing import draw_values, new_panels, require_matplotlib, save

    require_matplotlib(path)
    figure, panels = new_panels(2, 5.5, 4.5)
    top = max(float(found.values.max()), float(found.errors.max()))
    for axes, own, title in (
        (panels[0], found.values, "estimated share, without bias"),
        (panels[1], found.errors, "its standard error"),
    ):
        draw_values(axes, secrets, np.maximum(own, 0.0), title, top, linear=True, what="share")
    save(figure, path)


def _columns(found: "Estimate", level: float) -> dict[str, "Floats"]:
    """What is known of every number, by names."""
    parts = found.values, found.errors, *found.interval(level).T, found.consistent()
    return dict(
        zip(("unbiased", "standard error", "from", "to", "non-negative"), parts, strict=True)
    )


def _said(found: "Estimate", level: float) -> Iterator[tuple[str, str]]:
    """What kind of numbers these are, and which are nearer."""
    yield "unbiased", f"may be below 0; from and to hold {level:.4g} one by one, by a normal law"
    yield "likeliest, non-negative", "biased; nearer where reports are few"
    noise = float(found.errors @ found.errors)
    spread = float(((found.values - found.values.mean()) ** 2).sum()) - noise
    wrong, apart = (math.sqrt(max(v, 0.0) / len(found.values)) for v in (noise, spread))
    said = f"{wrong:.3g}, and shares differ from their mean by {apart:.3g} (root mean square)"
    if wrong > apart:
        said += ": of so few reports the unbiased values say little about where people are"
    yield "error of the unbiased shares", said
