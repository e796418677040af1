"""``optmech attack``: what an adversary learns from a saved design."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optmech.cli.inputs import INPUT, option, read_input
from optmech.cli.output import Answer, Facts, Grid, number

if TYPE_CHECKING:
    from collections.abc import Callable

    from optmech.analysis.attacks import Attack
    from optmech.spaces.distances import Distance
    from optmech.spaces.mechanism import Mechanism
    from optmech.spaces.prior import Prior

SUMMARY = "run an inference attack on a saved design"
EXAMPLE = "optmech attack design.json --kind bayesian"
_SHOWN = 10


ARGUMENTS = {
    **INPUT,
    "--kind": option(
        "the adversary (default: optimal, who knows prior and mechanism)",
        choices=("optimal", "bayesian", "prior-free", "minimax"),
        default="optimal",
    ),
    "--distance NAME": (
        "distance of the error: euclidean, manhattan, hamming, haversine, loss, or one of the "
        "design's own (default: the one its constraints use)"
    ),
}


def run(args: argparse.Namespace) -> Answer:
    """Always 0: an attack is a measurement."""
    from optmech.problem.attack import choose_distance
    from optmech.show.figures import blind_error
    from optmech.spaces.labels import label_text

    problem, mechanism = read_input(args)
    name, distance = choose_distance(problem, args.distance)
    attack = _attack(args.kind, mechanism, problem.prior, distance)
    blind = blind_error(problem, distance)
    per_secret = {
        label_text(label): float(error)
        for label, error in zip(mechanism.secrets.labels, attack.error_per_secret, strict=True)
    }
    values = {
        "kind": args.kind,
        "distance": name,
        "unit": problem.secrets.unit,
        "error": attack.error,
        "blind_error": blind,
        "worst_error": attack.worst_error,
        "value": attack.value,
        "lower_bound": attack.lower_bound,
        "error_per_secret": per_secret,
    }
    rows = [
        ("attack", attack.name),
        ("distance", name),
        ("expected error", f"{number(attack.error)} under the design's prior"),
        ("without seeing anything", number(blind)),
        ("largest error", number(attack.worst_error)),
    ]
    if attack.value is not None and attack.lower_bound is not None:
        rows.append(("minimised value", number(attack.value)))
        rows.append(("its lower bound", number(attack.lower_bound)))
    easiest = sorted(per_secret.items(), key=lambda item: item[1])[:_SHOWN]
    listed = [(label, number(error)) for label, error in easiest]
    return Answer(values, [Facts(rows), Grid(("easiest secrets", "error"), listed, right=(1,))])


def _attack(kind: str, mechanism: Mechanism, prior: Prior, distance: Distance) -> Attack:
    from optmech.analysis import attacks

    run: Callable[..., Attack] = getattr(attacks, kind.replace("-", "_"))
    if kind in ("optimal", "bayesian"):
        return run(mechanism, prior, distance)
    return run(mechanism, distance, evaluated_under=prior)
