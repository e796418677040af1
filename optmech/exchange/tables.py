"""Mechanisms as long tables: a row for every positive probability."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optmech.base import memory
from optmech.base.machine import needed
from optmech.base.storage import write_atomically
from optmech.errors import ProblemError, inside
from optmech.reading.columns import read_columns, read_text_columns
from optmech.spaces.arguments import checked_arguments
from optmech.spaces.domain import Domain
from optmech.spaces.labels import label_text
from optmech.spaces.mechanism import Mechanism

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("secret", "observable", "probability")


@checked_arguments
def to_frame(mechanism: Mechanism) -> pd.DataFrame:
    """A pandas table with the columns secret, observable (text) and probability (float64).

    Rows with probability 0 are left out, so that an observable which is never reported, and a
    domain's coordinates, are not in the table.
    """
    pandas = needed("pandas", "parquet", where="to_frame")
    s, o = np.nonzero(mechanism.matrix)
    secrets, observables = (
        np.array([label_text(label) for label in domain.labels], dtype=object)
        for domain in (mechanism.secrets, mechanism.observables)
    )
    values = (secrets[s], observables[o], mechanism.matrix[s, o])
    return pandas.DataFrame(dict(zip(_COLUMNS, values, strict=True)))


@checked_arguments
def write_parquet(mechanism: Mechanism, path: str | Path) -> None:
    """Write ``to_frame`` as a Parquet file."""
    needed("pyarrow", "parquet", where="write_parquet")
    buffer = io.BytesIO()
    to_frame(mechanism).to_parquet(buffer, engine="pyarrow", index=False)
    write_atomically(path, buffer.getvalue())


@checked_arguments
def read_parquet(
    path: str | Path, secrets: Domain | None = None, observables: Domain | None = None
) -> Mechanism:
    """Read a mechanism from a Parquet file with the columns of ``to_frame``.

    Without domains, secrets and observables are the texts of the file, in the order in which
    they first occur. With them, texts are their labels as written by ``to_frame``.

    Raises
    ------
    ProblemError
        On a file without these columns, an unknown label, a pair that occurs twice, or rows that
        are no distributions.
    """
    file = Path(path)
    texts = [read_text_columns(file, [name])[name] for name in _COLUMNS[:2]]
    chances = read_columns(file, _COLUMNS[2:])[_COLUMNS[2]]
    domains = [
        Domain(dict.fromkeys(column)) if given is None else given
        for column, given in zip(texts, (secrets, observables), strict=True)
    ]
    places = [_indices(column, domain, path) for column, domain in zip(texts, domains, strict=True)]
    memory.require(
        8.0 * len(domains[0]) * len(domains[1]),
        what=f"a matrix of {len(domains[0]):,} secrets and {len(domains[1]):,} observables",
        where=str(path),
        remedy="Use a coarser domain",
    )
    matrix = np.zeros((len(domains[0]), len(domains[1])))
    distinct = np.unique(np.ravel_multi_index((places[0], places[1]), matrix.shape))
    if len(distinct) < len(chances):
        raise ProblemError("a pair of labels occurs twice", where=str(path))
    matrix[tuple(places)] = chances
    with inside(str(path)):
        return Mechanism(domains[0], domains[1], matrix)


def _indices(texts: list[str], domain: Domain, path: str | Path) -> np.ndarray:
    known = {label_text(label): k for k, label in enumerate(domain.labels)}
    unknown = next((text for text in texts if text not in known), None)
    if unknown is not None:
        raise ProblemError(
            f"there is no {unknown!r} among the {len(domain)} labels", where=str(path)
        )
    return np.array([known[text] for text in texts], dtype=np.int64)
