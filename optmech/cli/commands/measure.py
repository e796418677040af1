"""``optmech measure``: privacy and utility of a saved design, from its matrix alone."""

from __future__ import annotations

import argparse

from optmech.cli import output
from optmech.cli.inputs import add_input, read_input

SUMMARY = "measure privacy and utility of a saved design"
EXAMPLE = 'optmech measure design.json --distance euclidean --epsilon "ln 2"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_input(parser)
    parser.add_argument(
        "--distance",
        metavar="NAME",
        help="distance that ε is per: euclidean, manhattan, hamming, haversine, loss, or one of "
        "the design's own (default: the one its constraints use)",
    )
    parser.add_argument(
        "--epsilon", metavar="E", help='report the least δ at this ε (a number, or "ln 3")'
    )
    parser.add_argument("--delta", metavar="D", help="report the least ε at this δ")


def run(args: argparse.Namespace) -> int:
    """Always 0: numbers are reported, not judged."""
    from optmech.analysis import measures
    from optmech.exact.number import parse_exact
    from optmech.show.measured import choose_distance, measure_constraints

    rate = None if args.epsilon is None else parse_exact(args.epsilon, where="--epsilon")
    budget = None if args.delta is None else parse_exact(args.delta, where="--delta")
    problem, m = read_input(args)
    name, distance = choose_distance(problem, args.distance)
    prior, loss = problem.prior, problem.loss
    right, left = measures.bayes_vulnerability(m, prior), measures.conditional_entropy(m, prior)
    told = measures.mutual_information(m, prior)
    found = {
        "expected_loss": ("expected loss", measures.expected_loss(m, prior, loss)),
        "worst_loss": ("worst-case loss", measures.worst_loss(m, loss)),
        "metric_epsilon": (f"ε of metric privacy ({name})", measures.epsilon(m, distance)),
        "epsilon": ("ε of differential privacy (all pairs)", measures.epsilon(m)),
        "distortion": (f"distortion privacy ({name})", measures.distortion(m, prior, distance)),
        "bayes_vulnerability": ("best guess right with probability", right),
        "prior_entropy": ("entropy of the prior (bits)", prior.entropy),
        "conditional_entropy": ("entropy left after a report (bits)", left),
        "mutual_information": ("mutual information (bits)", told),
    }
    variants = (("metric_", "metric", distance), ("", "differential", None))
    if rate is not None:
        for prefix, kind, metric in variants:
            value = measures.delta(m, rate, metric)
            title = f"δ of {kind} privacy at ε = {args.epsilon}"
            found[f"{prefix}delta_at_epsilon"] = title, value
    if budget is not None:
        for prefix, kind, metric in variants:
            value = measures.epsilon_for_delta(m, budget, metric)
            title = f"ε of {kind} privacy at δ = {args.delta}"
            found[f"{prefix}epsilon_at_delta"] = title, value
    kept = measure_constraints(problem, m)
    if args.json:
        values = {key: value for key, (_, value) in found.items()}
        rows = [row.plain() for row in kept]
        output.print_json({"distance": name, **values, "constraints": rows})
        return 0
    output.facts([(title, output.number(value)) for title, value in found.values()])
    output.promises("constraint", kept)
    return 0
