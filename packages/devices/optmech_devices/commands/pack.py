"""``optmech pack``: a design as a small file to sample from."""

import os
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optmech.cli.inputs import option
from optmech.cli.output import Answer, Facts, claim_outputs, number
from optmech.errors import ProblemError
from optmech.exact.number import from_above

SUMMARY = "release a design again in few bits, as a small file for devices"
EXAMPLE = "optmech pack design.json -o city.omm --bits 24 --max-loss 0.1%"
_BITS = 24
_COARSE = 1.0
"""Of ε times what cells add to a distance: a factor of e."""
_OTHERS = {
    ".json": "a design", ".toml": "a problem file", ".csv": "a table", ".tsv": "a table",
    ".parquet": "a table", ".html": "a page", ".png": "a picture", ".svg": "a picture",
}  # fmt: skip


ARGUMENTS = {
    "design DESIGN": option("a file written by optmech solve -o", nargs="?"),
    "--earth EPSILON": "instead of DESIGN: one file for the whole earth, of this ε per km, "
    "without a prior",
    "--cell KM:float": (
        "with --earth: the height of a cell, whose positions have the same reports (default: a "
        "tenth of 1/ε)"
    ),
    "-o --output OUT": option("the file to write", required=True),
    "--bits W:int": "probabilities are whole numbers over 2^W; 16, 24 (default), 32 or 48",
    "--max-loss SHARE": "how much worse than the design the packed mechanism may be (default: 1%%)",
    "--prior-date YYYY-MM": "when the prior's data are from; goes into the file",
    "--outside WHAT": (
        "what a position outside the region gets: refuse (default; no report) or nearest"
    ),
    "--sign KEY": "sign with this Ed25519 private key (PEM)",
}


def run(args: Namespace) -> Answer:
    """Write the file; report its size and what it costs."""
    claim_outputs(args, [args.design, args.sign])
    if (other := _OTHERS.get(Path(args.output).suffix.lower())) is not None:
        raise ProblemError(
            f"{args.output}: is the name of {other}, and a packed file is neither text nor table",
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
    from optmech_devices.packed.make import pack
    from optmech_devices.packed.sentences import increase_words

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
    columns = int(packed.matrix.any(axis=0).sum())
    of = "control points" if packed.is_everywhere else "secrets"
    values = {
        "bits": packed.bits,
        of.replace(" ", "_"): packed.rows.shape[0],
        "reports": columns,
        "loss": loss.packed,
        "design_loss": loss.design,
        "increase": loss.increase,
    }
    facts = {
        "bits": str(packed.bits),
        of: f"{packed.rows.shape[0]:,}",
        "reports": f"{columns:,} of {packed.rows.shape[1]:,} have a probability",
        loss.name: f"{number(loss.packed)}, {increase_words(loss.increase)} the design",
        "inequalities": "all decided exactly",
    }
    return _answer(args.output, values, facts)


def _earth(args: Namespace) -> Answer:
    """The file for the whole earth: what it promises, and what it costs."""
    from optmech.designs.promise import at_most
    from optmech_devices.packed.earth import Earth

    for name in ("design", "bits", "max_loss", "prior_date", "outside"):
        if getattr(args, name) is not None:
            raise ProblemError(
                "a file for the whole earth has no design and no prior",
                where="DESIGN" if name == "design" else f"--{name.replace('_', '-')}",
                remedy="Leave it out, or --earth",
            )
    earth = Earth.of(args.earth, cell=args.cell)
    earth.save(args.output, sign=args.sign)
    header, snap, accuracy = earth.header, earth.header.snap or 0.0, earth.accuracy(0)
    promise = earth.protects[0]
    notes = []
    if (log_ratio := 2 * snap * (header.rate or 0.0)) > _COARSE:
        notes.append(
            "two positions next to each other, in two cells, are told apart by up to "
            f"{at_most(log_ratio)} times: give a smaller --cell"
        )
    values = {
        "promise": promise,
        "snap": snap,
        "bands": earth.secrets.bands,
        "loss": header.loss.packed,
        "least_loss": header.loss.design,
        "accuracy": accuracy,
    }
    facts = {
        "promise": promise,
        "between d km": f"log ratios at most ε · (d + {from_above(2 * snap, 4)} km): proved",
        "mean distance": f"at most {from_above(header.loss.packed, 4)} km; the least of any law "
        f"that depends on the distance alone is {header.loss.design:.4g} km",
        "95 % within": f"{accuracy / 1000:.4g} km",
        "cells": f"{earth.secrets.bands:,} bands of latitude",
    }
    return _answer(args.output, values, facts, notes)


def _answer(
    path: str, values: dict[str, Any], facts: dict[str, str], notes: Sequence[str] = ()
) -> Answer:
    """With the size of the file, where that is one."""
    size = os.path.getsize(path) if os.path.isfile(path) else None
    if size is not None:
        facts["size"] = f"{size:,} bytes"
    files = {"output": "packed mechanism"}
    return Answer({"bytes": size, **values}, [Facts(facts)], files, notes)
