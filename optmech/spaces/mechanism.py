"""A mechanism: the row-stochastic matrix p(o|s) with its two domains (Shokri, PETS 2015, eq. 2)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from optmech.base.arrays import Floats, Ints, finite_array
from optmech.base.labels import in_order, own_labels
from optmech.base.machine import needed
from optmech.base.read_only import ReadOnly, record
from optmech.base.shown import card
from optmech.errors import ProblemError
from optmech.exact.numerators import Numerators, integers
from optmech.exact.sampler import (
    Bytes,
    EachBytes,
    Table,
    bytes_for,
    draw,
    draw_each,
    fingerprint,
    fresh,
)
from optmech.spaces.arguments import LOAD, READERS, checked_arguments, kind, taken
from optmech.spaces.domain import Domain
from optmech.spaces.labels import indices_of, label_text
from optmech.spaces.prior import Distribution, Prior, weights_of
from optmech.spaces.rationals import RationalRows, composed, lowest_terms

ROW_SUM_TOLERANCE = 1e-9


@kind(
    "Give a design, or make one with om.Mechanism(secrets, observables, matrix)",
    {"TargetDesign": "Give one of design.mechanisms", "str": LOAD},
)
@record
class Mechanism(ReadOnly):
    """p(o|s) as a matrix with a row for every secret and a column for every observable.

    Parameters
    ----------
    secrets, observables:
        The domains, or lists of labels; ``Mechanism(matrix)`` numbers both from 0, and of a pandas
        table takes the labels.
    matrix:
        Shape (secrets, observables), entries >= 0, rows summing to one. An array is in the order
        of the domains; a pandas or xarray table is read by its labels.

    Raises
    ------
    ProblemError
        On a wrong shape, other labels, a negative or non-finite entry, or a row that does not sum
        to one (within 1e-9).

    Examples
    --------
    >>> sides = om.Domain(["left", "right"])
    >>> m = om.Mechanism(sides, sides, [[0.75, 0.25], [0.25, 0.75]])
    >>> print(round(om.measures.epsilon(m, om.distances.hamming()), 4))  # ln 3
    1.0986
    >>> m.sample("left", size=3, seed=1)
    ['right', 'right', 'left']
    >>> twice = m.then(m)
    >>> print(twice.matrix)
    [[0.625 0.375]
     [0.375 0.625]]
    >>> print(m.push([0.5, 0.5]))
    [0.5 0.5]
    >>> print(m["left"]["right"])  # p(right|left), of a row by labels
    0.25
    >>> m.draws(np.zeros(5, dtype=int)).shape  # five draws for "left", by index
    (5,)
    >>> m.remap(str.upper).observables.labels
    ('LEFT', 'RIGHT')
    >>> m.rows_on(om.Mesh.line(0, 1, 2)) is None  # it reports from its secrets
    True
    >>> from optmech.exact.numerators import Numerators
    >>> om.Mechanism.of(sides, sides, Numerators(2, ((3, 1), (1, 3)))) == m  # 3/4 and 1/4
    True
    """

    secrets: Domain
    observables: Domain
    matrix: Floats
    exact: Numerators | RationalRows | None = None
    """The whole numbers that ``matrix`` is rounded from, where there are any."""

    def __init__(
        self,
        secrets: Domain | Sequence[Hashable] | ArrayLike,
        observables: Domain | Sequence[Hashable] | None = None,
        matrix: ArrayLike | None = None,
    ) -> None:
        if observables is None and matrix is None and not isinstance(secrets, Domain):
            secrets, observables, matrix = _parts_of(secrets, None, "matrix")
        if matrix is None:
            raise ProblemError(
                "is missing", where="matrix", remedy="Give secrets, observables and a matrix"
            )
        secrets, observables = _labelled(secrets, "secrets"), _labelled(observables, "observables")
        ordered = in_order(matrix, secrets.labels, observables.labels, where="matrix")
        values = finite_array(ordered, where="matrix", ndim=2)
        if values.shape != (len(secrets), len(observables)):
            raise ProblemError(
                f"shape {values.shape} does not fit {len(secrets)} secrets x "
                f"{len(observables)} observables",
                where="matrix",
            )
        if (values < 0).any():
            i, o = np.argwhere(values < 0)[0].tolist()
            raise ProblemError(
                "the probability is below 0",
                where=f"matrix[{i}][{o}]",
                remedy="Give a row of probabilities for every secret",
            )
        sums = values.sum(axis=1)
        worst = int(np.abs(sums - 1).argmax())
        if abs(sums[worst] - 1) > ROW_SUM_TOLERANCE:
            raise ProblemError(
                f"the row of {secrets.labels[worst]!r} sums to {sums[worst]:.12g}, not 1",
                where="matrix",
                remedy="Normalise the rows",
            )
        vars(self).update(secrets=secrets, observables=observables, matrix=values)

    def __repr__(self) -> str:
        exact = "floats" if self.exact is None else "exact probabilities"
        return f"Mechanism({exact}, from {self.secrets!r} to {self.observables!r})"

    def _repr_html_(self) -> str:
        exact = "floats" if self.exact is None else f"exact: {self.exact!r}"
        facts = [("from", self.secrets), ("to", self.observables), ("probabilities", exact)]
        return card("Mechanism", facts)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The matrix, for numpy: read-only, unless a copy is asked for or needed."""
        return np.array(self.matrix, dtype=dtype, copy=copy)

    __iter__ = None
    """A mechanism is no sequence of rows: labels are what it is indexed by."""

    def __getitem__(self, secret: Hashable) -> Any:
        """p(·|secret) by the labels of the reports: a Series where pandas is installed, else a
        dictionary."""
        row = self.matrix[self.secrets.index(secret)].tolist()
        labels = list(self.observables.labels)
        try:
            import pandas as pd
        except ImportError:
            return dict(zip(labels, row, strict=True))
        index = pd.Index(labels, tupleize_cols=False, name="observable")
        return pd.Series(row, index=index, name=secret)

    def __eq__(self, other: object) -> bool:
        """Exactly the same probabilities over equal domains, whether these are held as floats, as
        whole numbers over a power of two, or as fractions."""
        if not isinstance(other, Mechanism):
            return NotImplemented
        if self is other:
            return True
        same = self.secrets == other.secrets and self.observables == other.observables
        if not (same and np.array_equal(self.matrix, other.matrix)):
            return False
        return lowest_terms(self.rational.rows) == lowest_terms(other.rational.rows)

    def __hash__(self) -> int:
        return hash((self.secrets, self.observables, (self.matrix + 0.0).tobytes()))

    @property
    def is_everywhere(self) -> bool:
        """Whether it reports from every point of a mesh, and not from its secrets only."""
        return False

    def rows_on(self, mesh: object) -> Numerators | None:
        """The rows of a mesh's control points; None where it does not report from this mesh."""
        return None

    @cached_property
    def rational(self) -> Numerators | RationalRows:
        """The probabilities that are drawn with, compared and analysed, as rational numbers: those
        of ``exact``, or else the floats of each row, as the binary fractions that they are, over
        their exact sum."""
        if self.exact is not None:
            return self.exact
        return RationalRows(tuple(map(tuple, integers(self.matrix)[0])))

    @classmethod
    @checked_arguments
    def of(
        cls, secrets: Domain, observables: Domain, exact: Numerators | RationalRows
    ) -> Mechanism:
        """The mechanism with exactly these probabilities."""
        out = cls(secrets, observables, exact.matrix)
        object.__setattr__(out, "exact", exact)
        return out

    def sample(self, secret: Any, size: int | None = None, seed: int | None = None) -> Any:
        """Draw an observable's label for a secret's label, or a list of ``size`` of them; for a
        list, array or Series of labels one each, as a list.

        Probabilities are realised exactly: those of ``exact``, or else the floats of the row, as
        the binary fractions that they are, over their exact sum. For all secrets a draw reads the
        same number of bytes from the operating system and makes the same comparisons (of many
        secrets see ``draws``); the first draw lays out the whole matrix for that. A ``seed`` makes
        the draws reproducible, and therefore unfit for release.
        """
        count, source = bytes_for(size, seed)
        labels = list(self.observables.labels)  # touches all of them
        if isinstance(secret, list | np.ndarray) or hasattr(secret, "iloc"):
            if size is not None:
                raise ProblemError(
                    "there is one draw for each of the secrets",
                    where="size",
                    remedy="Leave it out, or repeat the secrets",
                )
            indices = indices_of(self.secrets, secret)
            return [labels[k] for k in self.draws(indices, fresh(source)).tolist()]
        s = self.secrets.index_evenly(secret)
        drawn = self._draw_of(s, count, source)
        return labels[drawn[0]] if size is None else [labels[k] for k in drawn]

    def draws(self, secrets: ArrayLike, source: EachBytes | None = None) -> Ints:
        """For every index of a secret (n,) the index of an observable, with the probabilities of
        ``sample``, in the order given.

        Made for tables: a million draws take seconds. All secrets take the same number of steps
        and of bytes, but what is read of the memory depends on them. ``source`` hands out the
        bytes, by default the operating system's.

        Raises
        ------
        ProblemError
            On what is no index of a secret.
        """
        indices = np.asarray(secrets)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise ProblemError("is not a list of indices", where="secrets", remedy="Give integers")
        bad = np.flatnonzero((indices < 0) | (indices >= len(self.secrets)))
        if len(bad):
            raise ProblemError(
                f"{indices[bad[0]]} is no index of {len(self.secrets)} secrets",
                where=f"secrets[{bad[0]}]",
                remedy=f"Indices run from 0 to {len(self.secrets) - 1}",
            )
        rows = indices.astype(np.int64)
        return self._draws_of(rows, fresh() if source is None else source)

    def _draw_of(self, secret: int, count: int, source: Bytes) -> Ints:
        """Indices of observables for one secret, by the even draw."""
        return draw(self._table, secret, count, source)

    def _draws_of(self, secrets: Ints, source: EachBytes) -> Ints:
        """An index of an observable for every secret, by the draw of tables."""
        return draw_each(self._table, secrets, source)

    @cached_property
    def fingerprint(self) -> bytes:
        """32 bytes that differ between mechanisms with other probabilities, secrets or reports."""
        return fingerprint(self._table.steps, self.secrets.labels, self.observables.labels)

    @cached_property
    def _table(self) -> Table:
        return self.rational.table

    @checked_arguments
    def then(self, other: Mechanism) -> Mechanism:
        """Post-process every observable with ``other``, whose secrets are these observables.

        Where both have exact probabilities, so has the result; floats whose rows sum to one
        exactly, such as zeros and ones, count as exact too. Otherwise its ``exact`` is None.
        """
        if other.secrets.labels != self.observables.labels:
            raise ProblemError(
                "the second mechanism's secrets are not the first one's observables",
                where="then",
                remedy="Use the same labels in the same order",
            )
        first, second = self._stated(), other._stated()
        if first is None or second is None:
            return Mechanism(self.secrets, other.observables, self.matrix @ other.matrix)
        return Mechanism.of(self.secrets, other.observables, composed(first, second))

    @checked_arguments
    def remap(self, f: Callable[[Hashable], Hashable]) -> Mechanism:
        """Replace every observable o by the label f(o); equal labels are merged, and their exact
        probabilities added exactly."""
        images = [f(label) for label in self.observables.labels]
        try:
            distinct = list(dict.fromkeys(images))
        except TypeError as error:
            raise ProblemError(
                f"an image is not usable as a label: {error}",
                where="remap",
                remedy="Return hashable labels",
            ) from None
        position = {label: k for k, label in enumerate(distinct)}
        onto = np.zeros((len(images), len(distinct)))
        onto[np.arange(len(images)), [position[label] for label in images]] = 1.0
        known = self.observables
        points = None
        if known.points is not None and all(label in known._index for label in distinct):
            points = known.points[[known.index(label) for label in distinct]]
        coordinates = known.coordinates if points is not None else "plane"
        outputs = Domain(distinct, points, known.unit, coordinates=coordinates)
        return self.then(Mechanism(known, outputs, onto))

    def _stated(self) -> Numerators | RationalRows | None:
        """The exact probabilities, or those of floats that sum to one exactly."""
        total = 1 << integers(self.matrix)[1]
        whole = self.exact is not None or all(sum(row) == total for row in self.rational.rows)
        return self.rational if whole else None

    def to_geopandas(self, secret: Hashable) -> Any:
        """Where a secret is reported, as a GeoDataFrame in WGS 84: the cells of the observables
        with ``label`` and ``probability``, p(o|secret).

        Raises
        ------
        ProblemError
            Without geopandas, on an unknown label, or where the observables have no longitudes and
            latitudes.

        Examples
        --------
        >>> cells = om.Grid(2, 2, bounds=(2.3, 48.8, 2.4, 48.9))
        >>> m = om.mechanisms.planar_laplace(cells, 1)
        >>> print(m.to_geopandas((0, 0)).probability.sum().round(6))
        1.0
        """
        from optmech.spaces.layout import geometries

        geopandas = needed("geopandas", "geo", where="to_geopandas")
        row = self.matrix[self.secrets.index(secret)]
        shapes = list(geometries(self.observables))
        rows = [
            {
                "type": "Feature",
                "properties": {"label": label_text(label), "probability": float(p)},
                "geometry": shape,
            }
            # a suppression symbol has no place
            for label, p, shape in zip(self.observables.labels, row.tolist(), shapes, strict=False)
        ]
        return geopandas.GeoDataFrame.from_features(rows, crs=4326)

    def push(self, lam: Distribution) -> Floats:
        """λP, the distribution of the output when the secret is drawn from λ, shape (n_o,).

        λ is a prior, or in the order of the secrets; a pandas Series or a mapping is read by its
        labels.
        """
        if isinstance(lam, Prior) and lam.domain.labels != self.secrets.labels:
            raise ProblemError(
                f"is over {len(lam)} secrets that are not the mechanism's {len(self.secrets)}",
                where="lam",
                remedy="Use the same labels in the same order",
            )
        ordered = in_order(weights_of(lam), self.secrets.labels, where="lam")
        weights = finite_array(ordered, where="lam", ndim=1)
        if weights.shape != (len(self.secrets),):
            raise ProblemError(
                f"{weights.size} weights for {len(self.secrets)} secrets", where="lam"
            )
        return weights @ self.matrix


