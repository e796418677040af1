"""``optmech noise``: the best noise for a number that is released, with its proof."""

from argparse import Namespace
from typing import Any

from optmech.cli.output import Answer, Facts, claim_outputs, named, note, number
from optmech.errors import ProblemError

SUMMARY = "find the best noise for a count or a sum"
EXAMPLE = "optmech noise --epsilon 1 --delta 1e-6 --loss square -o noise.json"


ARGUMENTS = {
    "--epsilon E": 'ε, such as 0.5 or "ln 3"',
    "--order A": "ε bounds Rényi divergences of this order, such as 2 or 3/2 (1: Kullback-Leibler)",
    "--zcdp RHO": "divergences of every order α are at most RHO α, without ε",
    "--budget B": "the least divergence of --order where the loss is at most B",
    "--delta D=0": "δ (default: 0)",
    "--sensitivity S=1": "by how much one person changes the number (default: 1)",
    "--real": "for a real number, and not a whole one",
    "--cells N": "cells of a sensitivity (with --real; default: auto)",
    "--loss LOSS=absolute": (
        "absolute, square, threshold, or a table such as 0,1,1.5, with --real corners such as "
        "0:0,1:1,2:4, or 'convex 0:0,1:1,2:4,3:9' of a convex loss (default: absolute)"
    ),
    "--width W": "noise up to W costs nothing (loss threshold)",
    "--dimensions D:int=1": "2 for pairs of numbers (default: 1)",
    "--norm NORM": "the norm of changes of a pair: l1, l2 or linf (default: l1)",
    "--loss-norm NORM": "the norm of noise that costs (default: the same)",
    "--for-releases K:int=1": (
        "K numbers, each with noise of its own and the same law, keep ε and δ together (default: 1)"
    ),
    "-o --output OUT": "write the noise to this JSON file",
    "--picture PNG": "draw the noise",
}


def run(args: Namespace) -> Answer:
    """0 with noise whose promise is verified."""
    claim_outputs(args, [])
    design = _best(args)
    if args.output:
        design.save(args.output)
    if args.picture:
        from optmech.show.plots.noise import noise_picture

        noise_picture(design, args.picture)
    least = None
    if args.budget is not None:
        divergence = design.least_divergence(args.budget)
        least = f"{number(divergence)}, of all noise that costs no more"
    facts = {
        "promise": design.promise,
        "verified": f"yes: {design.decided[1]}",
        "least divergence": least,
        design.measured: number(design.loss),
        "lower bound": f"{number(design.lower_bound)}, of {design.compared}",
        "status": f"{design.status}: a gap of {design.gap:.2g}",
        "noise": design.shown,
        "seconds": f"{design.seconds:.2f}",
    }
    files = {"output": "noise", "picture": "picture"}
    return Answer(design.summary(), [Facts(facts)], files)


def _best(args: Namespace) -> Any:
    """The noise that is asked for."""
    from optmech.noise import line, optimum
    from optmech.noise.additive.real_loss import RealLoss

    planar = args.dimensions != 1 or args.norm or args.loss_norm
    asked = {**_promise(args), "for_releases": args.for_releases, "note": note}
    if not args.real:
        if args.cells is not None:
            raise ProblemError("goes with --real", where="--cells", remedy="Leave it out")
        best: Any = optimum.optimal
        return best(
            sensitivity=_whole(args.sensitivity, "--sensitivity"),
            loss=_loss(args.loss),
            width=None if args.width is None else _whole(args.width, "--width"),
            **(named(args, "dimensions", "norm", "loss_norm") if planar else {}),
            **asked,
        )
    if planar:
        raise ProblemError(
            "is for one number",
            where="--real",
            remedy="Leave out --dimensions, --norm and --loss-norm",
        )
    name, _, rest = args.loss.rpartition(" ")
    corners = [tuple(part.split(":")) for part in rest.split(",")]
    loss: object = corners if ":" in rest else args.loss
    if name == "convex":
        loss = RealLoss.convex(corners)
    real: Any = line.real
    return real(
        loss=loss,
        sensitivity=args.sensitivity,
        cells="auto" if args.cells in (None, "auto") else _whole(args.cells, "--cells"),
        width=args.width,
        **asked,
    )


def _promise(args: Namespace) -> dict[str, Any]:
    """What bounds divergences; ε and δ where nothing does."""
    given = {"--order": args.order, "--zcdp": args.zcdp, "--budget": args.budget}
    named = next((name for name, value in given.items() if value is not None), None)
    if named is None:
        if args.epsilon is None:
            raise ProblemError("is missing", where="--epsilon", remedy="Give ε, such as 0.5")
        return {"epsilon": args.epsilon, "delta": args.delta}
    if args.delta != "0":
        raise ProblemError("goes with ε alone", where=named, remedy="Leave out --delta")
    if args.zcdp is not None:
        if args.order is not None or args.epsilon is not None or args.budget is not None:
            raise ProblemError(
                "is a promise of its own",
                where="--zcdp",
                remedy="Leave out --order, --epsilon and --budget",
            )
        return {"zcdp": args.zcdp}
    if args.order is None:
        raise ProblemError("goes with --order", where="--budget", remedy="Give --order 1 as well")
    if (args.budget is None) == (args.epsilon is None):
        raise ProblemError(
            "goes with one of --epsilon and --budget", where="--order", remedy="Give one of them"
        )
    if args.budget is not None:
        return {"renyi": args.order, "budget": args.budget}
    return {"renyi": (args.order, args.epsilon)}


def _whole(text: str, where: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ProblemError(
            f"{text[:60]!r} is not a whole number", where=where, remedy="Give one such as 1"
        ) from error


def _loss(text: str) -> str | list[float]:
    if "," not in text:
        return text
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        raise ProblemError(
            f"{text[:60]!r} is no table",
            where="--loss",
            remedy="Give numbers with commas between them: c(0),c(1),…",
        ) from error
