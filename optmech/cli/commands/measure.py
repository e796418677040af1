"""``optmech measure``: privacy and utility of a saved design, from its matrix alone."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from optmech.base.extensions import MEASURES, added
from optmech.cli.inputs import INPUT, read_input, require_beside
from optmech.cli.output import (
    Answer,
    Facts,
    Piece,
    Title,
    figures,
    named,
    number,
    plain_figures,
    promises,
)

if TYPE_CHECKING:
    from optmech.analysis.positions import Everywhere
    from optmech.problem import Problem
    from optmech.spaces.distances import Distance
    from optmech.spaces.mechanism import Mechanism

SUMMARY = "measure privacy and utility of a saved design"
EXAMPLE = 'optmech measure design.json --distance euclidean --epsilon "ln 2"'


ARGUMENTS = {
    **INPUT,
    "--distance NAME": (
        "distance that ε is per: euclidean, manhattan, hamming, haversine, loss, or one of "
        "the design's own (default: the one its constraints use)"
    ),
    "--epsilon E": 'report the least δ at this ε (a number, or "ln 3")',
    "--delta D": "report the least ε at this δ",
    "--everywhere": (
        "also report what the cells of a grid or of regions promise between their centres, "
        "for fixes that are snapped to the cell that holds them: the slack, the step across an "
        "edge, and the share of pairs of fixes whose log ratio exceeds ε (that of --epsilon, or "
        "the least between the centres) times their distance"
    ),
    "--within D": "with --everywhere: sample pairs of fixes at most this far from each other",
}
_FURTHER = {name: entry.load() for name, entry in added(MEASURES).items()}
for _measure in _FURTHER.values():
    ARGUMENTS |= _measure.ARGUMENTS


def run(args: Namespace) -> Answer:
    """Always 0: numbers are reported, not judged."""
    from optmech.analysis import measures
    from optmech.exact.number import float_of, parse_exact
    from optmech.problem.attack import choose_distance
    from optmech.show.figures import measure_constraints

    rate = None if args.epsilon is None else parse_exact(args.epsilon, where="--epsilon")
    budget = None if args.delta is None else parse_exact(args.delta, where="--delta")
    require_beside(args, "within", "everywhere")
    problem, m = read_input(args)
    further = {name: each.measured(args, problem, m) for name, each in _FURTHER.items()}
    between = None
    if args.everywhere:
        within = args.within and float_of(args.within, "--within", positive=True)
        between = measures.everywhere(m, rate, within=within)
    name, distance = choose_distance(problem, args.distance)
    at = " at the places" if m.is_everywhere else ""
    found = _figures(problem, m, name, distance, at)
    variants = (("metric_", "metric", distance), ("", "differential", None))
    if rate is not None:
        for prefix, kind, metric in variants:
            title = f"δ of {kind} privacy{at} at ε = {args.epsilon}"
            found[f"{prefix}delta_at_epsilon"] = title, measures.delta(m, rate, metric)
    if budget is not None:
        for prefix, kind, metric in variants:
            title = f"ε of {kind} privacy{at} at δ = {args.delta}"
            value = measures.epsilon_for_delta(m, budget, metric)
            found[f"{prefix}epsilon_at_delta"] = title, value
    kept = measure_constraints(problem, m)
    values: dict[str, Any] = {"distance": name, "constraints": [row.plain() for row in kept]}
    values |= plain_figures(found)
    shown: list[Piece] = [figures(found)]
    shown += promises("constraint", kept)
    if between:
        values["everywhere"], rows = _between(between, rate, problem.secrets.unit)
        shown += [Title("Between the centres of cells"), Facts(rows)]
    for key, own in further.items():
        if own is not None:
            values[key] = own[0]
            shown += own[1]
    return Answer(values, shown)


def _figures(
    problem: Problem, m: Mechanism, name: str, distance: Distance, at: str
) -> dict[str, tuple[str, float]]:
    """What every mechanism is measured by; ``at`` says where."""
    from optmech.analysis import measures
    from optmech.show.words import in_brackets, loss_unit, unit_of

    prior, loss = problem.prior, problem.loss
    lost, far = in_brackets(loss_unit(problem).strip()), unit_of(problem, name)
    per, of = (f", per{far}", f",{far}") if far else ("", "")
    right, left = measures.bayes_vulnerability, measures.conditional_entropy
    told = measures.mutual_information(m, prior)
    return {
        "expected_loss": (f"expected loss{lost}", measures.expected_loss(m, prior, loss)),
        "worst_loss": (f"worst-case loss{lost}", measures.worst_loss(m, loss)),
        "metric_epsilon": (f"ε of metric privacy{at} ({name}{per})", measures.epsilon(m, distance)),
        "epsilon": (f"ε of differential privacy{at} (all pairs)", measures.epsilon(m)),
        "distortion": (f"distortion privacy ({name}{of})", measures.distortion(m, prior, distance)),
        "bayes_vulnerability": ("best guess right with probability", right(m, prior)),
        "prior_entropy": ("entropy of the prior (bits)", prior.entropy),
        "conditional_entropy": ("entropy left after a report (bits)", left(m, prior)),
        "mutual_information_nats": ("mutual information (nats; a bit is 0.693)", told),
    }


def _between(
    found: Everywhere, rate: float | None, unit: str
) -> tuple[dict[str, Any], dict[str, str]]:
    """What holds between the centres of cells, for JSON and for people."""
    from optmech.base.labels import label_text
    from optmech.show.words import after

    length, own = after(unit), found.epsilon if rate is None else float(rate)
    # parts of the slack, about the size of a cell
    parts = [found.slack / part for part in (1, 10, 100)] if found.slack > 0 else []
    between = [[apart, found.epsilon_between(apart)] for apart in parts]
    values = {
        **named(found, "epsilon", "slack", "step", "edge"),
        "epsilon_between": between,
        "violated": {
            "epsilon": own,
            "share": found.violated,
            **named(found, "interval", "confidence", "pairs"),
        },
    }
    cells = " and ".join(map(label_text, found.edge or ()))
    edge = f" (cells {cells})" if cells else ""
    low, high = (f"{100 * share:.3g}" for share in found.interval)
    rows = {
        "ε between the centres": number(found.epsilon),
        "slack: ε counts for distance + slack": number(found.slack) + length,
        "log ratio at distance 0": number(found.step) + edge,
    }
    for apart, epsilon in between:
        rows[f"ε for fixes {apart:.3g}{length} apart or more"] = number(epsilon)
    rows[f"pairs of fixes above ε = {own:.6g}"] = (
        f"{100 * found.violated:.3g} % ({low} to {high} % with probability "
        f"{found.confidence:g}, {found.pairs:,} pairs)"
    )
    return values, rows
