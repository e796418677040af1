"""Closed-form reasons why a statement cannot be satisfied, each with its numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from optmech.certificate import values
from optmech.certificate.bound import infeasibility_margin
from optmech.certificate.factors import Factors
from optmech.certificate.known import require_known
from optmech.certificate.multipliers import Multipliers
from optmech.statement.statement import Statement


def closed_form_reason(statement: Statement) -> str:
    """A proof by arithmetic that nothing is feasible, in words; empty where there is none."""
    require_known(statement)
    factors = Factors.of(statement)
    for distortion, (minimum, _) in zip(statement.distortion, factors.minima, strict=True):
        largest = values.blind(distortion.distance, distortion.prior)
        if minimum > largest:
            least, most = float(minimum), values.rounded_down(largest)
            return (
                f"constraints[{distortion.index}]: distortion privacy of at least "
                f"d_m = {least:.9g} is asked for, and d_max = {most:.9g} is the "
                "error of an adversary who sees nothing: no mechanism can exceed it. "
                f"Lower the minimum to at most {most:.9g}"
            )
    for limit, (_, maximum) in zip(statement.loss_limits, factors.maxima, strict=True):
        cheapest = values.least_loss(statement, limit)
        if cheapest > maximum:
            least = values.rounded_up(cheapest)
            return (
                f"constraints[{limit.index}]: a loss of at most {float(maximum):.9g} is asked "
                f"for, and the best observables alone cost {least:.9g}. "
                f"Raise the maximum to at least {least:.9g}"
            )
    return ""


def forced_zeros(statement: Statement) -> NDArray[np.bool_]:
    """Entries (S, O) that must be zero: outside the support, or facing a forced zero in a ratio
    constraint that holds there, p(o|s) <= e^r 0."""
    require_known(statement)
    zero = ~statement.allowed
    reaches = np.isfinite(statement.log_ratio).astype(float)
    windows = [(np.isfinite(w.log_ratio).astype(float), w.window) for w in statement.windowed]
    while zero.any():
        grown = zero | (reaches @ zero > 0)
        for near, window in windows:
            grown |= window & (near @ zero > 0)
        if np.array_equal(grown, zero):
            break
        zero = grown
    return zero


def support_reason(statement: Statement) -> str:
    """Whether the support and the ratio constraints together leave a secret with nothing."""
    empty = np.flatnonzero(forced_zeros(statement).all(axis=1))
    if not len(empty):
        return ""
    return (
        f"the support leaves {len(empty)} secret(s) without observables, the first of index "
        f"{empty[0]}: finite ε makes p(o|s) = 0 wherever p(o|s') = 0 for a constrained pair. "
        "Widen the support, or constrain fewer pairs"
    )


def multiplier_reason(statement: Statement, multipliers: Multipliers) -> str:
    """Words for a Farkas certificate, if the multipliers are one; empty where they are not."""
    margin = infeasibility_margin(statement, multipliers)
    if not margin > 0:
        return ""
    parts = _involved(statement, multipliers)
    return (
        f"{', '.join(parts) or 'the constraints'} cannot hold together: their combination with "
        f"the recorded multipliers demands 0 >= {margin:.3g}. Relax at least one of them"
    )


def _involved(statement: Statement, multipliers: Multipliers) -> list[str]:
    parts = []
    if multipliers.ratio is not None and (multipliers.ratio.value > 0).any():
        parts.append("the privacy ratios")
    for k, window in enumerate(statement.windowed):
        if k < len(multipliers.windowed) and (multipliers.windowed[k].value > 0).any():
            parts.append(f"constraints[{window.index}] (thresholded metric privacy)")
    for lifted, weights in zip(statement.lifted, multipliers.lifted, strict=False):
        if (weights > 0).any():
            parts.append(f"constraints[{lifted.index}] (distribution privacy)")
    for approximate, tests in zip(statement.approximate, multipliers.approximate, strict=False):
        if (tests.weight > 0).any():
            parts.append(f"constraints[{approximate.index}] (delta = {approximate.delta:g})")
    for divergence, tangents in zip(statement.divergences, multipliers.divergences, strict=False):
        if (tangents.weight > 0).any():
            parts.append(f"constraints[{divergence.index}] (divergence)")
    for distortion, attack in zip(statement.distortion, multipliers.distortion, strict=False):
        if attack.weight > 0:
            parts.append(
                f"constraints[{distortion.index}] (distortion >= {distortion.minimum:.9g})"
            )
    for limit, loss in zip(statement.loss_limits, multipliers.loss_limits, strict=False):
        if (np.asarray(loss) > 0).any():
            parts.append(f"constraints[{limit.index}] (loss <= {limit.maximum:.9g})")
    if not statement.allowed.all():
        parts.append("the support")
    return parts
