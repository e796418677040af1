"""``optmech noise``: the best noise for a number that is released, with its proof."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, cast

from optmech.cli.inputs import option
from optmech.cli.output import Answer, Facts, claim_outputs, note, number
from optmech.errors import ProblemError

if TYPE_CHECKING:
    from optmech.noise.additive.result import ProvedNoise

SUMMARY = "find the best noise for a count or a sum"
EXAMPLE = "optmech noise --epsilon 1 --delta 1e-6 --loss square -o noise.json"


ARGUMENTS = {
    "--epsilon E": 'ε, such as 0.5 or "ln 3"',
    "--order A": "ε bounds Rényi divergences of this order, such as 2 or 3/2 (1: Kullback-Leibler)",
    "--zcdp RHO": "divergences of every order α are at most RHO α, without ε",
    "--budget B": "the least divergence of --order where the loss is at most B",
    "--delta D": option("δ (default: 0)", default="0"),
    "--sensitivity S": option(
        "by how much one person changes the number (default: 1)", default="1"
    ),
    "--real": "for a real number, and not a whole one",
    "--cells N": "cells of a sensitivity (with --real; default: auto)",
    "--loss LOSS": option(
        "absolute, square, threshold, or a table such as 0,1,1.5, with --real corners such as "
        "0:0,1:1,2:4, or 'convex 0:0,1:1,2:4,3:9' of a convex loss (default: absolute)",
        default="absolute",
    ),
    "--width W": "noise up to W costs nothing (loss threshold)",
    "--dimensions D": option("2 for pairs of numbers (default: 1)", type=int, default=1),
    "--norm NORM": "the norm of changes of a pair: l1, l2 or linf (default: l1)",
    "--loss-norm NORM": "the norm of noise that costs (default: the same)",
    "--for-releases K": option(
        "K numbers, each with noise of its own and the same law, keep ε and δ together "
        "(default: 1)",
        type=int,
        default=1,
    ),
    "-o --output OUT": "write the noise to this JSON file",
    "--picture PNG": "draw the noise",
}


def run(args: argparse.Namespace) -> Answer:
    """0 with noise whose promise is verified."""
    claim_outputs(args, [])
    design = _best(args)
    if args.output:
        design.save(args.output)
    if args.picture:
        from optmech.show.plots.noise import noise_picture

        noise_picture(design, args.picture)
    facts = [
        ("promise", design.promise),
        ("verified", f"yes: {design.decided[1]}"),
        (design.measured, number(design.loss)),
        ("lower bound", f"{number(design.lower_bound)}, of {design.compared}"),
        ("status", f"{design.status}: a gap of {design.gap:.2g}"),
        ("noise", design.shown),
        ("seconds", f"{design.seconds:.2f}"),
    ]
    if args.budget is not None:
        least = cast("Any", design).least_divergence(args.budget)
        facts.insert(2, ("least divergence", f"{number(least)}, of all noise that costs no more"))
    files = {"output": "noise", "picture": "picture"}
    return Answer(design.summary(), [Facts(facts)], files)


def _best(args: argparse.Namespace) -> ProvedNoise:
    """The noise that is asked for."""
    from optmech.noise.optimum import optimal

    if args.real:
        return _real(args)
    if args.cells is not None:
        raise ProblemError("goes with --real", where="--cells", remedy="Leave it out")
    asked: dict[str, Any] = {
        "sensitivity": _whole(args.sensitivity, "--sensitivity"),
        "loss": _loss(args.loss),
        "width": None if args.width is None else _whole(args.width, "--width"),
        "for_releases": args.for_releases,
        "note": note,
    }
    if args.dimensions != 1 or args.norm or args.loss_norm:
        asked |= {"dimensions": args.dimensions, "norm": args.norm, "loss_norm": args.loss_norm}
    promise = _promise(args)
    if "renyi" in promise or "zcdp" in promise:
        return cast("ProvedNoise", optimal(**promise, **asked))
    return cast("ProvedNoise", optimal(args.epsilon, args.delta, **asked))


def _promise(args: argparse.Namespace) -> dict[str, Any]:
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


def _real(args: argparse.Namespace) -> ProvedNoise:
    """The noise for a real number that is asked for."""
    from optmech.noise.additive.real_loss import RealLoss
    from optmech.noise.line import real

    if args.dimensions != 1 or args.norm or args.loss_norm:
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
    return cast(
        "ProvedNoise",
        real(
            **_promise(args),
            loss=loss,
            sensitivity=args.sensitivity,
            cells="auto" if args.cells in (None, "auto") else _whole(args.cells, "--cells"),
            width=args.width,
            for_releases=args.for_releases,
            note=note,
        ),
    )


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
