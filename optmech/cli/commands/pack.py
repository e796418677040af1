"""``optmech pack``: a design as a small file to sample from."""

import argparse
import math
import os
from pathlib import Path

from optmech.cli.inputs import argument
from optmech.cli.output import Answer, Facts, claim_outputs, number
from optmech.errors import ProblemError

SUMMARY = "release a design again in few bits, as a small file for devices"
EXAMPLE = "optmech pack design.json -o city.omm --bits 24 --max-loss 0.1%"
_BITS = 24
_COARSE, _MOST = 1.0, 13.8
"""Of ε times what cells add to a distance: a factor of e, and one of a million."""
_OTHERS = {
    ".json": "a design", ".toml": "a problem file", ".csv": "a table", ".tsv": "a table",
    ".parquet": "a table", ".html": "a page", ".png": "a picture", ".svg": "a picture",
}  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    argument(parser, "design DESIGN", "a file written by optmech solve -o", nargs="?")
    argument(
        parser,
        "--earth EPSILON",
        "instead of DESIGN: one file for the whole earth, of this ε per km, without a prior",
    )
    argument(
        parser,
        "--cell KM",
        "with --earth: the height of a cell, whose positions have the same reports (default: a "
        "tenth of 1/ε)",
        type=float,
    )
    argument(parser, "-o --output OUT", "the file to write", required=True)
    argument(
        parser,
        "--bits W",
        "probabilities are whole numbers over 2^W; 16, 24 (default), 32 or 48",
        type=int,
        default=None,
    )
    argument(
        parser,
        "--max-loss SHARE",
        "how much worse than the design the packed mechanism may be (default: 1%%)",
        default=None,
    )
    argument(parser, "--prior-date YYYY-MM", "when the prior's data are from; goes into the file")
    argument(
        parser,
        "--outside WHAT",
        "what a position outside the region gets: refuse (default; no report) or nearest",
        default=None,
    )
    argument(parser, "--sign KEY", "sign with this Ed25519 private key (PEM)")


def run(args: argparse.Namespace) -> Answer:
    """Write the file; report its size and what it costs."""
    claim_outputs(args, [args.design, args.sign])
    other = Path(args.output).suffix.lower()
    if other in _OTHERS:
        raise ProblemError(
            f"{args.output}: is the name of {_OTHERS[other]}, and a packed file is neither text "
            "nor table",
            where="--output",
            remedy="Use a name that ends in .omm",
        )
    if args.earth is not None:
        return _earth(args)
    if args.design is None:
        raise ProblemError("names no design", where="DESIGN", remedy=EXAMPLE)
    if args.cell is not None:
        raise ProblemError(
            "is for files of the whole earth", where="--cell", remedy="Add --earth EPSILON"
        )
    from optmech.designs.design import Design
    from optmech.packed.everywhere import PackedEverywhere
    from optmech.packed.make import pack
    from optmech.show.words import increase_words

    packed = pack(
        Design.load(args.design),
        args.output,
        _BITS if args.bits is None else args.bits,
        max_loss=args.max_loss or "1%",
        prior_date=args.prior_date,
        outside=args.outside or "refuse",
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
        ("reports", f"{columns:,} of {rows.shape[1]:,} have a probability"),
        (loss.objective, f"{number(loss.packed)}, {increase_words(loss.increase)} the design"),
        ("inequalities", "all decided exactly"),
        *([] if size is None else [("size", f"{size:,} bytes")]),
    ]
    return Answer(values, [Facts(facts)], {"output": "packed mechanism"})


def _earth(args: argparse.Namespace) -> Answer:
    """The file for the whole earth: what it promises, and what it costs."""
    from optmech.designs.promise import times
    from optmech.packed.earth import Earth

    for name in ("design", "bits", "max_loss", "prior_date", "outside"):
        if getattr(args, name) is not None:
            raise ProblemError(
                "a file for the whole earth has no design and no prior",
                where="DESIGN" if name == "design" else f"--{name.replace('_', '-')}",
                remedy="Leave it out, or --earth",
            )
    earth = Earth.of(args.earth, cell=args.cell)
    earth.save(args.output, sign=args.sign)
    header = earth.header
    notes = []
    if (log_ratio := 2 * (header.snap or 0.0) * header.constraints[0]["epsilon"]) > _COARSE:
        notes.append(
            f"note: two positions next to each other, in two cells, are told apart by a factor "
            f"{'up to ' + times(math.exp(log_ratio)) if log_ratio < _MOST else 'over a million'}: "
            "give a smaller --cell"
        )
    size = os.path.getsize(args.output) if os.path.isfile(args.output) else None
    snap, (accuracy,) = header.snap or 0.0, header.accuracy.radius if header.accuracy else (0.0,)
    values = {
        "bytes": size,
        "promise": header.constraints[0]["promise"],
        "snap": snap,
        "bands": earth.secrets.bands,
        "loss": header.loss.packed,
        "least_loss": header.loss.design,
        "accuracy": accuracy,
    }
    facts = [
        ("promise", header.constraints[0]["promise"]),
        ("between d km", f"log ratios at most ε · (d + {2 * snap:.4g} km): proved"),
        (
            "mean distance",
            f"at most {header.loss.packed:.4g} km; the least of any law that depends on "
            f"the distance alone is {header.loss.design:.4g} km",
        ),
        ("95 % within", f"{accuracy / 1000:.4g} km"),
        ("cells", f"{earth.secrets.bands:,} bands of latitude"),
        *([] if size is None else [("size", f"{size:,} bytes")]),
    ]
    return Answer(values, [Facts(facts)], {"output": "packed mechanism"}, notes)
