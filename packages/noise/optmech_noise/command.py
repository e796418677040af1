"""``optmech noise``: the best noise for a number that is released, with its proof."""

from argparse import Namespace
from typing import Any

from optmech.base.numerals import float_of_text, int_of_text
from optmech.cli.output import Answer, Facts, claim_outputs, note, number
from optmech.errors import ProblemError
from optmech.exact.number import from_above

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
    "--dimensions D:int=1": (
        "2 for pairs of whole numbers, with --real 2 or 3 for points of the plane or of space "
        "(default: 1)"
    ),
    "--norm NORM": "the norm of changes of a pair: l1, l2 or linf (default: l1)",
    "--loss-norm NORM": "the norm of noise that costs (default: the same)",
    "--for-releases K:int=1": (
        "K numbers, each with noise of its own and the same law, keep ε and δ together (default: 1)"
    ),
    "--curve PAIRS": "several pairs of ε and δ at once, such as 0:0.3,1:0.01, without --epsilon",
    "--gdp MU": "the tangents of the Gaussian trade-off curve of MU, without --epsilon",
    "--support RANGE": "noise within LOW:HIGH only, such as 0: for noise that only adds",
    "-o --output OUT": "write the noise to this JSON file",
    "--picture PNG": "draw the noise",
}
_DEFAULTS = {"--delta": "0", "--for-releases": 1, "--dimensions": 1, "--real": False}
"""Of options that are not None where they are left out."""
_PAIR = "--dimensions --norm --loss-norm"
"""What is for noise of several numbers."""
_APART = f"--delta --for-releases {_PAIR}"
"""What is for (ε, δ)."""


def run(args: Namespace) -> Answer:
    """0 with noise whose promise is verified."""
    claim_outputs(args, [])
    design = _best(args)
    if args.output:
        design.save(args.output)
    if args.picture:
        from optmech_noise.picture import noise_picture

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
        "lower bound": f"{number(design.lower_bound, -1)}, of {design.compared}",
        "status": f"{design.status}: a gap of {from_above(design.gap, 2)}",
        "noise": design.shown,
        "seconds": f"{design.seconds:.2f}",
    }
    files = {"output": "noise", "picture": "picture"}
    return Answer(design.summary(), [Facts(facts)], files)


def _best(args: Namespace) -> Any:
    import optmech_noise as noise

    asked = _asked(args)
    if args.zcdp is not None:
        _refuse(args, "does not go with --zcdp", f"--epsilon --order --budget {_APART}")
        return noise.zcdp(args.zcdp, **asked)
    if args.order is not None:
        _refuse(args, "does not go with --order", _APART)
        if (args.budget is None) == (args.epsilon is None):
            raise ProblemError(
                "goes with one of --epsilon and --budget",
                where="--order",
                remedy="Give one of them",
            )
        if args.budget is not None:
            return noise.least_divergence(args.order, args.budget, **asked)
        return noise.rdp((args.order, args.epsilon), **asked)
    _refuse(args, "goes with --order", "--budget")
    stated = {"epsilon": args.epsilon, "delta": args.delta}
    best: Any = noise.real if args.real else noise.optimal
    shaped = _shaped(args)
    if shaped:
        others = f"--for-releases {_PAIR}{' --cells' * args.real}"
        _refuse(args, "does not go with --curve, --gdp or --support", others)
        if "curve" in shaped:
            _refuse(args, "does not go with a curve", "--epsilon --delta")
            stated = {}
        if args.real:
            _refuse(args, "does not go with --real", "--support")
        return best(**stated, **asked, **shaped)
    if args.epsilon is None:
        raise ProblemError("is missing", where="--epsilon", remedy="Give ε, such as 0.5")
    if args.real and args.dimensions != 1:
        if args.dimensions not in (2, 3):
            raise ProblemError("is none of 1, 2 and 3", where="--dimensions", remedy="Give 2 or 3")
        _refuse(args, "does not go with points", "--for-releases --width --loss-norm")
        if args.norm not in (None, "l2"):
            raise ProblemError("is not l2, which points have", where="--norm", remedy="Give l2")
        del asked["width"]
        return noise.radial(**stated, dimension=args.dimensions, **asked)
    if args.dimensions not in (1, 2):
        raise ProblemError("is neither 1 nor 2", where="--dimensions", remedy="Give 1 or 2")
    if args.dimensions == 2:
        _refuse(args, "is for a single number", "--real --for-releases")
        norm = args.norm or "l1"
        return noise.for_pairs(**stated, norm=norm, loss_norm=args.loss_norm, **asked)
    _refuse(args, "goes with --dimensions 2", _PAIR)
    return best(**stated, for_releases=args.for_releases, **asked)


def _shaped(args: Namespace) -> dict[str, Any]:
    """A curve, and where noise may be."""
    import optmech_noise as noise

    found: dict[str, Any] = {}
    if args.curve is not None:
        _refuse(args, "goes without --curve", "--gdp")
        found["curve"] = [tuple(pair.split(":")) for pair in args.curve.split(",")]
    elif args.gdp is not None:
        found["curve"] = noise.curve(gdp=args.gdp)
    if args.support is not None:
        ends = args.support.split(":")
        if len(ends) != 2:
            raise ProblemError("is no range", where="--support", remedy="Give LOW:HIGH, such as 0:")
        found["support"] = tuple(_whole(end, "--support") if end else None for end in ends)
    return found


def _asked(args: Namespace) -> dict[str, Any]:
    """What goes with every promise."""
    from optmech_noise.additive.real_loss import RealLoss

    asked: dict[str, Any] = {"note": note}
    if args.real:
        name, _, rest = args.loss.rpartition(" ")
        corners = [tuple(part.split(":")) for part in rest.split(",")]
        asked["loss"] = corners if ":" in rest else args.loss
        if name == "convex":
            asked["loss"] = RealLoss.convex(corners)
        asked["cells"] = "auto" if args.cells in (None, "auto") else _whole(args.cells, "--cells")
        asked |= {"sensitivity": args.sensitivity, "width": args.width}
    else:
        _refuse(args, "goes with --real", "--cells")
        asked["sensitivity"] = _whole(args.sensitivity, "--sensitivity")
        asked["width"] = None if args.width is None else _whole(args.width, "--width")
        asked["loss"] = _loss(args.loss)
    return asked


def _refuse(args: Namespace, message: str, names: str) -> None:
    """Raise ProblemError for options that were given."""
    for name in names.split():
        if vars(args)[name[2:].replace("-", "_")] != _DEFAULTS.get(name):
            raise ProblemError(message, where=name, remedy="Leave it out")


def _whole(text: str, where: str) -> int:
    try:
        return int_of_text(text)
    except ValueError as error:
        raise ProblemError(
            f"{text[:60]!r} is not a whole number", where=where, remedy="Give one such as 1"
        ) from error


def _loss(text: str) -> str | list[float]:
    if "," not in text:
        return text
    try:
        return [float_of_text(part) for part in text.split(",")]
    except ValueError as error:
        raise ProblemError(
            f"{text[:60]!r} is no table",
            where="--loss",
            remedy="Give numbers with commas between them: c(0),c(1),…",
        ) from error
