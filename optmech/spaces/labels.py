"""Labels as people write them, found in a domain: ``3``, ``"3"``, ``[3, 4]``, ``"3,4"``."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator
from typing import Any

import numpy as np

from optmech.base.arrays import Ints
from optmech.base.labels import first_of, is_name, label_text as label_text
from optmech.base.numerals import float_of_text, int_of_text
from optmech.errors import ProblemError, described, moved
from optmech.reading.errors import show
from optmech.spaces.domain import Domain

Plain = Any


def find_label(domain: Domain, given: object) -> Hashable:
    """The label of ``domain`` that ``given`` stands for, as it is or read from text. Raises
    ProblemError when no reading is a label of the domain."""
    for candidate in _readings(given):
        try:
            domain.index(candidate)
        except ProblemError:
            continue
        return candidate
    found = (
        f"there is no {show(given)} among" if is_name(given) else f"{described(given)} is none of"
    )
    raise ProblemError(f"{found} the {len(domain)} labels", remedy=first_of(domain.labels))


def find_index(domain: Domain, given: object) -> int:
    """The index of ``find_label``."""
    return domain.index(find_label(domain, given))


def indices_of(domain: Domain, labels: Any) -> Ints:
    """The indices of many labels: a list, an array (of shape (n, 2) for the cells of a grid) or a
    pandas or xarray column. Raises ProblemError, with its place, on one that there is not."""
    listed = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    if not isinstance(listed, list):
        listed = [listed]
    out = np.empty(len(listed), dtype=np.int64)
    for k, label in enumerate(listed):
        with moved(f"secrets[{k}]"):
            out[k] = domain.index(tuple(label) if isinstance(label, list) else label)
    return out


def _readings(given: object) -> Iterator[Hashable]:
    if isinstance(given, list):
        yield tuple(given)
        return
    if isinstance(given, Hashable):
        yield given
    if not isinstance(given, str):
        return
    text = given.strip().removeprefix("(").removesuffix(")")
    parts = [number_of(part) for part in text.split(",", maxsplit=8)]
    if len(parts) == 1:
        yield parts[0]
    elif all(part is not None for part in parts):
        yield tuple(parts)


def number_of(text: str) -> int | float | None:
    """The number that a text is, whole where it can be; None for other texts."""
    for read in (int_of_text, float_of_text):
        try:
            return read(text)
        except ValueError:
            continue
    return None


def encode_label(label: Hashable) -> Plain:
    """A label as a plain value: tuples as lists. Raises ProblemError where it cannot be one."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, tuple):
        return [encode_label(part) for part in label]
    if label is None or isinstance(label, str | int | float | bool):
        if isinstance(label, float) and not math.isfinite(label):
            raise ProblemError(f"label {label!r} is not finite", where="labels")
        return label
    raise ProblemError(
        f"label {label!r} cannot be written to a file",
        where="labels",
        remedy="Use strings, numbers, or tuples of them",
    )


def decode_label(plain: Plain) -> Hashable:
    """The label that a plain value of ``encode_label`` stands for."""
    return tuple(decode_label(part) for part in plain) if isinstance(plain, list) else plain
