"""Making outputs in whole numbers close, exactly (docs/theory.md)."""

from __future__ import annotations

from fractions import Fraction

from optmech.errors import SolverError
from optmech.exact.number import Exact
from optmech.spaces.rationals import Shares
from optmech.targets.closeness import are_close

_STEP = 16
_EXCESSES = (45, 40, 35, 30, 20, 10, 0)


def closed(
    outputs: list[list[int]], factor: Fraction | None, epsilon: Exact, delta: Exact
) -> list[Shares]:
    """About-distributions, shape (T, m), in units of about one sum, as outputs that are close.

    With a ``factor`` (at most e^ε) every output is first raised to the others' over it, which
    needs no δ. Then sums are made equal, and a share of the mean of all is mixed in, the least of
    0, 2^-k, 2^-(k-16), …, 1 that suffices (1 always does).
    """
    units = outputs
    if factor is not None:
        tops = [max(column) for column in zip(*units, strict=True)]
        least = [-(-top * factor.denominator // factor.numerator) for top in tops]
        units = [[max(pair) for pair in zip(row, least, strict=True)] for row in units]
    total = max(map(sum, units))
    for row in units:
        row[row.index(max(row))] += total - sum(row)
    mean = [sum(column) for column in zip(*units, strict=True)]
    whole = [Shares.reduced(row) for row in units]
    for shift in range(total.bit_length(), -_STEP, -_STEP):
        if are_close(whole, epsilon, delta):
            return whole
        keep = ((1 << max(0, shift)) - 1) * len(units)
        whole = [
            Shares.reduced([keep * own + all_ for own, all_ in zip(row, mean, strict=True)])
            for row in units
        ]
    if are_close(whole, epsilon, delta):
        return whole
    raise SolverError("the outputs could not be made close", where="optimal target")


def diluted(
    outputs: list[Shares], others: list[Shares], share: Fraction, epsilon: Exact, delta: Exact
) -> list[list[Shares]]:
    """``others`` with a share of ``outputs``, or little more, where that is close; else nothing."""
    for shift in _EXCESSES:
        part = share * (1 + Fraction(1, 1 << shift))
        if not 0 < part <= 1:
            continue
        mixed = [
            Shares.of(
                [part * a + (1 - part) * b for a, b in zip(p.fractions, q.fractions, strict=True)],
                "outputs",
            )
            for p, q in zip(outputs, others, strict=True)
        ]
        if are_close(mixed, epsilon, delta):
            return [mixed]
    return []