def _labelled(value: Any, where: str) -> Domain:
    """A domain, or that of a list of labels."""
    if isinstance(value, list | tuple | range) or (hasattr(value, "tolist") and value.ndim == 1):
        return Domain(value.tolist() if hasattr(value, "tolist") else value)
    found: Domain = taken(value, "Domain", where)
    return found


def _parts_of(value: Any, domain: Domain | None, where: str) -> tuple[Domain, Domain, Any]:
    """Secrets, observables and matrix of an array, lists or a table, over ``domain`` where it has
    as many rows; a square one has its secrets for observables, where it has no labels."""
    labels = own_labels(value)
    array = finite_array(value if labels is None else value.to_numpy(), where=where)
    if array.ndim != 2 or not array.size:
        raise ProblemError(
            f"an array of shape {array.shape} is not a Mechanism",
            where=where,
            remedy="Give a row of probabilities for every secret; a prior is another argument",
        )
    count, width = array.shape
    # rows and columns that are merely numbered have no labels
    rows, columns = (
        own if own is not None and list(own) != list(range(size)) else None
        for own, size in zip(labels or (None, None), (count, width), strict=True)
    )
    secrets = domain if domain is not None and len(domain) == count else None
    if secrets is None:
        secrets = Domain.range(count) if rows is None else Domain(rows)
    if columns is not None and set(columns) != set(secrets.labels):
        observables = Domain(columns)
    else:
        observables = secrets if width == count else Domain.range(width)
    plain = rows is None and columns is None
    return secrets, observables, array if plain else value


READERS["Mechanism"] = lambda *given: Mechanism(*_parts_of(*given))


def mechanism_from(value: object, where: str) -> Mechanism:
    """A mechanism, or that of a design; ProblemError at ``where`` on anything else."""
    found: Mechanism = taken(value, "Mechanism", where)
    return found
