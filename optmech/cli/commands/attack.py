"""``optmech attack``: what an adversary learns from a saved design."""

from argparse import Namespace
from typing import Any

from optmech.cli.inputs import INPUT, option, read_input
from optmech.cli.output import Answer, Facts, Grid, named, number
from optmech.errors import ProblemError

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
    "--over": option(
        "of --kind minimax: the least worst error over secrets (default) or pairs of them",
        choices=("secrets", "pairs"),
        default=None,
    ),
    "--distance NAME": (
        "distance of the error: euclidean, manhattan, hamming, haversine, loss, or one of the "
        "design's own (default: the one its constraints use)"
    ),
}


def run(args: Namespace) -> Answer:
    """Always 0: an attack is a measurement."""
    from optmech.analysis import attacks
    from optmech.problem.attack import choose_distance
    from optmech.show.figures import blind_error
    from optmech.spaces.labels import label_text

    problem, mechanism = read_input(args)
    name, distance = choose_distance(problem, args.distance)
    called = {"optimal": "optimal_attack", "prior-free": "prior_free"}
    run: Any = getattr(attacks, called.get(args.kind, args.kind))
    if args.over is not None and args.kind != "minimax":
        raise ProblemError("belongs to --kind minimax", where="--over", remedy="Leave it out")
    if args.kind in ("optimal", "bayesian"):
        attack = run(mechanism, problem.prior, distance)
    else:
        more = {} if args.over is None else {"over": args.over}
        attack = run(mechanism, distance, evaluated_under=problem.prior, **more)
    blind = blind_error(problem, distance)
    errors = map(float, attack.error_per_secret)
    per_secret = dict(zip(map(label_text, mechanism.secrets.labels), errors, strict=True))
    values = {
        "kind": args.kind,
        "distance": name,
        "unit": problem.secrets.unit,
        "blind_error": blind,
        **named(attack, "error", "worst_error", "value", "lower_bound"),
        "error_per_secret": per_secret,
    }
    rows = {
        "attack": attack.name,
        "distance": name,
        "expected error": f"{number(attack.error)} under the design's prior",
        "without seeing anything": number(blind),
        "largest error": number(attack.worst_error),
    }
    if attack.value is not None:
        rows["minimised value"] = number(attack.value)
        rows["its lower bound"] = number(attack.lower_bound, -1)
    easiest = sorted(per_secret.items(), key=lambda item: item[1])[:_SHOWN]
    listed = [(label, number(error)) for label, error in easiest]
    return Answer(values, [Facts(rows), Grid(("easiest secrets", "error"), listed, right=(1,))])
