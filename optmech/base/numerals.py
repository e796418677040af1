"""Texts that are numbers: one rule for cells of tables, options, labels, arrays and files.

A numeral has the digits 0 to 9, a sign, a point and an exponent, as C and IEEE 754 write it, and
may have blanks around it; infinite numbers and what is none are ``inf``, ``infinity`` and ``nan``.
Python reads more as numbers, which nobody means: ``1_0`` is no ten, and digits of other scripts
look like what they are not. In quotes of TOML and JSON the rule is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

Read = TypeVar("Read", int, float, Fraction)


def are_numerals(texts: Sequence[str]) -> bool:
    """Whether texts hold nothing that only Python takes for a part of a number."""
    joined = "".join(texts)
    return joined.isascii() and "_" not in joined


def _read(kind: Callable[[str], Read], text: str) -> Read:
    own = text if text.isascii() else text.strip()
    if own.isascii() and "_" not in own:
        try:
            return kind(own)
        except ValueError:
            pass
    # Python's own message quotes the text, which may be somebody's place
    raise ValueError("is not a number")


def float_of_text(text: str) -> float:
    """The float that a numeral stands for; raises ValueError on any other text."""
    return _read(float, text)


def int_of_text(text: str) -> int:
    """The whole number that digits stand for; raises ValueError on any other text."""
    return _read(int, text)


def fraction_of_text(text: str) -> Fraction:
    """The fraction that a numeral, or two whole ones as ``1/3``, stand for; raises ValueError or
    ZeroDivisionError on any other text."""
    return _read(Fraction, text)


def float_of_cell(cell: str | float) -> float:
    """A number, or a numeral, as a float; raises ValueError on other texts."""
    return float_of_text(cell) if isinstance(cell, str) else float(cell)
