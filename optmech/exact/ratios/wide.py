"""Non-negative numbers with an exponent of their own each, so that long products keep their digits.

Products, quotients and sums of products of such numbers are within a few units in the last place
of the true ones, relatively, however small they are: nothing underflows. A zero is a true zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optmech.base.arrays import Floats, Ints
from optmech.base.read_only import record
from optmech.exact.ratios import hockey_stick
from optmech.exact.rounding import total

LEAST = 2.0**-1022
"""The least normal float64: what a smaller number counts as when it becomes a float."""

_NONE = -(1 << 40)
"""The exponent of zero, below all others."""
_SAFE = -960
"""Sums above 2^-960 cannot have lost a digit to terms that underflowed below 2^-1074."""
_FAR = 900
"""Within 2^±900 a quotient of mantissas can be scaled without rounding."""
_LN2 = float(np.log(2.0))


@record
class Wide:
    """An array of numbers mantissa · 2^exponent, the mantissas 0 or from ½ to 1."""

    mantissa: Floats
    exponent: Ints

    @classmethod
    def of(cls, values: Floats) -> Wide:
        """Floats >= 0, exactly."""
        return _scaled(values, np.zeros(np.shape(values), dtype=np.int64))

    @classmethod
    def joined(cls, parts: Sequence[Wide]) -> Wide:
        """Arrays one after the other."""
        return cls(
            np.concatenate([part.mantissa for part in parts]),
            np.concatenate([part.exponent for part in parts]),
        )

    def __getitem__(self, index: Any) -> Wide:
        return Wide(self.mantissa[index], self.exponent[index])

    def reshaped(self, *shape: int) -> Wide:
        """The numbers in another shape."""
        return Wide(self.mantissa.reshape(shape), self.exponent.reshape(shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.mantissa.shape

    @property
    def T(self) -> Wide:  # noqa: N802 (as of numpy arrays)
        """Transposed."""
        return Wide(self.mantissa.T, self.exponent.T)

    @property
    def positive(self) -> np.ndarray:
        """Which are not 0."""
        return self.mantissa > 0

    def floats(self) -> Floats:
        """The numbers as float64; positive ones below ``LEAST`` count as it: none vanishes."""
        out = np.ldexp(self.mantissa, np.clip(self.exponent, -2000, 1024))
        return np.where(self.positive, np.maximum(out, LEAST), 0.0)

    def times(self, other: Wide) -> Wide:
        """Elementwise product."""
        return _scaled(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def over(self, other: Wide) -> Wide:
        """Elementwise quotient; 0 where both are."""
        share = np.divide(
            self.mantissa,
            other.mantissa,
            out=np.zeros(np.broadcast_shapes(self.shape, other.shape)),
            where=self.positive & other.positive,
        )
        return _scaled(share, self.exponent - other.exponent)

    def sums(self) -> Wide:
        """Sums along the last axis, by halves."""
        flat, top = self.flat()
        return _scaled(total(flat), top[..., 0])

    def normalised(self) -> Wide:
        """Rows (the last axis) divided by their sums; rows of zeros stay."""
        return self.over(self.sums()[..., None])

    def flat(self) -> tuple[Floats, Ints]:
        """Floats over powers of two of their own rows: the largest of a row is from ½ to 1, and
        those below 2^-1074 of it are 0."""
        top = self.exponent.max(axis=-1, keepdims=True)
        return np.ldexp(self.mantissa, np.maximum(self.exponent - top, -2000)), top


def _scaled(mantissa: Floats, exponent: Ints) -> Wide:
    plain, own = np.frexp(mantissa)
    return Wide(plain, np.where(plain > 0, exponent + own, _NONE))


def product(vectors: Wide, kernel: Wide) -> Wide:
    """Σ_y kernel[x, y] v[y] for every row v of ``vectors``: shapes (m, n), (k, n) → (m, k)."""
    left, top = vectors.flat()
    right, high = kernel.flat()
    plain = left @ right.T
    out = _scaled(plain, top + high[:, 0])
    small = plain < 2.0**_SAFE
    if small.any():
        small &= vectors.positive.astype(float) @ kernel.positive.T.astype(float) > 0
    # what is not 0 and too small to be trusted is summed again, terms scaled together
    for x in np.flatnonzero(small.any(axis=0)).tolist():
        column = vectors.times(kernel[x]).sums()
        out.mantissa[:, x], out.exponent[:, x] = column.mantissa, column.exponent
    return out


def pushed(weights: Wide, kernel: Floats) -> Wide:
    """Σ_x w[x] kernel[x, y] for one vector, shape (n,): only what a plain product of floats may
    have lost is taken with care."""
    flat, top = weights.flat()
    plain = flat @ kernel
    out = _scaled(plain, top)
    small = plain < 2.0**_SAFE
    if small.any():
        small &= (kernel[weights.positive] > 0).any(axis=0)
    doubtful = np.flatnonzero(small)
    if len(doubtful):
        sums = Wide.of(kernel[:, doubtful].T).times(weights).sums()
        out.mantissa[doubtful], out.exponent[doubtful] = sums.mantissa, sums.exponent
    return out


def tilted(kernel: Floats, message: Wide) -> tuple[Floats, Wide]:
    """The rows of kernel[x, y] m[y] divided by their sums, as floats, and the sums; a row whose sum
    is 0 is left as it was."""
    flat, top = message.flat()
    plain = kernel * flat
    sums = plain.sum(axis=1)
    weighted = np.divide(plain, sums[:, None], out=kernel.copy(), where=sums[:, None] > 0)
    whole = _scaled(sums, top)
    lost = (plain < 2.0**_SAFE) & (kernel > 0) & message.positive
    doubtful = np.flatnonzero(lost.any(axis=1))
    if len(doubtful):
        exact = Wide.of(kernel[doubtful]).times(message)
        again = exact.sums()
        weighted[doubtful] = exact.over(again[:, None]).floats()
        whole.mantissa[doubtful], whole.exponent[doubtful] = again.mantissa, again.exponent
    return weighted, whole


def log_ratio(p: Wide, q: Wide) -> Floats:
    """ln(p / q) as ``hockey_stick.log_ratio`` has it: -inf where p is 0, inf where only q is."""
    apart = p.exponent - q.exponent
    near = np.ldexp(p.mantissa, np.clip(apart, -_FAR, _FAR))
    out = hockey_stick.log_ratio(near, q.mantissa)
    far = (np.abs(apart) > _FAR) & p.positive & q.positive
    if far.any():
        with np.errstate(all="ignore"):
            distant = np.log(p.mantissa / q.mantissa) + apart * _LN2
        out = np.where(far, distant, out)
    return out


def either_log_ratio(p: Wide, q: Wide) -> Floats:
    """The larger of ln(p / q) and ln(q / p); -inf where both are 0."""
    return np.maximum(log_ratio(p, q), log_ratio(q, p))


def log_values(p: Wide) -> Floats:
    """ln p; -inf where p is 0."""
    with np.errstate(divide="ignore"):
        logs = np.log(p.mantissa)
    return np.where(p.positive, logs + p.exponent * _LN2, -np.inf)
