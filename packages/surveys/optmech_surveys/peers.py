"""Mechanisms that are in use for statistics under local privacy, as matrices."""

from __future__ import annotations

import itertools
import math

import numpy as np

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.exact.number import Number, float_of
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.mechanism import Mechanism

_MOST = 5_000
"""Reports of one mechanism."""


def _made(secrets: Domain, matrix: Floats, name: str) -> Mechanism:
    reports = Domain([f"{name} {k + 1}" for k in range(matrix.shape[1])])
    return Mechanism(secrets, reports, matrix / matrix.sum(axis=1, keepdims=True))


def _require_few(count: int) -> None:
    if count > _MOST:
        raise ProblemError(
            f"{count:,} reports are more than {_MOST:,}",
            where="secrets",
            remedy="Compare mechanisms for fewer secrets",
        )


@checked_arguments
def unary_encoding(secrets: Domain, epsilon: Number, *, optimised: bool = True) -> Mechanism:
    """Unary encoding: a bit for every secret, flipped alone (Wang et al., USENIX Security 2017).

    The own bit stays with probability ½ and others become 1 with probability 1 / (e^ε + 1); or,
    where it is not ``optimised``, all keep their value with e^{ε/2} / (e^{ε/2} + 1), as RAPPOR's.

    Raises
    ------
    ProblemError
        For more than 12 secrets, whose 2^n reports are too many.

    Examples
    --------
    >>> from optmech_surveys import unary_encoding
    >>> m = unary_encoding(om.Domain(list("abcd")), 1.0)
    >>> m.matrix.shape, round(om.measures.epsilon(m, om.distances.hamming()), 6)
    ((4, 16), 1.0)
    """
    n, rate = len(secrets), float_of(epsilon, "epsilon")
    _require_few(2**n)
    own, other = 0.5, 1 / (math.exp(rate) + 1)
    if not optimised:
        own = 1 / (1 + math.exp(-rate / 2))
        other = 1 - own
    bits = np.array(list(itertools.product((0, 1), repeat=n)))
    chance = np.where(np.eye(n, dtype=bool), own, other)
    each = np.where(bits[None] == 1, chance[:, None, :], 1 - chance[:, None, :])
    return _made(secrets, np.asarray(each.prod(axis=2)), "bits")


@checked_arguments
def hadamard(secrets: Domain, epsilon: Number) -> Mechanism:
    """Hadamard response: the half of 2^k reports that a row of Hadamard's matrix names is e^ε times
    likelier (Acharya, Sun and Zhang, AISTATS 2019). ε-private for all pairs.

    Examples
    --------
    >>> from optmech_surveys import hadamard
    >>> hadamard(om.Domain(list("abc")), "ln 3").matrix.round(3).tolist()[0]
    [0.375, 0.125, 0.375, 0.125]
    """
    n, rate = len(secrets), math.exp(float_of(epsilon, "epsilon"))
    size = 1 << n.bit_length()
    rows = np.array([[1]])
    while len(rows) < size:
        rows = np.block([[rows, rows], [rows, -rows]])
    return _made(secrets, np.where(rows[1 : n + 1] > 0, rate, 1.0), "code")
