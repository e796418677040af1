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
    found = {
        "expected_loss": measures.expected_loss(m, problem.prior, problem.loss),
        "worst_loss": measures.worst_loss(m, problem.loss),
        "metric_epsilon": measures.epsilon(m, distance),
        "epsilon": measures.epsilon(m),
        "distortion": measures.distortion(m, problem.prior, distance),
        "bayes_vulnerability": measures.bayes_vulnerability(m, problem.prior),
        "prior_entropy": problem.prior.entropy,
        "conditional_entropy": measures.conditional_entropy(m, problem.prior),
        "mutual_information": measures.mutual_information(m, problem.prior),
    }
    if rate is not None:
        found["metric_delta_at_epsilon"] = measures.delta(m, rate, distance)
        found["delta_at_epsilon"] = measures.delta(m, rate)
    if budget is not None:
        found["metric_epsilon_at_delta"] = measures.epsilon_for_delta(m, budget, distance)
        found["epsilon_at_delta"] = measures.epsilon_for_delta(m, budget)
    kept = measure_constraints(problem, m)
    if args.json:
        rows = [row.plain() for row in kept]
        output.print_json({"distance": name, **found, "constraints": rows})
        return 0
    titles = _titles(name, args.epsilon, args.delta)
    output.facts([(titles[key], output.number(value)) for key, value in found.items()])
    output.promises("constraint", kept)
    return 0


def _titles(name: str, epsilon: str | None, delta: str | None) -> dict[str, str]:
    return {
        "expected_loss": "expected loss",
        "worst_loss": "worst-case loss",
        "metric_epsilon": f"ε of metric privacy ({name})",
        "epsilon": "ε of differential privacy (all pairs)",
        "distortion": f"distortion privacy ({name})",
        "bayes_vulnerability": "best guess right with probability",
        "prior_entropy": "entropy of the prior (bits)",
        "conditional_entropy": "entropy left after a report (bits)",
        "mutual_information": "mutual information (bits)",
        "metric_delta_at_epsilon": f"δ of metric privacy at ε = {epsilon}",
        "delta_at_epsilon": f"δ of differential privacy at ε = {epsilon}",
        "metric_epsilon_at_delta": f"ε of metric privacy at δ = {delta}",
        "epsilon_at_delta": f"ε of differential privacy at δ = {delta}",
    }
