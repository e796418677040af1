"""Which columns of a table say where a row is, and those that take their place."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from optmech.base.arrays import Floats
from optmech.errors import ProblemError
from optmech.reading.chosen import Chosen, column_of
from optmech.reading.columns import require_columns
from optmech.reading.errors import printable, show
from optmech_devices.protection.persons import SAMPLE, is_place, is_shape, stands_still, tells_place
from optmech_devices.protection.places import Centres
from optmech_devices.protection.reporter import Drawn, Reporter


@dataclass(frozen=True)
class Replaced:
    """The columns of the reports: in the place of those that said where rows were, or after all."""

    chosen: Chosen
    reporter: Reporter
    """What draws them."""
    report: str | None
    """Name of the column with the reports' labels."""
    places: Floats | Centres | None
    """Coordinates of the observables; None where labels stand alone."""

    @classmethod
    def of(
        cls, chosen: Chosen, reporter: Reporter, report: str | None, known: Sequence[Hashable]
    ) -> Replaced:
        """``known`` are the columns that are there; Raises ProblemError where ``report`` is one."""
        places = None if chosen.labelled else reporter.places
        if places is not None and places.shape[1] != len(chosen.names):
            places = None
        if places is None and not chosen.labelled and report is None:
            report = "report"
        fault = ""
        if report is not None and printable(str(report)) != str(report):
            fault = f"{show(report)} has characters that cannot be seen"
        elif report is not None and report in known:
            fault = f"the data have a column {report!r}"
        if fault:
            raise ProblemError(fault, where="report", remedy="Choose another name")
        return cls(chosen, reporter, report, places)

    @property
    def names(self) -> tuple[Any, ...]:
        """Names of those columns of the place that stay."""
        return self.chosen.names if self.chosen.labelled or self.places is not None else ()

    def columns(self, drawn: Drawn) -> dict[Any, Any]:
        """The new columns by name; of labels, arrays of objects where these are tuples."""
        reports = drawn[1]
        out: dict[Any, Any] = {}
        if self.places is not None:
            out = {name: self.places[reports, k] for k, name in enumerate(self.chosen.names)}
        texts = [*self.chosen.names] if self.chosen.labelled else []
        if self.report is not None:
            texts.append(self.report)
        if texts:
            labels = self.reporter.mechanism.observables.labels
            out |= dict.fromkeys(texts, column_of([labels[k] for k in reports.tolist()]))
        return out


@dataclass(frozen=True)
class Asked:
    """The columns that are asked for, by name."""

    x: Any = None
    y: Any = None
    label: Any = None
    keep: tuple[str, ...] = ()
    by: tuple[str, ...] = ()
    report: str | None = None
    pairs: tuple[tuple[str, str], ...] = ()
    """Coordinates of several places of a row, instead of ``x`` and ``y``."""
    unveiled: tuple[str, ...] = ()
    """Of the columns that are kept those that may say where a row is."""

    def refuse_places(self) -> None:
        """Raise ProblemError where a column that is kept is called like a place, and not
        ``unveiled``."""
        place = next((n for n in self.keep if n not in self.unveiled and is_place(str(n))), None)
        if place is not None:
            raise _telling(
                place,
                f"{place!r} is called like a coordinate or an address, which gives away what the "
                "report hides",
            )

    def refuse_telling(
        self,
        cells: Callable[[Any], Sequence[Any]],
        coordinates: Sequence[Floats],
        degrees: bool,
        names: Sequence[Any],
    ) -> None:
        """Raise ProblemError where the ``cells`` of a column that is kept, and not ``unveiled``,
        lie where the ``coordinates`` of the rows do, or each of whose values stands at one place,
        but for ``names`` of persons."""
        judged = {name: cells(name) for name in self.keep if name not in self.unveiled}
        for name, column in judged.items():
            if any(map(is_shape, column[:SAMPLE])):
                raise _telling(
                    name, f"{name!r} holds shapes, which may give away what the report hides"
                )
            if tells_place(column, coordinates, degrees):
                raise _telling(
                    name,
                    f"numbers in {name!r} lie where the coordinates of the rows do, and may give "
                    "away what the report hides",
                )
        for name, column in judged.items():
            if name not in names and stands_still(column, coordinates):
                raise _telling(
                    name,
                    f"most values of {name!r} stand at one place each, as numbers of stations do: "
                    "who knows what one is knows where the row was, whatever the report says",
                )

    def replaced(self, chosen: Chosen, reporter: Reporter, known: Sequence[Hashable]) -> Replaced:
        """What takes the place of the ``chosen`` columns; raises ProblemError where others that are
        asked for are not ``known``, or are taken."""
        require_columns("data", self.keep, known)
        place = next((name for name in self.keep if name in chosen.names), None)
        if place is not None:
            raise ProblemError(
                f"{place!r} says where a row is, and is replaced by the report's",
                where="keep",
                remedy="Leave it out",
            )
        self.refuse_places()
        require_columns("data", self.by, known)
        return Replaced.of(chosen, reporter, self.report, known)


def _telling(name: str, words: str) -> ProblemError:
    """Of a column that is kept, and says where rows are."""
    remedy = f"Leave it out, or keep it all the same with keep_place = {name!r}"
    return ProblemError(words, where="keep", remedy=remedy)


def drawn_of(
    chosen: Chosen, reporter: Reporter, columns: Sequence[Any], by: Sequence[Sequence[bytes]]
) -> Drawn:
    """Reports for rows with these columns, in the order of their names."""
    if chosen.labelled:
        return reporter.at_labels(columns[0], by)
    return reporter.at_points(chosen.points(columns), by)
