"""Rigorous enclosures of f-divergences, by ball arithmetic (python-flint)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import flint

from optmech.generators import Ball, Generator


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Balls of this relative precision inside."""
    with flint.ctx.workprec(bits):
        yield


def divergence_ball(generator: Generator, p: Sequence[int], q: Sequence[int]) -> Ball | None:
    """D_f of the distributions p / Σp and q / Σq of whole numbers >= 0, at the current precision;
    None where it is infinite."""
    total_p, total_q = sum(p), sum(q)
    out: Any = flint.arb(0)
    for a, b in zip(p, q, strict=True):
        if a == 0 and b == 0:
            continue
        left, right = flint.arb(a) / total_p, flint.arb(b) / total_q
        if a and b:
            out += generator.term_ball(left, right)
            continue
        # what is left of q f(p/q): q f(0), or p times the recession slope
        share, weight = (right, generator.at_zero) if b else (left, generator.recession)
        if weight == float("inf"):
            return None
        out += share * flint.arb(weight)
    return out
