"""``optmech compare-coarsening``: what devices do to locations, beside certified designs."""

from argparse import Namespace

from optmech.cli.output import Answer, Grid, named, note

SUMMARY = "measure the coarsening that devices ship, beside certified designs"
EXAMPLE = "optmech compare-coarsening grid-4x4"


ARGUMENTS = {
    "problem FILE|NAME": (
        "a problem file, or a gallery name: its places and prior are used, not its "
        "constraints; coordinates are taken for km"
    ),
    "-q --quiet": "no progress",
}


def run(args: Namespace) -> Answer:
    """Always 0: numbers are reported, not judged."""
    from optmech.files import read_problem
    from optmech_sweeps.coarsening import compare_coarsening

    prior = read_problem(args.problem).problem.prior
    found = compare_coarsening(prior, progress=None if args.quiet else note)
    names = ("name", "loss", "epsilon", "attack", "design_loss", "design_epsilon", "design_attack")
    rows = [named(row, *names) for row in found]

    def short(value: float) -> str:
        return "–" if value != value else "infinite" if value == float("inf") else f"{value:.4g}"

    table = Grid(
        ("coarsening", "loss", "ε", "attack", "certified: loss", "ε", "attack"),
        [[name, *map(short, numbers)] for name, *numbers in map(dict.values, rows)],
        right=range(1, 7),
    )
    said = (
        "attack: error of the optimal attack under the prior; certified: the design of least ε "
        "whose loss is no larger"
    )
    return Answer({"rows": rows, "unit": prior.domain.unit}, [table], said=[said])
