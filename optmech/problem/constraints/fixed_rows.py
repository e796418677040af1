"""Rows held fixed: what some secrets report is given, digit by digit, and only the others are
designed (one new place, all others kept)."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import KW_ONLY
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from optmech.base.labels import label_text
from optmech.base.read_only import Converted, converted, record
from optmech.certificate.families import Fixed
from optmech.errors import ProblemError, inside
from optmech.exact.arguments import whole
from optmech.exact.numerators import Numerators, decode_rows, encode_rows
from optmech.problem.constraint import ForUse, Kept, Remarks, constraint
from optmech.problem.fields import FIELDS, Field, Plain
from optmech.problem.space import GivenRows, Place, Space, whole_rows
from optmech.spaces.labels import find_index, find_label
from optmech.spaces.mechanism import Mechanism

if TYPE_CHECKING:
    from optmech.reading.sections import Section

_DIGEST = re.compile("sha256:[0-9a-f]{64}")


def as_rows(value: object) -> GivenRows:
    """A design, a mechanism, or rows by the labels of their secrets."""
    return GivenRows.of(value)


def as_labels(value: Any) -> tuple[Hashable, ...]:
    """A list of labels."""
    if isinstance(value, str | bytes) or not isinstance(value, Sequence):
        raise ProblemError("is not a list of labels", remedy='Give a list, as in ["home"]')
    return tuple(tuple(label) if isinstance(label, list) else label for label in value)


FIELDS[as_rows] = Field("rows")
FIELDS[as_labels] = Field("labels")


@constraint("fixed_rows")
@record
class FixedRows(ForUse):
    """p(·|s) is exactly what is given for the secrets s that are kept; the other rows are free
    (``min_vuln_for_row`` of libqif designs one row so).

    ``rows`` is a design, a mechanism, or the rows by the labels of their secrets: numbers, texts
    such as "1/4" or fractions, in the order of the problem's observables, that sum to one and have
    a power of two for a common denominator. Rows of designs and mechanisms are found by label, and
    so are their observables. ``keep`` names the secrets whose rows are kept, ``free`` those whose
    rows are not; without both, all are kept that the problem has.

    Examples
    --------
    >>> coin = om.Domain(["yes", "no"])
    >>> kept = om.constraints.FixedRows({"yes": ["3/4", "1/4"]})
    >>> d = om.distances.hamming()
    >>> problem = om.Problem(
    ...     om.Prior.uniform(coin), d, constraints=[kept, om.DifferentialPrivacy("ln 3")]
    ... )
    >>> print(om.solve(problem).mechanism.matrix.round(6))
    [[0.75 0.25]
     [0.25 0.75]]
    >>> places, rows = kept.held(problem.space)
    >>> places, rows.rows, rows.bits  # 3/4 and 1/4
    ([0], ((3, 1),), 2)
    """

    rows: Converted[object, GivenRows] = converted(as_rows)
    _: KW_ONLY
    keep: Converted[Any, tuple[Hashable, ...] | None] = converted(as_labels, default=None)
    free: Converted[Any, tuple[Hashable, ...] | None] = converted(as_labels, default=None)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keep is not None and self.free is not None:
            raise ProblemError(
                "is given together with keep", where="free", remedy="Give one of the two"
            )

    def held(self, space: Space) -> tuple[list[int], Numerators]:
        """The secrets whose rows are kept, in increasing order, and these rows over the problem's
        observables. Raises ProblemError where they do not fit."""
        known = {label: s for s, label in enumerate(space.secrets.labels)}
        given = {label: k for k, label in enumerate(self.rows.secrets)}
        if self.keep is not None:
            with inside("keep"):
                wanted = [_label(label, space) for label in self.keep]
            missing = [label for label in wanted if label not in given]
            if missing:
                raise ProblemError(
                    f"{label_text(missing[0])} has no row among those given",
                    where="keep",
                    remedy="Leave it out, or give its row",
                )
        else:
            unknown = [label for label in given if label not in known]
            if unknown and self.rows.observables is None:
                raise ProblemError(
                    f"{label_text(unknown[0])} is no secret of this problem",
                    where="rows",
                    remedy="Correct the label, or leave its row out",
                )
            with inside("free"):
                left = {_label(label, space) for label in self.free or ()}
            wanted = [label for label in given if label in known and label not in left]
        if not wanted:
            raise ProblemError(
                "no row is kept: none of them is of a secret of this problem that is not free",
                where="rows",
                remedy="Compare the labels, or leave the constraint out",
            )
        order = sorted(set(wanted), key=known.__getitem__)
        with inside("rows"):
            rows = self.rows.over(space.observables, [given[label] for label in order])
        return [known[label] for label in order], rows

    def families(self, index: int, space: Space) -> Iterator[Fixed]:
        secrets, rows = self.held(space)
        names = tuple(label_text(space.secrets.labels[s]) for s in secrets)
        yield Fixed(index, np.array(secrets, dtype=np.int64), rows, names)

    def plain(self, space: Space) -> dict[str, Plain]:
        """The rows that are kept, by the indices of secrets and observables."""
        secrets, rows = self.held(space)
        return {
            "source": self.rows.source,
            "bits": rows.bits,
            "secrets": secrets,
            "rows": encode_rows(rows.rows),
        }

    @classmethod
    def load(cls, plain: Plain, space: Space) -> Self:
        """The constraint that ``plain`` wrote; indices that are none, and other numerals, are
        refused."""
        labels = space.secrets.labels
        secrets = [whole(s, "secrets", 0, len(labels) - 1) for s in plain["secrets"]]
        if any(a >= b for a, b in pairwise(secrets)):
            raise ProblemError("has indices that do not increase", where="secrets")
        rows = decode_rows(plain["rows"], len(space.observables), "rows")
        if len(rows) != len(secrets) or type(plain["bits"]) is not int:
            raise ProblemError("has another number of rows than of secrets", where="rows")
        source = plain["source"]
        if type(source) is not str or (source and not _DIGEST.fullmatch(source)):
            raise ProblemError("is no digest", where="source")
        kept = tuple(labels[s] for s in secrets)
        exact = Numerators(plain["bits"], rows)
        return cls(GivenRows(kept, tuple(space.observables.labels), exact, source))

    @classmethod
    def table(cls) -> type[Section]:
        """The table of all fields, or with a design file in the place of the rows, and its
        digest."""
        from optmech.reading.sections import refusal

        def one_form(self: Any) -> Any:
            if (self.rows is None) == (self.design is None):
                raise refusal("needs one of rows and design", "Give the file of a design")
            if self.sha256 is not None and self.design is None:
                raise refusal("sha256 is that of a design", "Give design, or leave sha256 out")
            if self.keep is not None and self.free is not None:
                raise refusal("keep and free exclude each other", "Keep one of the two")
            return self

        return cls._table(
            one_form,
            rows=(FIELDS[as_rows].type_of_key() | None, None),
            design=(str | None, None),
            sha256=(str | None, None),
        )

    @classmethod
    def build(cls, spec: Any, place: Place) -> Self:
        """From the rows, or from the design that is named."""
        if spec.design is not None:
            with inside("design"):
                rows = place.kept_rows(spec.design)
            if spec.sha256 is not None and rows.source != f"sha256:{spec.sha256}":
                raise ProblemError(
                    f"the design has the digest {rows.source.removeprefix('sha256:')}",
                    where="sha256",
                    remedy="It is not the design that was meant: give that one, or its digest",
                )
        else:
            table: dict[Hashable, list[Any]] = {}
            for k, own in enumerate(spec.rows):
                with inside(f"rows[{k}].secret"):
                    label = find_label(place.secrets, own.secret)
                if label in table:
                    raise ProblemError("occurs twice", where=f"rows[{k}].secret")
                table[label] = own.row
            with inside("rows"):
                rows = whole_rows(table)
        chosen: dict[str, Any] = {}
        for name in ("keep", "free"):
            if (listed := getattr(spec, name)) is not None:
                with inside(name):
                    chosen[name] = [find_label(place.secrets, label) for label in listed]
        return cls(rows, **chosen)

    def promise(self, space: Space) -> str:
        count = len(self.held(space)[0])
        which = f"the rows of {count} of {len(space.secrets)} secrets"
        source = f" ({self.rows.source[:19]}…)" if self.rows.source else ""
        return f"{which} exactly as given{source}"

    def measured(self, m: Mechanism, space: Space) -> Kept | None:
        return None

    def notes(self, space: Space) -> Remarks:
        secrets, rows = self.held(space)
        if len(secrets) == len(space.secrets):
            return [("", "every row is fixed: there is nothing to design")]
        never = [o for o, column in enumerate(zip(*rows.rows, strict=True)) if not any(column)]
        if not never:
            return []
        first = label_text(space.observables.labels[never[0]])
        return [
            (
                "",
                f"no fixed row ever reports {len(never)} of the {len(space.observables)} "
                f"observables, the first {first}: what may not tell secrets apart for sure "
                "cannot report them either",
            )
        ]


def _label(given: Hashable, space: Space) -> Hashable:
    return space.secrets.labels[find_index(space.secrets, given)]
