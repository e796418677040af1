"""``optmech pack``: a design as a small file to sample from."""

import argparse
import os

from optmech.cli.inputs import argument
from optmech.cli.output import Answer, Facts, claim_outputs, number

SUMMARY = "release a design again in few bits, as a small file for devices"
EXAMPLE = "optmech pack design.json -o city.omm --bits 24 --max-loss 0.1%"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument(parser, "design DESIGN", "a file written by optmech solve -o")
    argument(parser, "-o --output OUT", "the file to write", required=True)
    argument(
        parser,
        "--bits W",
        "probabilities are whole numbers over 2^W; 16, 24 (default), 32 or 48",
        type=int,
        default=24,
    )
    argument(
        parser,
        "--max-loss SHARE",
        "how much worse than the design the packed mechanism may be (default: 1%%)",
        default="1%",
    )
    argument(parser, "--prior-date YYYY-MM", "when the prior's data are from; goes into the file")
    argument(
        parser,
        "--outside WHAT",
        "what a position outside the region gets: refuse (default; no report) or nearest",
        default="refuse",
    )
    argument(parser, "--sign KEY", "sign with this Ed25519 private key (PEM)")


def run(args: argparse.Namespace) -> Answer:
    """Write the file; report its size and what it costs."""
    from optmech.designs.design import Design
    from optmech.packed.everywhere import PackedEverywhere
    from optmech.packed.make import pack

    claim_outputs(args, [args.design, args.sign])
    packed = pack(
        Design.load(args.design),
        args.output,
        args.bits,
        max_loss=args.max_loss,
        prior_date=args.prior_date,
        outside=args.outside,
        sign=args.sign,
    )
    loss = packed.header.loss
    rows = packed.rows if isinstance(packed, PackedEverywhere) else packed.exact
    size = os.path.getsize(args.output) if os.path.isfile(args.output) else None
    columns = int(packed.matrix.any(axis=0).sum())
    of = "control points" if isinstance(packed, PackedEverywhere) else "secrets"
    values = {
        "bytes": size,
        "bits": packed.bits,
        of.replace(" ", "_"): rows.shape[0],
        "reports": columns,
        "loss": loss.packed,
        "design_loss": loss.design,
        "increase": loss.increase,
    }
    facts = [
        ("bits", str(packed.bits)),
        (of, f"{rows.shape[0]:,}"),
        ("reports", f"{columns:,} of {rows.shape[1]:,}"),
        (loss.objective, f"{number(loss.packed)}, {loss.increase:+.2g} of the design's"),
        ("inequalities", "all decided exactly"),
        *([] if size is None else [("size", f"{size:,} bytes")]),
    ]
    return Answer(values, [Facts(facts)], {"output": "packed mechanism"})
