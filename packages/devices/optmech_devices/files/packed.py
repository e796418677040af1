"""Packed files, as commands and functions of the core meet them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from optmech.certificate.check import CheckReport
from optmech.cli.inputs import point
from optmech.designs.design import Design
from optmech.errors import ProblemError, inside
from optmech.reading.errors import WORDS
from optmech.show.description import Described
from optmech.spaces.labels import find_label, label_text
from optmech.spaces.mesh.mechanism import MeshMechanism
from optmech_devices.packed.clients import client_script, sampler
from optmech_devices.packed.documents import load_any_packed as load, load_packed
from optmech_devices.packed.earth import Earth, is_earth_file
from optmech_devices.packed.make import check_packed
from optmech_devices.packed.mechanism import PackedMechanism
from optmech_devices.packed.sentences import increase_words, repeated

__all__ = ["check", "client_script", "described", "load", "sampled", "sampler"]


def check(
    path: str | Path, design: str | Path | None = None, signer: str | Path | None = None
) -> CheckReport:
    """Prove a packed file: one for the whole earth by itself, any other with the file of the design
    that it was packed from."""
    if design is not None:
        return check_packed(path, Design.load(design), signer=signer)
    if is_earth_file(path):
        return Earth.load(path, signer=signer).check()
    raise ProblemError(
        "a packed mechanism is checked against its design",
        where=path,
        remedy="Give both: optmech check city.omm design.json, or "
        "om.devices.check_packed(path, design)",
    )


Drawn = tuple[Any, Sequence[Any], Callable[[Any], str]]
"""The secret or the position, its reports, and how one is written."""


def sampled(
    path: str, secret: str | None, at: str | None, count: int, seed: int | None, signer: str | None
) -> Drawn:
    """Reports for a secret by its label, or for a position, as a command line has them."""
    if is_earth_file(path):
        return at, _on_earth(path, at, count, seed, signer), "{0[0]:.7f},{0[1]:.7f}".format
    packed = load_packed(path, signer=signer)
    if isinstance(packed, MeshMechanism):
        # beside roads positions have coordinates
        line = packed.mesh.vertices.shape[1] == 1
        where = point(str(secret) if at is None else at, packed.mesh if line else None)
        return secret if at is None else at, packed.sample_at(where, count, seed), label_text
    shown: Any
    if at is None:
        with inside("SECRET"):
            shown = find_label(packed.secrets, str(secret))
    elif (shown := packed.locate(_floats(at))) is None:
        raise ProblemError(
            "lies outside of the region",
            where="--at",
            remedy="Choose a position of the region, or pack with --outside nearest",
        )
    return shown, packed.sample(shown, size=count, seed=seed), label_text


def _on_earth(
    path: str, at: str | None, count: int, seed: int | None, signer: str | None
) -> list[tuple[float, float]]:
    """Longitudes and latitudes of reports."""
    earth = Earth.load(path, signer=signer)
    if at is None:
        raise ProblemError(
            "a file for the whole earth has no labels", where="SECRET", remedy="Give --at=X,Y"
        )
    drawn = earth.sample(earth.locate(_floats(at)), count, seed)
    return list(map(earth.coordinates, drawn))


def _floats(text: str) -> tuple[float, float]:
    """The coordinates of a position."""
    try:
        x, y = map(float, point(text))
    except OverflowError as error:
        raise ProblemError(f"{text[:40]} is too large for a position", where="--at") from error
    return x, y


def described(path: str | Path) -> Described:
    """What a packed file is: it is read and compared with its digest, and its proof is its design;
    one for the whole earth is proved again."""
    found = load(path)
    header, promise = found.header, found.promise
    loss, proved = header.loss, isinstance(found, Earth)
    # what other lines say is not said twice
    elsewhere = (*repeated(header.promises), found.guess)
    others = (said for said in found.against if said not in elsewhere)
    verdict, beside = "what it claims is proved by optmech check FILE DESIGN", "the design"
    size = f"from {found.region}"
    if isinstance(found, Earth):
        verdict, beside = "what it claims was proved again", "the least there is"
    else:
        drawn = int(found.matrix.any(axis=0).sum())
        size = f"{found.bits} bits, {size}, to {drawn:,} reports"
        if drawn < len(found.observables):
            size += f" of {len(found.observables):,}"
    return Described(
        "packed", WORDS["packed"][0], promise, f"sha256:{found.digest.hex()}",
        os.path.getsize(path), proved,
        f"{'yes: ' * proved}the bytes fit the digest; {verdict}", size, header.title,
        (*_within(found),
         (loss.name, f"{loss.packed:.6g}, {increase_words(loss.increase)} {beside}"),
         ("not promised", " ".join(others))),
    )  # fmt: skip


def _within(found: PackedMechanism | Earth) -> list[tuple[str, str]]:
    """How much one report tells who knows the prior, where a file says that."""
    stated, guess = found.header.accuracy, found.guess
    if stated is None:
        return [("best guess", guess)] if guess else []
    if isinstance(found, Earth):
        near = f"{100 * stated.quantile:g} % of reports lie within {stated.radius[0]:.4g} m"
        return [("best guess", f"The report itself, as no prior is known: {near} of the place.")]
    places, ends = found.observables, (min(stated.radius), max(stated.radius))
    if places.coordinates == "lonlat" or getattr(places, "bounds", None) is not None:
        # metres, as reports are degrees
        low, high = (f"{r / 1000:.3g} km" if r >= 1000 else f"{r:.3g} m" for r in ends)
    else:
        low, high = (f"{r:.4g} {places.unit or ''}".strip() for r in ends)
    told = (
        f"{guess} Who knows the prior expects the place with {100 * stated.quantile:g} % within "
        f"{low} of the most telling report, and within {high} of the vaguest."
    )
    return [("best guess", told.strip())]
