"""``optmech adopt``: a matrix of another tool, checked exactly and saved as a design."""

from argparse import Namespace

from optmech.cli.inputs import INPUT, option
from optmech.cli.output import Answer, Facts, claim_outputs, number
from optmech.errors import ProblemError

SUMMARY = "check a matrix of another tool against a problem and save it as a design"
EXAMPLE = "optmech adopt matrix.csv --problem montreal-small -o design.json"


ARGUMENTS = {
    **INPUT,
    "-o --output OUT": option("the design file", required=True),
    "--repair": "change a matrix that breaks a constraint as little as repair manages",
}


def run(args: Namespace) -> Answer:
    """0 when every constraint holds; otherwise nothing is written."""
    from optmech.designs.sentences import nearness
    from optmech.exchange.adoption import adopt
    from optmech.exchange.matrices import read_matrix
    from optmech.files import read_problem

    if args.problem is None:
        raise ProblemError("is missing", where="--problem", remedy="Name the matrix's problem")
    file = read_problem(args.problem)
    claim_outputs(args, [args.design, *file.inputs])
    problem = file.problem
    mechanism = read_matrix(args.design, problem.secrets, problem.observables)
    design = adopt(mechanism, problem, repair=args.repair)
    design.save(args.output)
    rows = {
        "verified": "yes",
        "loss": number(design.loss),
        "lower bound": f"{number(design.lower_bound, -1)} (without a search)",
        "status": f"{design.status}: {nearness(design)}",
    }
    return Answer(design.summary(), [Facts(rows)], {"output": "design"})
